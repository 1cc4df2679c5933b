// Decides for each camera alone whether it needs nothing, a changed assignment on the same node, or another node. Which node, and
// when, is decided for all cameras together (plan.ts).

import { matches, type NodeLoads } from './node-loads.ts';
import { isSuspect, lostNodesOf, withLostNodes } from './suspects.ts';
import type { Assignment, Confirmation, PlannedCamera, PlannedNode, Reason, Snapshot } from './snapshot.ts';

/** A node that has not listed a new camera within this time loses it. */
export const TAKE_UP_MS = 5_000;
/** A handover that takes longer fails: the new node cannot reach the camera, or the camera serves only one client. */
const HANDOVER_MS = 30_000;
/** If the old node does not record the camera either, a handover waits only this long. Reports are younger than this. */
const IDLE_HANDOVER_MS = 5_000;

export type Need =
  /** Needs nothing; look again after `recheckMs`. */
  | { readonly kind: 'none'; readonly recheckMs?: number | undefined }
  /** The same node, or none. Can be written at once, with or without a majority. */
  | { readonly kind: 'write'; readonly assignment: Assignment; readonly isNote?: boolean }
  | Placement;

/** The camera needs another node. */
export type Placement = {
  readonly kind: 'place';
  /** The cause may pass, so where the camera belongs stays as it is. */
  readonly keepsHome?: boolean;
  readonly reason: Reason;
  /** No node records the camera now. */
  readonly urgent: boolean;
  /** This node continues to record until the new one does. */
  readonly recordingNow?: string | undefined;
  /** The node that still records the camera; the camera returns to it if possible. */
  readonly back?: string | undefined;
  /** The only node that may get the camera. */
  readonly only?: string | undefined;
  readonly confirm?: Confirmation | undefined;
  readonly lostNodes?: readonly string[];
};

export type Context = {
  readonly snapshot: Snapshot;
  readonly nodes: ReadonlyMap<string, PlannedNode>;
  readonly nodeLoads: NodeLoads;
  /** Some node has never been heard: the pool, or this observer, has only just started. */
  readonly isGathering: boolean;
};

const NONE: Need = { kind: 'none' };

export function needOf(camera: PlannedCamera, context: Context): Need {
  const { assignment, writing, suspend } = camera;
  if (writing) return NONE;
  if (suspend) return assignment?.node === undefined ? NONE : { kind: 'write', assignment: suspended(assignment) };
  if (assignment?.node === undefined) {
    const waitMs = context.snapshot.pool.unavailableAfterMs - context.snapshot.majorityForMs;
    // Otherwise the nodes that are heard first would get all cameras and keep them.
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

/**
 * Adds the new lost nodes to what is written. A suspect camera moves only away from a node that is being drained, or back to the
 * node that still records it.
 */
function placed(need: Need, lostNodes: readonly string[]): Need {
  if (need.kind === 'none') return need;
  if (need.kind === 'write') return { ...need, assignment: withLostNodes(need.assignment, lostNodes) };
  if (!isSuspect({ lostNodes }) || need.reason === 'Drain') return { ...need, lostNodes };
  return need.back === undefined ? NONE : { ...need, lostNodes, only: need.back };
}

function assignedNeedOf(camera: PlannedCamera, owner: PlannedNode, context: Context): Need {
  const { assignment } = camera;
  if (owner.liveness.state === 'Unavailable') {
    // Even without failover a planned move can be reverted, because the old node never stopped.
    if (camera.failover === 'Never' && recordingNow(camera, context) === undefined) return NONE;
    return placeOf(camera, context, 'NodeUnavailable');
  }
  const missing = missingOf(camera, owner, context);
  if (missing.kind !== 'none') return missing;
  const rest =
    assignment?.handover === 'Pending' ? handoverOf(camera, owner, context) : plannedOf(camera, owner, context);
  return rest.kind === 'none' ? { kind: 'none', recheckMs: earlier(missing.recheckMs, rest.recheckMs) } : rest;
}

export function reportOf(camera: PlannedCamera, owner: PlannedNode): string | undefined {
  const report = owner.cameras.get(camera.name);
  return report?.epoch === camera.assignment?.epoch ? report?.state : undefined;
}

/**
 * The new node of a handover has lacked the login of the camera for longer than a handover may take: the old node continues for as long as
 * it takes.
 */
export const waitsForLogin = (camera: PlannedCamera): boolean =>
  camera.assignment?.handover === 'Pending' && camera.assignedForMs >= HANDOVER_MS && camera.loginForMs < HANDOVER_MS;

/** The old node of an unfinished handover, if it still exists. */
function recordingNow({ assignment }: PlannedCamera, { nodes }: Context): string | undefined {
  if (assignment?.handover !== 'Pending' || assignment.previousNode === undefined) return undefined;
  const previous = nodes.get(assignment.previousNode);
  return previous?.liveness.state === 'Live' && previous.name !== assignment.node ? previous.name : undefined;
}

/** A placement on another node, because this one is lost for the camera. */
function placeOf(camera: PlannedCamera, context: Context, reason: Reason, confirm?: Confirmation): Placement {
  const recording = recordingNow(camera, context);
  if (recording !== undefined) {
    const back = context.nodeLoads.isOpen(recording, camera) ? recording : undefined;
    return { kind: 'place', keepsHome: true, reason, urgent: false, recordingNow: recording, back, confirm };
  }
  // A node that left the pool may still be recording: it continues until the new node records.
  if (reason === 'Ineligible') {
    return { kind: 'place', keepsHome: true, reason, urgent: false, recordingNow: camera.assignment?.node, confirm };
  }
  return { kind: 'place', keepsHome: true, reason, urgent: true, confirm };
}

function missingOf(camera: PlannedCamera, owner: PlannedNode, context: Context): Need {
  const { assignment, missingForMs, wasTakenUp } = camera;
  const { pool, majorityForMs } = context.snapshot;
  if (assignment === undefined || missingForMs === undefined) return NONE;
  // A node that had the camera and reports without it may be restarting. A silent node is judged by its liveness.
  if (wasTakenUp && !owner.liveness.heard) return NONE;
  const limitMs = wasTakenUp ? pool.unavailableAfterMs : TAKE_UP_MS;
  const forMs = Math.min(missingForMs, majorityForMs);
  if (forMs < limitMs) return { kind: 'none', recheckMs: limitMs - forMs };
  return placeOf(camera, context, 'NotTakenUp', { kind: 'NotTakenUp', node: owner.name, epoch: assignment.epoch });
}

function handoverOf(camera: PlannedCamera, owner: PlannedNode, context: Context): Need {
  const { assignment } = camera;
  const { nodes, nodeLoads, snapshot } = context;
  if (!assignment) return NONE;
  const complete: Need = { kind: 'write', assignment: { ...assignment, handover: 'Complete' } };
  const previous = assignment.previousNode === undefined ? undefined : nodes.get(assignment.previousNode);
  if (assignment.previousNode === undefined || assignment.previousNode === owner.name) return complete;
  if (previous?.liveness.state === 'Unavailable') return complete;
  // The node that records the camera now must not stop in favour of a node that may be dying.
  if (!owner.liveness.heard) return NONE;
  if (reportOf(camera, owner) === 'Recording') return complete;

  const forMs = Math.min(camera.assignedForMs, snapshot.majorityForMs);
  const isIdle = previous?.liveness.heard === true && previous.cameras.get(camera.name)?.state !== 'Recording';
  if (isIdle && forMs >= IDLE_HANDOVER_MS) return complete;
  if (forMs < HANDOVER_MS)
    return { kind: 'none', recheckMs: (forMs < IDLE_HANDOVER_MS ? IDLE_HANDOVER_MS : HANDOVER_MS) - forMs };
  if (previous && nodeLoads.isOpen(previous.name, camera)) {
    const back = { recordingNow: previous.name, back: previous.name };
    return { kind: 'place', keepsHome: true, reason: 'NotTakenUp', urgent: false, ...back };
  }
  // From when it has the login, the new node gets as long as any other.
  if (previous?.liveness.state === 'Live' && waitsForLogin(camera))
    return { kind: 'none', recheckMs: HANDOVER_MS - camera.loginForMs };
  return complete; // The old node is being drained, at a person's request.
}

function plannedOf(camera: PlannedCamera, owner: PlannedNode, context: Context): Need {
  const move = (reason: Reason, over: Partial<Placement> = {}): Placement => {
    return { kind: 'place', reason, urgent: false, recordingNow: owner.name, ...over };
  };
  if (owner.drain) return move('Drain', { keepsHome: true });
  if (!matches(camera, owner)) return move('Ineligible');
  if (!owner.canRecord) return move('Ineligible', { keepsHome: true });

  const only = returnsTo(camera, context);
  if (only === undefined) return NONE;
  const waitMs = returnsAfterMs(camera, only, context);
  if (waitMs > 0) return { kind: 'none', recheckMs: waitMs };
  const { previousNode, home } = camera.assignment ?? {};
  const reason = only === home || only === previousNode ? 'Failback' : 'Preferred';
  return move(reason, { only, keepsHome: only === home });
}

/** The node to which a camera moves although its own can record it: the one that it prefers, or else its home. */
function returnsTo(camera: PlannedCamera, context: Context): string | undefined {
  const { assignment, preferredNode } = camera;
  if (preferredNode !== undefined && mayTake(camera, preferredNode, context)) return preferredNode;
  const home = homeOf(camera, context);
  return preferredNode === assignment?.node ? undefined : home;
}

/** The home of a camera that is not there, if it may return now. */
export function homeOf(camera: PlannedCamera, context: Context): string | undefined {
  const { home, lostNodes = [] } = camera.assignment ?? {};
  // As long as the camera may be what made the recorder of its home fall silent, it does not return there.
  return home !== undefined && !lostNodes.includes(home) && mayTake(camera, home, context) ? home : undefined;
}

/** Whether a camera may move to this node although its own can record it. */
export function mayTake(camera: PlannedCamera, name: string, { nodes, nodeLoads }: Context): boolean {
  return name !== camera.assignment?.node && nodes.get(name)?.reluctant === false && nodeLoads.isOpen(name, camera);
}

/** A node that was drained, and nothing else, needs no time to show that it works. */
function returnsAfterMs(camera: PlannedCamera, to: string, { nodes, snapshot }: Context): number {
  if (camera.assignment?.reason === 'Drain' && to === camera.assignment.home) return 0;
  const waitedMs = Math.min(nodes.get(to)?.liveness.liveForMs ?? 0, camera.assignedForMs);
  return Math.max(0, snapshot.pool.failbackAfterMs - waitedMs);
}

function suspended({ node, epoch, home }: Assignment): Assignment {
  return { epoch, previousNode: node, handover: 'Complete', reason: 'Suspended', ...(home !== undefined && { home }) };
}

const sameNames = (a: readonly string[], b: readonly string[]): boolean => a.join() === b.join();

function earlier(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.min(a, b);
}
