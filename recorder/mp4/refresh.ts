// Finds the key frames of a recorded file at which a decoder may forget everything before: IDR pictures (H.264 §7.4.1.2.4, H.265
// §3.72), and any key frame of codecs without open groups. Other key frames, such as the recovery points of open groups, are
// followed by pictures that refer to earlier ones.

import { entryCodec, hasParameterSets } from './entry-sets.ts';
import { headsOfKeyFrames } from './in-band-sets.ts';
import type { ReadAt } from './reader.ts';
import type { TrackIndex } from './sample-index.ts';

/** Reads the start of each key frame if the codec requires it. */
export async function readRefreshes(read: ReadAt, video: TrackIndex): Promise<ReadonlySet<number>> {
  const mayBeOpen = hasParameterSets(video.header.sampleEntry);
  const refreshes = new Set<number>();
  if (!mayBeOpen) {
    for (let i = 0; i < video.sizes.length; i++) if (video.syncs[i] === 1) refreshes.add(i);
    return refreshes;
  }
  const isH264 = entryCodec(video.header.sampleEntry) === 'avc1';
  for (const { sample, head } of await headsOfKeyFrames(read, video)) {
    if (beginsWithRefresh(head, isH264)) refreshes.add(sample);
  }
  return refreshes;
}

/** Whether the first slice belongs to an IDR picture; false if it is not in `head`. */
function beginsWithRefresh(head: Buffer, isH264: boolean): boolean {
  for (let at = 0; at + 5 <= head.length; at += 4 + head.readUInt32BE(at)) {
    const first = head[at + 4] as number;
    const type = isH264 ? first & 0x1f : (first >> 1) & 0x3f;
    // In H.264 slices are types 1 to 5, and 5 is IDR. In H.265 they are types 0 to 31, and 19 and 20 are IDR.
    if (isH264 ? type >= 1 && type <= 5 : type < 32) return isH264 ? type === 5 : type === 19 || type === 20;
  }
  return false;
}
