// The share of what is recorded in the memory for media.

import { SlabPool } from '../codec/slab.ts';
import type { MemoryAccount, MemoryBudget } from '../../base/memory-budget.ts';

/** Footage that waits for the disk may use this share, so that live streams continue meanwhile. */
const FOR_WRITING = 7 / 8;
/** Footage always has this share, even if there are too many cameras for the memory: it is enough for a working disk. */
const AT_LEAST_FOR_WRITING = 1 / 4;

/** Data that cameras send and that are not a fragment yet; they cannot be refused. */
export const forCameras = (memory: MemoryBudget): MemoryAccount => memory.open('cameras', { maxBytes: Infinity });

/** What waits for its turn without need, such as the first pictures of a connection, may use the blocks up to this share. */
const PLENTY = 7 / 8;

/** The blocks for all media that cameras send. What is in them counts, also while it waits for its time or its order. */
export function blocksIn(memory: MemoryBudget): SlabPool {
  const pool = new SlabPool(memory.limitBytes * PLENTY);
  memory.inBlocks = () => pool.usedBytes;
  return pool;
}

/** The share of standbys. */
const FOR_STANDBYS = 1 / 2;

/**
 * Only recording takes precedence over it. `shed` is set later, because the order of the accounts is fixed before it is
 * known.
 */
export function forStandbys(memory: MemoryBudget): (shed: (bytes: number) => void) => MemoryAccount {
  let release = (_bytes: number): void => {};
  const maxBytes = memory.limitBytes * FOR_STANDBYS;
  const account = memory.open('standby', { maxBytes, shed: (bytes) => release(bytes) });
  return (shed) => {
    release = shed;
    return account;
  };
}

/** The share of images that cameras make, fetched or kept. */
const FOR_SNAPSHOTS = 1 / 16;

export const forSnapshots = (memory: MemoryBudget): MemoryAccount =>
  memory.open('snapshots', { maxBytes: memory.limitBytes * FOR_SNAPSHOTS, isApart: true });

/** The share of what a disk may not have yet. */
const FOR_UNSYNCED = 1 / 4;

/** With several disks, what was written and not synced. Recording takes precedence over it. */
export const forUnsynced =
  (memory: MemoryBudget) =>
  (shed: () => void): MemoryAccount =>
    memory.open('unsynced', { maxBytes: memory.limitBytes * FOR_UNSYNCED, shed });

/** Opened last, so that all other users release memory for recording. */
export const forWriting = (memory: MemoryBudget): MemoryAccount =>
  memory.open('writing', {
    maxBytes: memory.limitBytes * FOR_WRITING,
    minBytes: memory.limitBytes * AT_LEAST_FOR_WRITING,
  });
