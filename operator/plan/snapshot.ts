// The interface of this room: the planner's input (Snapshot) and output (Plan). They are plain values: `observe` fills the
// snapshot from the caches, `controllers` carry out the plan. Ages are in milliseconds on the observer's monotonic clock.

import type { AssignmentReason } from '../../crds/camera.ts';
import type { MemberState } from '../../crds/recorder-node.ts';

export type Role = 'Learner' | 'Voter';
export type Reason = AssignmentReason;

/** `Camera.status.assignment` without its time, which is added when it is written. */
export type Assignment = {
  /** Absent: no node records the camera. */
  readonly node?: string | undefined;
  readonly epoch: number;
  readonly previousNode?: string | undefined;
  readonly handover?: 'Pending' | 'Complete' | undefined;
  readonly reason: string;
  /** Last renewal time in the Lease of the lost node, as that node wrote it. Kept until a node takes the camera up. */
  readonly lastSeenTime?: string | undefined;
  /** Nodes that had the camera when their recorders fell silent although the machines were alive. */
  readonly lostNodes?: readonly string[] | undefined;
  /** The node where the camera belongs: it left that for a cause that may pass, and returns to it. Absent: it has left none. */
  readonly home?: string | undefined;
};

/** `Camera.status.standby`: the node that holds the last seconds of the camera. */
export type Standby = {
  /** Absent: none. */
  readonly node?: string | undefined;
  /** Grows with each node that is chosen. */
  readonly epoch: number;
  /** `<node>/<random>` of the recorder that records the camera: another process of this node shows that it was restarted. */
  readonly process?: string | undefined;
};

/** A Camera as a cache or the API server shows it. Cameras that are being deleted are left out. */
export type CameraView = {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly suspend: boolean;
  readonly priority: number;
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly preferredNode?: string | undefined;
  readonly failover: 'Automatic' | 'Never';
  /** Undefined: as the pool says. */
  readonly wantsStandby?: boolean | undefined;
  readonly assignment?: Assignment | undefined;
  readonly standby?: Standby | undefined;
};

/** What a node reports about one camera (`RecorderNode.status.cameras[]`). */
export type CameraReport = { readonly epoch: number; readonly state: string; readonly reason?: string | undefined };

/** The node cannot read the login of the camera, so it does not record the camera. */
export const lacksLogin = ({ reason }: CameraReport): boolean => reason === 'NoCredentials';

/** A RecorderNode of the pool as the cache shows it. */
export type NodeView = {
  readonly name: string;
  readonly resourceVersion: string;
  /** Labels of the Kubernetes node. */
  readonly labels: Readonly<Record<string, string>>;
  readonly role: Role;
  /** What etcd says of the node's own member of it; undefined where recorders run no etcd: the role alone says who votes. */
  readonly member?: MemberState | undefined;
  readonly drain: boolean;
  /** It left the pool, so it records nothing at all; a node that is only drained records what no other can. */
  readonly isRemoved: boolean;
  /** Why it is drained, for people. */
  readonly drainCause?: string | undefined;
  /** False if the node reports that it cannot record: it has no archive, or that of another node. */
  readonly canRecord: boolean;
  /**
   * According to Kubernetes the machine is alive and a recorder was started on it, so a silence is that of the recorder alone.
   */
  readonly hasRecorder: boolean;
  /** A recorder has reported from this node, now or earlier. */
  readonly hasReported: boolean;
  readonly freeBytes?: number | undefined;
  readonly cameras: ReadonlyMap<string, CameraReport>;
};

export type PoolView = {
  readonly name: string;
  readonly maxCamerasPerNode: number;
  readonly maxConcurrentMoves: number;
  readonly unavailableAfterMs: number;
  readonly renewMs: number;
  readonly failbackAfterMs: number;
  readonly membership: 'Automatic' | 'Manual';
  /** Cameras that do not say otherwise have a standby. */
  readonly standby: boolean;
  /** The id of the proposal to rebalance that a person approves. */
  readonly rebalance?: string | undefined;
  /** `RecorderPool.status.leader`: kept as long as possible. */
  readonly leader?: string | undefined;
};

/** What a Lease of a node shows. Its times are never read: the clocks of nodes may be wrong. */
export type LeaseView = {
  readonly resourceVersion: string;
  /** The interval that the node renews at; undefined before its first renewal. */
  readonly renewMs: number | undefined;
  /** `<node>/<random>` of the process that renewed it; undefined before its first renewal. */
  readonly process?: string | undefined;
  /** The recorder has said that it ends. */
  readonly isReleased?: boolean;
};

/** What the caches show of one pool. */
export type PoolObjects = {
  readonly pool: PoolView;
  readonly nodes: readonly NodeView[];
  readonly cameras: readonly CameraView[];
};

/**
 * What the observer knows of a node from its Lease.
 * - Live: the Lease changed within `unavailableAfterSeconds`, or within three renewals if the node still renews so rarely.
 * - Unavailable: it has not changed for that long while a majority was heard all the time, and a read of the Lease confirmed
 * this.
 * - Unknown: neither, as after a start of the operator or an outage of the API server.
 *
 * A node that is being drained is Unavailable as soon as its recorder has said that it ends: it does not come back.
 */
export type Liveness = {
  readonly state: 'Live' | 'Unknown' | 'Unavailable';
  /** The Lease changed within the last three renewals. Cameras are moved only to such nodes. */
  readonly heard: boolean;
  /** Time since the last change; undefined if none was seen. */
  readonly silentMs: number | undefined;
  /** Time since the node became Live; 0 if it is not Live. */
  readonly liveForMs: number;
  /** How often the node renews its Lease. */
  readonly renewMs: number;
  /** The recorder ended as it should: nothing that it recorded made it fall silent. */
  readonly isReleased?: boolean;
};

export type PlannedNode = NodeView & {
  readonly liveness: Liveness;
  /** The process of its recorder, by its last renewal; undefined before the first. */
  readonly process?: string | undefined;
  /** It recently failed to take up cameras, so it is chosen last. */
  readonly reluctant: boolean;
};

export type PlannedCamera = CameraView & {
  /** A write of an assignment is in flight and may or may not succeed. No second one is planned. */
  readonly writing: boolean;
  /** How long the observer has known this assignment. */
  readonly assignedForMs: number;
  /** How long the node has not listed the camera under this epoch; undefined while it does, or if there is no node. */
  readonly missingForMs: number | undefined;
  /** The node has listed the camera under this epoch before. */
  readonly wasTakenUp: boolean;
  /** How long the node has not said that it lacks the login of the camera; 0 while it does, at most `assignedForMs`. */
  readonly loginForMs: number;
};

export type Snapshot = {
  readonly pool: PoolView;
  readonly nodes: readonly PlannedNode[];
  readonly cameras: readonly PlannedCamera[];
  /** How long a majority has been heard without interruption; 0 if none is. Reports from before that may be outdated. */
  readonly majorityForMs: number;
  /** A change of a role is being written; no second one is planned. */
  readonly changingRoles: boolean;
  /** The API server did not keep a standby that was written: its kind Camera is older than this operator. */
  readonly dropsStandbys: boolean;
};

/**
 * What must be confirmed by a read from the API server itself, not from a cache, before a write is sent. If it is not confirmed,
 * the write is dropped.
 */
export type Confirmation =
  /** The node's RecorderNode must not list the camera under this epoch. */
  | { readonly kind: 'NotTakenUp'; readonly node: string; readonly epoch: number }
  /** The pool must have no RecorderNode of this name. */
  | { readonly kind: 'NodeGone'; readonly node: string };

/** Replace `Camera.status.assignment` if the Camera still has this resourceVersion. */
export type AssignmentWrite = {
  readonly camera: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Epoch of the assignment that is replaced; 0 if there is none. */
  readonly fromEpoch: number;
  readonly assignment: Assignment;
  /** Undefined: it stays as it is. */
  readonly standby?: Standby | undefined;
  /** The camera does not move; only what is recorded about it changes. */
  readonly isNote: boolean;
  /** Sent before all others, because no node records the camera. */
  readonly urgent: boolean;
  readonly confirm?: Confirmation | undefined;
  /**
   * The node that the camera leaves because it is silent; the last renewal of that node becomes the assignment's `lastSeenTime`.
   */
  readonly lostNode?: string | undefined;
};

/** Change `RecorderNode.spec.role` if the object still has this resourceVersion. */
export type RoleWrite = { readonly node: string; readonly resourceVersion: string; readonly role: Role };

/** A condition without times: `lastTransitionTime` is added when it is written. */
export type PlannedCondition = {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
};

export type Plan = {
  /** In the order in which they should be sent. */
  readonly writes: readonly AssignmentWrite[];
  readonly role?: RoleWrite | undefined;
  readonly cameras: ReadonlyMap<string, PlannedCondition>;
  /** The condition `Standby` of each camera that wants one; whether it is held, its node says. */
  readonly standbys: ReadonlyMap<string, PlannedCondition>;
  /** The conditions QuorumAvailable, FailoverSuspended, CapacityAvailable and Balanced of the pool. */
  readonly pool: readonly PlannedCondition[];
  readonly leader: string | undefined;
  readonly voters: readonly string[];
  readonly quorum: { readonly needed: number; readonly live: number };
  /** Cameras of each node: its own, and those that it records until a handover ends. A drained node has neither. */
  readonly loads: ReadonlyMap<string, { readonly assigned: number; readonly leaving: number }>;
  /** After how long the plan may change with time alone; undefined if it cannot. */
  readonly recheckMs: number | undefined;
};
