// Finds the files with footage of a camera in an interval of wall time, and the position of a time in them.

import { z } from 'zod';
import { concurrently } from '../../base/concurrently.ts';
import type { Interval } from '../../base/interval.ts';
import { HOUR_MS } from '../../base/units.ts';
import { ArchiveError } from '../archive/disk/faults.ts';
import { IntervalQuery as Bounds, MAX_INTERVAL_MS, requireAtMostOneDay, requireOrder } from '../http/interval.ts';
import { ApiError } from '../http/problem.ts';
import { flag, LinkQuery } from '../http/query.ts';
import { ticksAt, wallAt as wallOf } from '../mp4/meta.ts';
import type { FileParts } from '../mp4/parts.ts';
import type { PlaybackArchive } from './deps.ts';
import type { PartsCache } from './parts-cache.ts';

/** The duration that is played without `from`. */
const DEFAULT_INTERVAL_MS = HOUR_MS;
const CONCURRENT_READS = 8;

export const IntervalQuery = Bounds.extend({
  ...LinkQuery.shape,
  local: flag().optional().describe('In a cluster: only the footage on this node.'),
});

/** The camera id is not validated: an invalid one simply has no footage. */
export const CameraParams = z.object({ camera_id: z.string() });

/** Without `from`: an hour. Without `to`: the longest interval. Throws ApiError. */
export function toInterval({ from, to }: z.output<typeof IntervalQuery>, nowMs: number): Interval {
  const fromMs = from === undefined ? (to === undefined ? nowMs : to * 1000) - DEFAULT_INTERVAL_MS : from * 1000;
  const toMs = to === undefined ? fromMs + MAX_INTERVAL_MS : to * 1000;
  requireOrder({ from: fromMs, to: toMs });
  requireAtMostOneDay({ fromMs, toMs });
  return { fromMs, toMs };
}

/** A file with footage in the interval. */
export interface Footage {
  /** Relative to the record path of the node that has the file. */
  readonly path: string;
  readonly isOpen: boolean;
  /** Of the file, when it was listed. */
  readonly sizeBytes: number;
  readonly parts: FileParts;
  /** The node whose disk holds it; undefined outside of a cluster. */
  readonly nodeId?: string;
  /** Where another node recorded a part of the same time: what is played of this file. */
  readonly turn?: Turn;
}

/** Milliseconds since 1970. */
export interface Turn extends Interval {
  /** The first pictures of the file with which another node continues then: see `FileParts`. */
  readonly next?: FileParts['lead'];
}

interface FootageDeps {
  readonly archive: PlaybackArchive;
  readonly parts: PartsCache;
}

/** Files that may hold footage of the interval, oldest first. Files that cannot be played are left out. */
export async function footageOf(deps: FootageDeps, cameraId: string, interval: Interval): Promise<Footage[]> {
  const { segments } = await listed(deps.archive.list(cameraId, { ...interval, tzOffsetMinutes: 0 }));
  // Cached parts are returned without a promise: awaiting one would take longer than the lookup.
  const found = await concurrently(segments, CONCURRENT_READS, (segment) => deps.parts.partsOf(segment));
  return segments.flatMap(({ path, isOpen, sizeBytes }, i) => {
    const parts = found[i];
    return parts && parts.starts.length > 0 ? [{ path, isOpen, sizeBytes, parts }] : [];
  });
}

/** Turns the error of an archive that cannot be read into an answer. */
async function listed<T>(list: Promise<T>): Promise<T> {
  try {
    return await list;
  } catch (err) {
    if (err instanceof ArchiveError) throw new ApiError(500, 'archive-unreadable', err.message, { cause: err });
    throw err;
  }
}

/** The wall time at which the picture was captured that the file shows at `time`, in video ticks. */
export const wallAt = (parts: FileParts, time: number): number => wallOf(parts.meta, time - parts.shownFrom);

/** The time in the file, in video ticks, at which it shows what was captured at `wallMs`. */
export const timeAt = (parts: FileParts, wallMs: number): number => parts.shownFrom + ticksAt(parts.meta, wallMs);
