// Decides on which disk a camera's files of the next day are. Pure.

/** A disk that takes new files. */
export interface DiskChoice {
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** How much more of the footage than its size suggests it gets. */
  readonly weight: number;
  /** Cameras whose files go to it now. */
  readonly cameras: number;
}

/** A disk on which old footage is removed for new counts with this part of its size: then free space says nothing. */
const LEAST_SHARE = 0.05;

/**
 * The index of the disk with the most free space for each of its cameras; -1 without a disk. The cameras of a day are shared out
 * in this proportion: all of them would begin their day on the emptiest disk, and that disk would do all the work.
 */
export function chooseDisk(disks: readonly DiskChoice[]): number {
  let chosen = -1;
  let best = -Infinity;
  for (const [i, { freeBytes, totalBytes, weight, cameras }] of disks.entries()) {
    const room = (weight * Math.max(freeBytes, totalBytes * LEAST_SHARE)) / (cameras + 1);
    if (room > best) [chosen, best] = [i, room];
  }
  return chosen;
}
