// What can be asked of a place besides this node's disk that may hold footage of cameras: another node (`node-holder.ts`), or a target
// with copies (`recorder/copies/`). Nothing else in this room knows that.

import type { Readable } from 'node:stream';
import type { z } from 'zod';
import type { Interval } from '../../base/interval.ts';
import type { Asker } from '../peers/peer-requests.ts';
import type { WholeAnswer } from '../peers/whole-answer.ts';
import type { Footage } from './footage.ts';
import type { FootageHolder } from '../contract/other-node.ts';
import type { SegmentItem } from './segment-item.ts';
import type { TimelineCamera } from './timeline-item.ts';

/** The segments of a camera in an interval, and the days with footage. */
export interface SegmentListing {
  readonly archive: readonly z.output<typeof SegmentItem>[];
  /** Ascending. */
  readonly days: readonly string[];
  /** Of a page: null on the last. */
  readonly next?: string | null | undefined;
}

export interface AskedTimes {
  readonly cameraIds: readonly string[];
  readonly interval: Interval;
  /** Shorter gaps and pauses are only counted. */
  readonly resolutionMs: number;
  /** Whether to include when their previews were recorded. */
  readonly preview: boolean;
  /** Whether to include what their pictures show. */
  readonly activity?: boolean;
  /** To the millisecond, whatever the number of gaps, and with removed footage. */
  readonly isWhole?: boolean;
}

/** Bytes of a file, without the one at `to`. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

export interface Holder extends FootageHolder {
  /** The name of a place that has only copies, of files with the same paths: it is asked for what the others lack. */
  readonly copiesAt?: string;
  /** Its files that may have footage of the interval, in any order; some with their indexes, if those are wanted. Never rejects. */
  files(
    cameraId: string,
    interval: Interval,
    caller: Asker,
    withIndexes?: boolean,
  ): Promise<WholeAnswer<readonly Footage[]>>;
  /** Its list of the segments in the interval, as `GET .../segments` answers. `query`: in the form of that route. Never rejects. */
  segments(cameraId: string, query: string, caller: Asker): Promise<WholeAnswer<SegmentListing>>;
  /** When it has footage of the cameras, and why it has none. Never rejects. */
  times(asked: AskedTimes, caller: Asker): Promise<WholeAnswer<readonly TimelineCamera[]>>;
  /** Sends bytes of one of these files. Rejects with FileGone, HolderLost, and the signal's reason. */
  stream(file: Footage, range: ByteRange, caller: Asker, signal?: AbortSignal): Promise<Readable>;
  /** The bytes of one of these files: of one that grows, with the index that it would have if it ended now. Rejects as `stream`. */
  sizeOf(file: Footage, caller: Asker, signal?: AbortSignal): Promise<number>;
}
