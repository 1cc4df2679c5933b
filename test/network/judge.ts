// Recorded pictures against those that were sent: which are there, whole and in order, and how wrongly they are dated.

import { createHash } from 'node:crypto';
import type { VideoMedia } from '../camera/media.ts';
import { nalType } from '../support/packetize.ts';
import type { RecordedFile, Stamp } from './stamped-picture.ts';

export interface Verdict {
  readonly sent: number;
  /** Those, and the ones that were captured while nobody played. */
  readonly captured: number;
  readonly recorded: number;
  /** How much later, and earlier, than it was captured a picture is dated, at most. */
  readonly lateMs: number;
  readonly earlyMs: number;
  /** Pictures that are not what was sent. */
  readonly altered: number;
  /** Pictures that come, or are dated, before the one before them. */
  readonly disordered: number;
}

const hashOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** `files` of one camera, in the order of time. */
export function judge(sent: readonly Stamp[], files: readonly RecordedFile[], media: VideoMedia): Verdict {
  const hashes = media.frames.map(({ nals }) =>
    hashOf(Buffer.concat(nals.filter((nal) => [1, 5].includes(nalType(nal, 'h264'))))),
  );
  let lateMs = -Infinity;
  let earlyMs = -Infinity;
  let altered = 0;
  let disordered = 0;
  let first: number | undefined;
  let last = -1;
  let lastDatedMs = -Infinity;
  const pictures = files.flatMap((file) => file.pictures);
  for (const { stamp, datedMs, slices } of pictures) {
    const hash = hashOf(slices);
    const picture = stamp ?? sent.find(({ index }) => index > last && hashes[index % hashes.length] === hash);
    if (!picture || hash !== hashes[picture.index % hashes.length]) {
      altered++;
      continue;
    }
    const { index, capturedMs } = picture;
    lateMs = Math.max(lateMs, datedMs - capturedMs);
    earlyMs = Math.max(earlyMs, capturedMs - datedMs);
    if (index <= last || datedMs <= lastDatedMs) disordered++;
    first ??= index;
    last = index;
    lastDatedMs = datedMs;
  }
  // Before the first key frame, and what was on its way at the end, is none of the network's business.
  const due = sent.filter(({ index }) => index >= (first ?? Infinity) && index <= last).length;
  const captured = first === undefined ? 0 : last - first + 1;
  return { sent: due, captured, recorded: pictures.length, lateMs, earlyMs, altered, disordered };
}
