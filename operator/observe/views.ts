// Resources as the planner sees them: objects of the caches in, values without what it does not need out. Pure.

import type { Camera, CameraAssignment } from '../../crds/camera.ts';
import type { RecorderNode, ReportedCamera } from '../../crds/recorder-node.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import type { Assignment, CameraReport, CameraView, NodeView, PoolView } from '../plan/snapshot.ts';

export function viewOfPool({ metadata, spec, status }: RecorderPool): PoolView {
  const { failover, limits, membership } = spec;
  return {
    name: metadata.name,
    maxCamerasPerNode: limits.maxCamerasPerNode,
    maxConcurrentMoves: failover.maxConcurrentMoves,
    unavailableAfterMs: failover.unavailableAfterSeconds * 1000,
    renewMs: failover.renewSeconds * 1000,
    failbackAfterMs: failover.failbackAfterSeconds * 1000,
    membership: membership.mode,
    leader: status?.leader,
  };
}

export function viewOfCamera({ metadata, spec, status }: Camera): CameraView {
  const { suspend, placement } = spec;
  const { priority, nodeSelector = {}, preferredNode, failover } = placement;
  return {
    name: metadata.name,
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    suspend,
    priority,
    nodeSelector,
    preferredNode: preferredNode === '' ? undefined : preferredNode,
    failover,
    assignment: status?.assignment && assignmentOf(status.assignment),
  };
}

const assignmentOf = ({ node, epoch, previousNode, handover, reason, lastSeenTime }: CameraAssignment): Assignment => ({
  node,
  epoch,
  previousNode,
  handover: handover === 'Pending' ? 'Pending' : handover && 'Complete',
  reason: String(reason),
  lastSeenTime,
});

/** `labels`: of the Kubernetes node. One that was removed from the cluster is left by its cameras, and gets none. */
export function viewOfNode({ metadata, spec, status }: RecorderNode, labels: NodeView['labels']): NodeView {
  const isRemoved = spec.role === 'Removed';
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return {
    name: metadata.name,
    resourceVersion: metadata.resourceVersion ?? '',
    labels,
    role: spec.role === 'Voter' ? 'Voter' : 'Learner',
    drain: spec.drain || isRemoved,
    canRecord: ready?.status !== 'False',
    freeBytes: status?.freeBytes,
    cameras: reportsIn(status?.cameras ?? []),
  };
}

const reportsIn = (
  cameras: readonly Pick<ReportedCamera, 'name' | 'epoch' | 'state'>[],
): ReadonlyMap<string, CameraReport> =>
  new Map(cameras.map(({ name, epoch, state }) => [name, { epoch, state: String(state) }]));
