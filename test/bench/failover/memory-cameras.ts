// The cameras of a stage on which nothing may be missing: a scripted camera with a memory behind all of them. Their pictures carry
// numbers, so that what is decoded from the recordings proves that none is missing or doubled.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EdgeCamera } from '../../camera/edge-camera.ts';
import { decodePictures } from '../../camera/frame-numbers.ts';
import type { Sender } from '../sender.ts';

/** What keeps a camera from missing a second: another node that holds it, its own memory, or both. */
export const KEPT_BY = ['standby', 'edge', 'both'] as const;
export type KeptBy = (typeof KEPT_BY)[number];

/** The camera repeats its ten seconds. */
const CLIP_PICTURES = 250;
const PICTURE_MS = 40;
/** A window begins with the key frame before, and these are a second apart. */
const TOLERATED_PICTURES = 40;
/** How much the memory keeps. */
const CAPACITY_MS = 300_000;

interface MemoryCameras extends Pick<Sender, 'stats' | 'stop'> {
  /** What a Camera says of it; by default without any of both. */
  specOf(keptBy: KeptBy): Readonly<Record<string, unknown>>;
}

export async function startMemoryCameras(host: string): Promise<MemoryCameras> {
  const camera = await EdgeCamera.start({
    pace: 'realtime',
    host,
    device: { host },
    memory: { capacityMs: CAPACITY_MS },
  });
  return {
    specOf: (keptBy) => ({
      source: camera.camera.url,
      onvif: camera.device.url,
      ...(keptBy === 'standby' ? {} : { edge: { onvif: true } }),
      ...(keptBy === 'edge' ? {} : { standby: true }),
    }),
    stats: () => Promise.resolve([]),
    stop: () => camera.close(),
  };
}

/** What a decoded window shows. */
interface Proof {
  /** Pictures that do not follow the one before: where some are missing, or doubled. */
  readonly unfollowed: number;
  /** Whether all can be decoded, and there are as many as the time needs. */
  readonly isWhole: boolean;
  /** What is wrong; empty if nothing is. */
  readonly words: string;
}

export async function proofOf(movie: Buffer, durationMs: number, directory: string): Promise<Proof> {
  const file = join(directory, 'window.mp4');
  writeFileSync(file, movie);
  const { numbers, complaints } = await decodePictures(file);
  const breaks = numbers.flatMap((number, i) => {
    const before = numbers[i - 1];
    return before === undefined || number === (before + 1) % CLIP_PICTURES ? [] : [`${before} ${number} (at ${i})`];
  });
  const unfollowed = breaks.length;
  const expected = Math.round(durationMs / PICTURE_MS);
  const isLong = Math.abs(numbers.length - expected) < TOLERATED_PICTURES;
  const faults = [
    ...(complaints === '' ? [] : [complaints]),
    ...(isLong ? [] : [`${numbers.length} pictures instead of ${expected}`]),
  ];
  return { unfollowed, isWhole: faults.length === 0, words: [...breaks, ...faults].join(', ') };
}
