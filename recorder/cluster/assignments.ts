// Which cameras are this node's, judged by what the API server says of them. Cameras in, assignments out; pure.

import type { Camera } from '../../crds/camera.ts';

/** A camera that this node records. */
export interface Assignment {
  readonly camera: Camera;
  /** Of the assignment it is recorded under; the higher epoch is the true one. */
  readonly epoch: number;
  /** Recorded on until the next node has written its first key frame. */
  readonly isHandedOver: boolean;
}

/**
 * Assignments of `node`, by camera. A camera that is given away is kept only while its handover is pending, and then
 * under the epoch before: the new one is the new node's.
 *
 * `known`: what was assigned before, so that a camera that is given away and was never ours is not begun.
 */
export function assignmentsOf(
  node: string,
  pool: string,
  cameras: Iterable<Camera>,
  known: ReadonlyMap<string, Assignment>,
): Map<string, Assignment> {
  const ours = new Map<string, Assignment>();
  for (const camera of cameras) {
    const { name } = camera.metadata;
    const assignment = camera.status?.assignment;
    if (!assignment || camera.metadata.deletionTimestamp !== undefined) continue;
    if (camera.spec.poolRef.name !== pool) continue;
    const last = known.get(name);
    // One that was deleted and made anew begins with low epochs again.
    const before = last?.camera.metadata.uid === camera.metadata.uid ? last : undefined;
    // An answer of a server that lags behind what we have seen.
    if (before && !before.isHandedOver && assignment.epoch < before.epoch) {
      ours.set(name, before);
    } else if (assignment.node === node) {
      ours.set(name, { camera, epoch: assignment.epoch, isHandedOver: false });
    } else if (assignment.previousNode === node && assignment.handover === 'Pending' && before) {
      ours.set(name, { camera, epoch: Math.min(before.epoch, assignment.epoch - 1), isHandedOver: true });
    }
  }
  return ours;
}
