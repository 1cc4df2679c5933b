// Where footage has another place than the disks of its node.

import type { Reason } from '../../base/reason.ts';

/** What a target has of the footage on the disks of this node. */
interface TargetState {
  readonly name: string;
  readonly problem: Reason | undefined;
  /** Closed files of copied cameras that it does not have; while a long backlog is compared, at least so many. */
  readonly lackingFiles: number;
  /** How long the oldest file has waited for which it was time. */
  readonly lagMs: number;
  /** How long it keeps the footage of a camera, at most; Infinity: as long as nobody removes it. */
  readonly keepMs: number;
}

export interface CopyPlaces {
  /** `uncopied`: how many of these cameras have footage on this node alone. */
  places(cameraIds: readonly string[]): { readonly targets: readonly TargetState[]; readonly uncopied: number };
}
