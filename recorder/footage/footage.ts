// A file with footage of a camera, wherever it is, and the position of a time in it.

import type { Interval } from '../../base/interval.ts';
import { ticksAt, wallAt as wallOf } from '../mp4/meta.ts';
import type { FileParts } from '../mp4/parts.ts';

/** A file with footage in the interval. */
export interface Footage {
  /** Names it at its holder, and everywhere says what it is: `names.ts`. */
  readonly path: string;
  readonly isOpen: boolean;
  /** Of the file, when it was listed. */
  readonly sizeBytes: number;
  readonly parts: FileParts;
  /** Who holds it: a node, by its name. */
  readonly nodeId: string;
  /** Its index, if that was asked for with the list: of a file that grows, as it would be if the file ended now. */
  readonly index?: Buffer | undefined;
  /** Where another holder has footage of a part of the same time: what counts of this file. */
  readonly turn?: Turn;
}

/** Milliseconds since 1970. */
export interface Turn extends Interval {
  /** The first pictures of the file with which another holder continues then: see `FileParts`. */
  readonly next?: FileParts['lead'];
}

/** Longer ones are read in pieces: a day of video and audio needs half of it. */
const MAX_INDEX_BYTES = 64 * 1024 * 1024;

/** Where the index of a completed file begins, which the rest of the file is; undefined if that is not known. */
export function indexAt({ isOpen, sizeBytes, parts }: Footage): number | undefined {
  const end = parts.unit === 'fragments' && !isOpen ? parts.starts.at(-1) : undefined;
  return end !== undefined && end < sizeBytes && sizeBytes - end < MAX_INDEX_BYTES ? end : undefined;
}

/** The wall time at which the picture was captured that the file shows at `time`, in video ticks. */
export const wallAt = (parts: FileParts, time: number): number => wallOf(parts.meta, time - parts.shownFrom);

/** The time in the file, in video ticks, at which it shows what was captured at `wallMs`. */
export const timeAt = (parts: FileParts, wallMs: number): number => parts.shownFrom + ticksAt(parts.meta, wallMs);
