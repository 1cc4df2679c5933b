// Converts resources to the values that the planner needs. Pure.

import { isSuspended, type Camera, type CameraAssignment } from '../../crds/camera.ts';
import { memberOf, type RecorderNode, type ReportedCamera, type ReportedStandby } from '../../crds/recorder-node.ts';
import { NO_PROCESS, renewMsOf } from '../../crds/renewal.ts';
import { REBALANCE } from '../../crds/names.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import type { KubeObject } from '../kube/api.ts';
import type { Assignment, CameraView, LeaseView, NodeView, PoolView } from '../plan/snapshot.ts';

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
    standby: failover.standby,
    ...(metadata.annotations?.[REBALANCE] !== undefined && { rebalance: metadata.annotations[REBALANCE] }),
    leader: status?.leader,
  };
}

export function viewOfLease({ metadata, spec }: KubeObject): LeaseView {
  const { leaseDurationSeconds, holderIdentity } = (spec ?? {}) as Readonly<Record<string, unknown>>;
  const renewMs = renewMsOf(leaseDurationSeconds);
  const process = typeof holderIdentity === 'string' && holderIdentity !== '' ? holderIdentity : undefined;
  const resourceVersion = metadata.resourceVersion ?? '';
  if (process?.endsWith(NO_PROCESS)) return { resourceVersion, renewMs, isReleased: true };
  return { resourceVersion, renewMs, ...(process !== undefined && { process }) };
}

export function viewOfCamera({ metadata, spec, status }: Camera): CameraView {
  const { placement } = spec;
  const { priority, nodeSelector = {}, preferredNode, failover, standby } = placement;
  return {
    name: metadata.name,
    uid: metadata.uid ?? '',
    resourceVersion: metadata.resourceVersion ?? '',
    suspend: isSuspended({ spec, status }),
    priority,
    nodeSelector,
    preferredNode: preferredNode === '' ? undefined : preferredNode,
    failover,
    wantsStandby: standby,
    assignment: status?.assignment && assignmentOf(status.assignment),
    standby: status?.standby,
  };
}

const assignmentOf = ({
  node,
  epoch,
  previousNode,
  handover,
  reason,
  lastSeenTime,
  lostNodes,
  home,
}: CameraAssignment): Assignment => ({
  node,
  epoch,
  previousNode,
  handover: handover === 'Pending' ? 'Pending' : handover && 'Complete',
  reason: String(reason),
  lastSeenTime,
  ...(lostNodes && lostNodes.length > 0 && { lostNodes }),
  ...(home !== undefined && { home }),
});

type NodeArchive = NonNullable<NonNullable<RecorderNode['status']>['archives']>[number];

/** What a node reports, by camera name. */
export interface Reports {
  /** The node has reported its archives; otherwise a missing one means nothing. */
  readonly isTold: boolean;
  readonly cameras: ReadonlyMap<string, ReportedCamera>;
  /** Cameras of other nodes that it holds. */
  readonly standbys: ReadonlyMap<string, ReportedStandby>;
  readonly archives: ReadonlyMap<string, NodeArchive>;
}

export const reportsOf = ({ status }: RecorderNode): Reports => ({
  isTold: status?.archiveID !== undefined,
  cameras: new Map(status?.cameras?.map((report) => [report.name, report])),
  standbys: new Map(status?.standbys?.map((report) => [report.name, report])),
  archives: new Map(status?.archives?.map((archive) => [archive.camera, archive])),
});

/** What Kubernetes shows about the node of a recorder; without it, the labels of its RecorderNode. */
export interface NodePlace {
  readonly labels: NodeView['labels'];
  readonly hasRecorder: boolean;
  /** Why its workloads must leave it; undefined: they need not. */
  readonly leaves: string | undefined;
}

/** A removed node gets no cameras, and its cameras leave it. */
export function viewOfNode(node: RecorderNode, place: NodePlace, { cameras }: Reports): NodeView {
  const { metadata, spec, status } = node;
  const drainCause =
    spec.role === 'Removed' ? 'spec.role is Removed' : spec.drain ? 'spec.drain is true' : place.leaves;
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return {
    name: metadata.name,
    resourceVersion: metadata.resourceVersion ?? '',
    labels: place.labels,
    role: spec.role === 'Voter' ? 'Voter' : 'Learner',
    member: memberOf(node),
    drain: drainCause !== undefined,
    isRemoved: spec.role === 'Removed',
    drainCause,
    canRecord: ready?.status !== 'False',
    hasRecorder: place.hasRecorder,
    hasReported: status?.version !== undefined,
    freeBytes: status?.freeBytes,
    // A state of a newer version is also a string.
    cameras: cameras as NodeView['cameras'],
  };
}
