// Decides whether the disk of a node is too full to record, from the results of writes. The node reports it to the cluster,
// which moves its cameras to other nodes. After that nothing is written here, so only free space shows that the problem is
// over.

import type { Space } from '../archive/disk/file-system.ts';
import { headroomFor } from '../archive/disk/space.ts';

interface FullDiskFault {
  readonly code: 'disk-full';
  readonly message: string;
}

const FAULT: FullDiskFault = { code: 'disk-full', message: 'the disk is full and no footage is left to remove' };
/** Free space of less than this many times the next write would be used up by the first camera. */
const SPARE_WRITES = 2;

export class FullDisk {
  #fault: FullDiskFault | undefined;

  get fault(): FullDiskFault | undefined {
    return this.#fault;
  }

  /**
   * `isExhausted`: a write failed for lack of space, and there was no footage to remove. `space`: undefined when it is
   * unknown.
   */
  see(isExhausted: boolean, space: Space | undefined): void {
    const hasSpace = space !== undefined && space.freeBytes >= SPARE_WRITES * headroomFor(0, space);
    if (hasSpace) this.#fault = undefined;
    else if (isExhausted) this.#fault = FAULT;
  }
}
