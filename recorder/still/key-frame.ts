// Key frames as movies of one picture: of a camera's files, the newest one.

import { PartFile, readIndex } from '../jobs/recorded-part.ts';
import { concat } from '../mp4/box.ts';
import { buildFragment } from '../mp4/fragment.ts';
import { readSetsInForce } from '../mp4/in-band-sets.ts';
import { initSegmentOf } from '../mp4/init.ts';
import type { TrackHeader } from '../mp4/movie.ts';

/** A file without a key frame was started a moment ago or is damaged; the previous ones have some. */
export const MAX_FILES = 8;

/** `paths`: newest first. Undefined if the newest files have none. Throws the system's error if the disk fails. */
export async function newestKeyFrame(paths: readonly string[]): Promise<Buffer | undefined> {
  for (const path of paths) {
    const file = await PartFile.open(path);
    if (!file) continue;
    try {
      const movie = await lastKeyFrame(file);
      if (movie) return movie;
    } finally {
      await file.close();
    }
  }
  return undefined;
}

async function lastKeyFrame(file: PartFile): Promise<Buffer | undefined> {
  const index = await readIndex(file);
  const video = index?.tracks.find(({ header }) => header.kind === 'video');
  const sample = video?.syncs.lastIndexOf(1) ?? -1;
  if (!video || sample < 0) return undefined;
  const sets = (await readSetsInForce(file.read, video, sample + 1))?.(sample);
  const picture = await file.read(video.offsets[sample] as number, video.sizes[sample] as number);
  return movieOf(video.header, sets ? concat([sets, picture]) : picture);
}

/** `picture`: a key frame as its file has it, with the parameter sets that it needs. */
export function movieOf(header: TrackHeader, picture: Buffer): Buffer {
  const sample = { size: picture.length, duration: 1, compositionOffset: 0, sync: true };
  const fragment = buildFragment(1, [{ trackId: header.trackId, baseDecodeTime: 0, samples: [sample] }]);
  return Buffer.concat([initSegmentOf([header]), fragment, picture]);
}
