// How long footage of this node can be kept with its limits and its disk at the current bit rates. Pure.

import type { Space } from '../disk/file-system.ts';
import { bytesOf } from '../disk/space.ts';
import type { RetentionLimits } from './plan.ts';

interface OutlookInput {
  /** Of the node. */
  readonly limits: RetentionLimits;
  /** Of all footage. */
  readonly footageBytes: number;
  readonly space: Space;
  readonly headroomBytes: number;
  readonly bytesPerSecond: number;
}

/**
 * The age of the oldest footage once the space of the node is full, in milliseconds, if footage of all cameras is kept
 * equally long; undefined while nothing is written.
 */
export function outlookOf({
  limits,
  footageBytes,
  space,
  headroomBytes,
  bytesPerSecond,
}: OutlookInput): number | undefined {
  if (bytesPerSecond <= 0) return undefined;
  const keptFree = Math.max(headroomBytes, limits.minFree ? bytesOf(limits.minFree, space) : 0);
  const bytes = Math.min(limits.maxSizeBytes ?? Infinity, footageBytes + space.freeBytes - keptFree);
  return (Math.max(0, bytes) * 1_000) / bytesPerSecond;
}

/** How long footage of a camera should be kept, in milliseconds; undefined: as long as there is space. */
export function wantedAge(node: RetentionLimits, own: RetentionLimits | undefined): number | undefined {
  const ages = [node.maxAgeMs, own?.maxAgeMs].filter((age) => age !== undefined);
  return ages.length > 0 ? Math.min(...ages) : undefined;
}
