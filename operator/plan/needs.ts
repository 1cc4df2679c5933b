// What one camera needs: nothing, another word in its assignment, or another node. Which node, and when, is decided
// where all cameras are seen together (plan.ts).

import { matches, type Rooms } from './rooms.ts';
import { isSuspect, lostNodesOf, withLostNodes } from './suspects.ts';
import type { Assignment, Confirmation, PlannedCamera, PlannedNode, Reason, Snapshot } from './snapshot.ts';

/** A node that has not listed a camera it was given by then does not get to keep it. */
export const TAKE_UP_MS = 5_000;
/** A handover that has not ended by then: the new node cannot get at the camera, or the camera serves only one client. */
const HANDOVER_MS = 30_000;
/** A handover of a camera that its old node does not record either has nothing to wait for. Reports are younger than this. */
const IDLE_HANDOVER_MS = 5_000;

export type Need =
  /** Nothing, before `recheckMs` at the earliest. */
  | { readonly kind: 'none'; readonly recheckMs?: number | undefined }
  /** The same node, or none: can be written at once, with or without a majority. */
  | { readonly kind: 'write'; readonly assignment: Assignment; readonly isNote?: boolean }
  | Placement;

/** Another node. */
export type Placement = {
  readonly kind: 'place';
  readonly reason: Reason;
  /** Nobody records the camera now. */
  readonly urgent: boolean;
  /** Goes on recording until the new node does. */
  readonly recordingNow?: string | undefined;
  /** Back to the node that still records it, if it may. */
  readonly back?: string | undefined;
  /** Only there, or not at all. */
  readonly only?: string | undefined;
  readonly confirm?: Confirmation | undefined;
  /** What counts against the camera from then on. */
  readonly lostNodes?: readonly string[];
};

export type Context = {
  readonly snapshot: Snapshot;
  readonly nodes: ReadonlyMap<string, PlannedNode>;
  readonly rooms: Rooms;
  /** Some node has not been heard at all yet: the pool, or this observer, has just begun. */
  readonly isGathering: boolean;
};

const NONE: Need = { kind: 'none' };

export function needOf(camera: PlannedCamera, context: Context): Need {
  const { assignment, writing, suspend } = camera;
  if (writing) return NONE;
  if (suspend) return assignment?.node === undefined ? NONE : { kind: 'write', assignment: suspended(assignment) };
  if (assignment?.node === undefined) {
    const waitMs = context.snapshot.pool.unavailableAfterMs - context.snapshot.majorityForMs;
    // The first nodes that speak would get everything, and keep it.
    if (waitMs > 0 && context.isGathering) return { kind: 'none', recheckMs: waitMs };
    return { kind: 'place', reason: 'Scheduled', urgent: true };
  }

  const owner = context.nodes.get(assignment.node);
  if (!owner) return placeOf(camera, context, 'Ineligible', { kind: 'NodeGone', node: assignment.node });
  const lostNodes = lostNodesOf(camera, owner, context.nodes);
  const need = placed(assignedNeedOf(camera, owner, context), lostNodes);
  if (need.kind !== 'none' || sameNames(lostNodes, assignment.lostNodes ?? [])) return need;
  return { kind: 'write', assignment: withLostNodes(assignment, lostNodes), isNote: true };
}

/** What counts against the camera goes with it; a suspect goes nowhere but away from a node that a person empties, and back to the one that still records it. */
function placed(need: Need, lostNodes: readonly string[]): Need {
  if (need.kind === 'none') return need;
  if (need.kind === 'write') return { ...need, assignment: withLostNodes(need.assignment, lostNodes) };
  if (!isSuspect({ lostNodes }) || need.reason === 'Drain') return { ...need, lostNodes };
  return need.back === undefined ? NONE : { ...need, lostNodes, only: need.back };
}

/** Of a camera that has a node. */
function assignedNeedOf(camera: PlannedCamera, owner: PlannedNode, context: Context): Need {
  const { assignment } = camera;
  if (owner.liveness.state === 'Unavailable') {
    // A planned move can be taken back although failover is off: its old node never stopped.
    if (camera.failover === 'Never' && recordingNow(camera, context) === undefined) return NONE;
    return placeOf(camera, context, 'NodeUnavailable');
  }
  const missing = missingOf(camera, owner, context);
  if (missing.kind !== 'none') return missing;
  const rest =
    assignment?.handover === 'Pending' ? handoverOf(camera, owner, context) : plannedOf(camera, owner, context);
  return rest.kind === 'none' ? { kind: 'none', recheckMs: earlier(missing.recheckMs, rest.recheckMs) } : rest;
}

/** Whether the node reports the camera under the epoch of its assignment. */
export function reportOf(camera: PlannedCamera, owner: PlannedNode): string | undefined {
  const report = owner.cameras.get(camera.name);
  return report && report.epoch === camera.assignment?.epoch ? report.state : undefined;
}

/** The old node of an unfinished handover, as long as it is there. */
function recordingNow({ assignment }: PlannedCamera, { nodes }: Context): string | undefined {
  if (assignment?.handover !== 'Pending' || assignment.previousNode === undefined) return undefined;
  const previous = nodes.get(assignment.previousNode);
  return previous?.liveness.state === 'Live' && previous.name !== assignment.node ? previous.name : undefined;
}

/** Away from a node that is lost for the camera. */
function placeOf(camera: PlannedCamera, context: Context, reason: Reason, confirm?: Confirmation): Placement {
  const recording = recordingNow(camera, context);
  if (recording !== undefined) {
    const back = context.rooms.isOpen(recording, camera) ? recording : undefined;
    return { kind: 'place', reason, urgent: false, recordingNow: recording, back, confirm };
  }
  // A node that left the pool may well go on recording: until the next one does.
  if (reason === 'Ineligible') {
    return { kind: 'place', reason, urgent: false, recordingNow: camera.assignment?.node, confirm };
  }
  return { kind: 'place', reason, urgent: true, confirm };
}

function missingOf(camera: PlannedCamera, owner: PlannedNode, context: Context): Need {
  const { assignment, missingForMs, wasTakenUp } = camera;
  const { pool, majorityForMs } = context.snapshot;
  if (assignment === undefined || missingForMs === undefined) return NONE;
  // A node that had the camera and speaks without naming it may be starting; one that is silent is judged as a node.
  if (wasTakenUp && !owner.liveness.heard) return NONE;
  const limitMs = wasTakenUp ? pool.unavailableAfterMs : TAKE_UP_MS;
  const forMs = Math.min(missingForMs, majorityForMs);
  if (forMs < limitMs) return { kind: 'none', recheckMs: limitMs - forMs };
  return placeOf(camera, context, 'NotTakenUp', { kind: 'NotTakenUp', node: owner.name, epoch: assignment.epoch });
}

function handoverOf(camera: PlannedCamera, owner: PlannedNode, context: Context): Need {
  const { assignment } = camera;
  const { nodes, rooms, snapshot } = context;
  if (!assignment) return NONE;
  const complete: Need = { kind: 'write', assignment: { ...assignment, handover: 'Complete' } };
  const previous = assignment.previousNode === undefined ? undefined : nodes.get(assignment.previousNode);
  if (assignment.previousNode === undefined || assignment.previousNode === owner.name) return complete;
  if (previous?.liveness.state === 'Unavailable') return complete;
  // Whoever records it now must not stop for a node that may be dying.
  if (!owner.liveness.heard) return NONE;
  if (reportOf(camera, owner) === 'Recording') return complete;

  const forMs = Math.min(camera.assignedForMs, snapshot.majorityForMs);
  const isIdle = previous?.liveness.heard === true && previous.cameras.get(camera.name)?.state !== 'Recording';
  if (isIdle && forMs >= IDLE_HANDOVER_MS) return complete;
  if (forMs < HANDOVER_MS)
    return { kind: 'none', recheckMs: (forMs < IDLE_HANDOVER_MS ? IDLE_HANDOVER_MS : HANDOVER_MS) - forMs };
  if (previous && rooms.isOpen(previous.name, camera)) {
    return { kind: 'place', reason: 'NotTakenUp', urgent: false, recordingNow: previous.name, back: previous.name };
  }
  return complete; // The old node must be emptied, and a person asked for that.
}

function plannedOf(camera: PlannedCamera, owner: PlannedNode, context: Context): Need {
  const { assignment, preferredNode } = camera;
  const { nodes, rooms, snapshot } = context;
  const move = (reason: Reason, only?: string): Placement => {
    return { kind: 'place', reason, urgent: false, recordingNow: owner.name, only };
  };
  if (owner.drain) return move('Drain');
  if (!owner.canRecord || !matches(camera, owner)) return move('Ineligible');
  if (preferredNode === undefined || preferredNode === owner.name) return NONE;

  const preferred = nodes.get(preferredNode);
  if (!preferred || preferred.reluctant || !rooms.isOpen(preferredNode, camera)) return NONE;
  const waitedMs = Math.min(preferred.liveness.liveForMs, camera.assignedForMs);
  const { failbackAfterMs } = snapshot.pool;
  if (waitedMs < failbackAfterMs) return { kind: 'none', recheckMs: failbackAfterMs - waitedMs };
  return move(assignment?.previousNode === preferredNode ? 'Failback' : 'Preferred', preferredNode);
}

function suspended({ node, epoch }: Assignment): Assignment {
  return { epoch, previousNode: node, handover: 'Complete', reason: 'Suspended' };
}

const sameNames = (a: readonly string[], b: readonly string[]): boolean => a.join() === b.join();

function earlier(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.min(a, b);
}
