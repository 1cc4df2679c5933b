// The door of this room: what the planner is told of one pool, and what it answers. Values only; `observe` fills the
// first from the caches, `controllers` carry out the second. Ages are milliseconds on the observer's monotonic clock.

import type { AssignmentReason } from '../../crds/camera.ts';

export type Role = 'Learner' | 'Voter';
export type Reason = AssignmentReason;

/** `Camera.status.assignment` without its time, which is stamped when it is written. */
export type Assignment = {
  /** Absent: nobody records the camera. */
  readonly node?: string | undefined;
  readonly epoch: number;
  readonly previousNode?: string | undefined;
  readonly handover?: 'Pending' | 'Complete' | undefined;
  readonly reason: string;
  /** Last renewal of the Lease of a node that was lost, as that wrote it. Handed on until a node takes the camera up. */
  readonly lastSeenTime?: string | undefined;
  /** Nodes that had the camera when their recorders fell silent, although the machines lived. */
  readonly lostNodes?: readonly string[] | undefined;
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
  readonly assignment?: Assignment | undefined;
};

/** One camera as its node reports it (`RecorderNode.status.cameras[]`). */
export type CameraReport = { readonly epoch: number; readonly state: string };

/** A RecorderNode of the pool as a cache shows it. */
export type NodeView = {
  readonly name: string;
  readonly resourceVersion: string;
  /** Labels of the Kubernetes node. */
  readonly labels: Readonly<Record<string, string>>;
  readonly role: Role;
  readonly drain: boolean;
  /** False when the node itself says that it cannot record: no archive, the archive of another node. */
  readonly canRecord: boolean;
  /** Kubernetes says that its machine is there and that a recorder was started on it: its silence is the recorder's own. */
  readonly hasRecorder: boolean;
  readonly freeBytes?: number | undefined;
  readonly cameras: ReadonlyMap<string, CameraReport>;
};

export type PoolView = {
  readonly name: string;
  /** `Camera`s that one node may have. */
  readonly maxCamerasPerNode: number;
  readonly maxConcurrentMoves: number;
  readonly unavailableAfterMs: number;
  readonly renewMs: number;
  readonly failbackAfterMs: number;
  readonly membership: 'Automatic' | 'Manual';
  /** `RecorderPool.status.leader`: stays as long as it can. */
  readonly leader?: string | undefined;
};

/** What the caches show of one pool. */
export type PoolObjects = {
  readonly pool: PoolView;
  readonly nodes: readonly NodeView[];
  readonly cameras: readonly CameraView[];
};

/**
 * What an observer knows of a node's Lease.
 * Live: changed within `unavailableAfterSeconds`. Unavailable: silent for so long while a majority was heard all the
 * time, which a read of the Lease confirmed. Unknown: neither, as after a start of the operator or an outage of the API.
 */
export type Liveness = {
  readonly state: 'Live' | 'Unknown' | 'Unavailable';
  /** Its Lease changed within the last three renewals. Only such nodes are counted on when something is moved. */
  readonly heard: boolean;
  /** Since the last change; undefined when none was seen. */
  readonly silentMs: number | undefined;
  /** Since it became Live; 0 when it is not. */
  readonly liveForMs: number;
};

export type PlannedNode = NodeView & {
  readonly liveness: Liveness;
  /** It lately failed to take up cameras: chosen last. */
  readonly reluctant: boolean;
};

export type PlannedCamera = CameraView & {
  /** A write of this assignment is under way: it may or may not come true. No second one is planned. */
  readonly writing: boolean;
  /** How long the observer has known this assignment. */
  readonly assignedForMs: number;
  /** How long the node has not listed the camera under this epoch; undefined when it does, or there is no node. */
  readonly missingForMs: number | undefined;
  /** The node had listed the camera under this epoch before. */
  readonly wasTakenUp: boolean;
};

export type Snapshot = {
  readonly pool: PoolView;
  readonly nodes: readonly PlannedNode[];
  readonly cameras: readonly PlannedCamera[];
  /** How long a majority has been heard without a break; 0 when it is not. Before that, reports may be late. */
  readonly majorityForMs: number;
  /** A change of a role is being written: no second one is planned. */
  readonly changingRoles: boolean;
};

/**
 * What must be read from the API server itself, not from a cache, before a write is sent; it is left out when the
 * answer says otherwise.
 */
export type Confirmation =
  /** The node's RecorderNode must not list the camera under this epoch. */
  | { readonly kind: 'NotTakenUp'; readonly node: string; readonly epoch: number }
  /** There must be no RecorderNode of this name in the pool. */
  | { readonly kind: 'NodeGone'; readonly node: string };

/** Replace `Camera.status.assignment`, if the Camera still has this resourceVersion. */
export type AssignmentWrite = {
  readonly camera: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Of the assignment that is replaced; 0 when there is none. */
  readonly fromEpoch: number;
  readonly assignment: Assignment;
  /** Nothing moves: only what is known of the camera is another. */
  readonly isNote: boolean;
  /** Goes before all others: nobody records the camera. */
  readonly urgent: boolean;
  readonly confirm?: Confirmation | undefined;
  /** The camera leaves this node because it is silent: its last renewal is the assignment's `lastSeenTime`. */
  readonly lostNode?: string | undefined;
};

/** Change `RecorderNode.spec.role`, if the object still has this resourceVersion. */
export type RoleWrite = { readonly node: string; readonly resourceVersion: string; readonly role: Role };

/** A condition without times; `lastTransitionTime` belongs to whoever writes it. */
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
  /** Condition `Assigned` of each camera. */
  readonly cameras: ReadonlyMap<string, PlannedCondition>;
  /** Conditions QuorumAvailable, FailoverSuspended and CapacityAvailable of the pool. */
  readonly pool: readonly PlannedCondition[];
  readonly leader: string | undefined;
  readonly voters: readonly string[];
  readonly quorum: { readonly needed: number; readonly live: number };
  /** Cameras of each node: its own, and those it goes on recording until a handover ends. A drained node has neither. */
  readonly loads: ReadonlyMap<string, { readonly assigned: number; readonly leaving: number }>;
  /** When time alone can change the plan; undefined: when something else happens. */
  readonly recheckMs: number | undefined;
};
