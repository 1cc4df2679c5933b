// Whether the disk of a node is so full that the node cannot record: what writing met goes in, what the cluster is told comes
// out. In the cluster its cameras then go to other nodes, after which nobody writes here: only room says that it is over.

import type { Space } from './archive/disk/file-system.ts';
import { headroomFor } from './archive/retention/plan.ts';

export interface FullDiskFault {
  readonly code: 'disk-full';
  readonly message: string;
}

const FAULT: FullDiskFault = { code: 'disk-full', message: 'the disk is full and no footage is left to remove' };
/** Room for less than this many times what writing needs next would be gone with the first camera. */
const ROOM = 2;

export class FullDisk {
  #fault: FullDiskFault | undefined;

  get fault(): FullDiskFault | undefined {
    return this.#fault;
  }

  /** `isExhausted`: a write found no room, and nothing was left to remove. `space`: undefined when nobody knows. */
  see(isExhausted: boolean, space: Space | undefined): void {
    const hasRoom = space !== undefined && space.freeBytes >= ROOM * headroomFor(0, space);
    if (hasRoom) this.#fault = undefined;
    else if (isExhausted) this.#fault = FAULT;
  }
}
