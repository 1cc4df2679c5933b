// Saves the recorded picture of a moment as JPEG.

import { mediaAddress } from '../app/api.ts';
import type { Playback } from '../playback/playback.ts';
import { stillPath } from '../playback/still-show.ts';
import { footageIdOf } from '../playback/stream.ts';
import type { Zone } from '../playback/zone.ts';
import { download } from './jobs.ts';

/** The most that the recorder makes. */
const WIDTH = 1920;

/** `gate_2026-11-22T021300+01:00.jpg` without the colons, which some systems do not allow in names. */
const stillName = (cameraId: string, atMs: number, zone: Zone): string =>
  `${cameraId}_${zone.iso(Math.round(atMs)).replaceAll(':', '')}.jpg`;

export function saveStill(playback: Playback, cameraId: string, atMs: number): void {
  const stream = playback.momentOf(cameraId, atMs)?.kind === 'preview' ? 'preview' : 'main';
  const path = stillPath(footageIdOf(cameraId, stream), atMs, WIDTH);
  download(mediaAddress(path), stillName(cameraId, atMs, playback.zone.peek()));
}
