// Saves the recorded picture of a moment as JPEG.

import { mediaAddress, request } from '../app/api.ts';
import type { Playback } from '../playback/playback.ts';
import { drawVisible, isZoomed } from '../parts/zoom.ts';
import { stillPath } from '../playback/still-show.ts';
import { footageIdOf } from '../playback/stream.ts';
import type { Zone } from '../playback/zone.ts';
import { download } from './jobs.ts';

/** The most that the recorder makes. */
const WIDTH = 1920;
const QUALITY = 0.92;
/** Until the browser has begun to save it. */
const KEPT_MS = 10_000;

/** `gate_2026-11-22T021300+01:00.jpg` without the colons, which some systems do not allow in names. */
const stillName = (cameraId: string, atMs: number, zone: Zone): string =>
  `${cameraId}_${zone.iso(Math.round(atMs)).replaceAll(':', '')}.jpg`;

/** The part that is visible, if its tile is zoomed. */
export async function saveStill(playback: Playback, cameraId: string, atMs: number): Promise<void> {
  const stream = playback.momentOf(cameraId, atMs)?.kind === 'preview' ? 'preview' : 'main';
  const path = stillPath(footageIdOf(cameraId, stream), atMs, WIDTH);
  const name = stillName(cameraId, atMs, playback.zone.peek());
  const tile = document.querySelector(`.ptile[data-camera="${CSS.escape(cameraId)}"]`);
  if (!isZoomed(tile)) return download(mediaAddress(path), name);
  const picture = await createImageBitmap(await (await request(path)).blob());
  drawVisible(picture, picture, tile).toBlob(
    (blob) => {
      if (!blob) return;
      const url = URL.createObjectURL(blob);
      download(url, name);
      setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
    },
    'image/jpeg',
    QUALITY,
  );
  return undefined;
}
