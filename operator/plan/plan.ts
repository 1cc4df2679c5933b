// The plan of one pool: a snapshot comes in, what should be written goes out. Pure: the same snapshot gives the same
// plan, and the plan of a world that needs nothing is empty. The rules are docs/design/failover.md.

import { needOf, reportOf, TAKE_UP_MS, type Context, type Need, type Placement } from './needs.ts';
import { Rooms } from './rooms.ts';
import { isSuspect, withLostNodes } from './suspects.ts';
import type {
  Assignment,
  AssignmentWrite,
  Plan,
  PlannedCamera,
  PlannedCondition,
  PlannedNode,
  Snapshot,
} from './snapshot.ts';
import { planRoles, quorumOf, type Quorum } from './voters.ts';

/** First assignments of one plan: about as many as an API server takes in a second. */
const MAX_SCHEDULED = 256;

type Needing = { readonly camera: PlannedCamera; readonly need: Placement };
type Placed = {
  readonly writes: AssignmentWrite[];
  readonly conditions: Map<string, PlannedCondition>;
  /** Cameras that should have another node, and there is no room. */
  readonly lacking: string[];
};

export function plan(snapshot: Snapshot): Plan {
  const nodes = new Map(snapshot.nodes.map((node) => [node.name, node]));
  const rooms = new Rooms(snapshot);
  const isGathering = snapshot.nodes.some(
    ({ liveness }) => liveness.state === 'Unknown' && liveness.silentMs === undefined,
  );
  const context: Context = { snapshot, nodes, rooms, isGathering };
  const cameras = [...snapshot.cameras].sort(byPriority);
  const quorum = quorumOf(snapshot);

  const needs = cameras.map((camera) => ({ camera, need: needOf(camera, context) }));
  const writes = needs.flatMap(({ camera, need }) =>
    need.kind === 'write' ? [{ ...writeOf(camera, need.assignment), isNote: need.isNote === true }] : [],
  );
  const placing = [...needs.filter(isPlacement), ...tooMany(needs, context)];
  const placed = place(placing, context, quorum);

  return {
    writes: urgentFirst([...writes, ...placed.writes]),
    role: planRoles(snapshot),
    cameras: new Map(
      cameras.map((camera) => [camera.name, placed.conditions.get(camera.name) ?? assignedCondition(camera, nodes)]),
    ),
    pool: poolConditions(quorum, placed, rooms, snapshot),
    leader: quorum.leader,
    voters: quorum.voters,
    quorum: { needed: quorum.needed, live: quorum.live },
    loads: loadsOf(snapshot),
    recheckMs: needs.reduce<number | undefined>((least, { need }) => {
      if (need.kind !== 'none' || need.recheckMs === undefined) return least;
      return least === undefined ? need.recheckMs : Math.min(least, need.recheckMs);
    }, undefined),
  };
}

/** A camera that lost its node does not wait behind hundreds that are new. */
export const urgentFirst = (writes: readonly AssignmentWrite[]): AssignmentWrite[] => [
  ...writes.filter(({ urgent }) => urgent),
  ...writes.filter(({ urgent }) => !urgent),
];

const isPlacement = (entry: { camera: PlannedCamera; need: Need }): entry is Needing => entry.need.kind === 'place';

/** Cameras beyond the limit of a node that has shrunk: those of least priority go, if there is room elsewhere. */
function tooMany(needs: readonly { camera: PlannedCamera; need: Need }[], { nodes, rooms }: Context): Needing[] {
  const found: Needing[] = [];
  const left = new Map<string, number>();
  for (const { name, liveness } of nodes.values()) {
    if (liveness.state === 'Live' && rooms.excess(name) > 0) left.set(name, rooms.excess(name));
  }
  if (left.size === 0) return found;
  for (const { camera, need } of needs.toReversed()) {
    const owner = camera.assignment?.node;
    const excess = owner === undefined ? 0 : (left.get(owner) ?? 0);
    if (owner === undefined || excess === 0) continue;
    const isStill =
      need.kind === 'none' &&
      !camera.writing &&
      camera.assignment?.handover !== 'Pending' &&
      !isSuspect(camera.assignment ?? {});
    if (isStill)
      found.push({ camera, need: { kind: 'place', reason: 'Ineligible', urgent: false, recordingNow: owner } });
    if (isStill || need.kind === 'place') left.set(owner, excess - 1);
  }
  return found;
}

/** Gives nodes to those that need one: cameras without a recorder first, then by priority, as far as there are slots. */
function place(placing: readonly Needing[], { snapshot, rooms }: Context, quorum: Quorum): Placed {
  const placed: Placed = { writes: [], conditions: new Map(), lacking: [] };
  const slots = slotsOf(snapshot);
  const inOrder = [...placing.filter(({ need }) => need.urgent), ...placing.filter(({ need }) => !need.urgent)];
  // More than one plan writes fill one node after the other: a node names what it has got in few reports, not each alone.
  const scheduled = placing.filter(({ need }) => need.reason === 'Scheduled').length;
  const share = scheduled > MAX_SCHEDULED ? rooms.share(scheduled) : 0;
  for (const { camera, need } of inOrder) {
    const refuse = (reason: string, message: string): void => {
      // A camera that is recorded where it should no longer be is assigned all the same.
      if (need.urgent || need.confirm !== undefined)
        placed.conditions.set(camera.name, condition('Assigned', 'False', reason, message));
    };
    if (!quorum.heard) {
      refuse('NoMajority', 'waits until more than half of the voters are heard');
      continue;
    }
    const take = slots.free(camera, need);
    if (!take) {
      refuse('Waiting', 'is assigned when those before it are taken up');
      continue;
    }
    const owner = camera.assignment?.node;
    const target = targetOf(camera, need, rooms, share);
    if (target === undefined) {
      if (rooms.hasCandidates(camera, owner)) {
        placed.lacking.push(camera.name);
        refuse('NoRoom', 'every node that could record it has its limit of cameras');
      } else refuse('NoEligibleNode', 'no live node of the pool may record it');
      continue;
    }
    take();
    rooms.move(owner, target);
    placed.writes.push(writeOf(camera, assignmentOf(camera, need, target), need));
  }
  return placed;
}

function targetOf(camera: PlannedCamera, need: Placement, rooms: Rooms, share: number): string | undefined {
  const only = need.only ?? need.back;
  if (only !== undefined) return rooms.isOpen(only, camera) ? only : undefined;
  const { assignment } = camera;
  // A camera that was suspended goes on where its footage lies.
  const favourite = assignment?.node === undefined ? assignment?.previousNode : undefined;
  return rooms.best(camera, assignment?.node, { favourite, ...(need.reason === 'Scheduled' && { share }) });
}

function assignmentOf(camera: PlannedCamera, need: Placement, node: string): Assignment {
  const { assignment } = camera;
  const epoch = (assignment?.epoch ?? 0) + 1;
  const before = assignment?.node ?? assignment?.previousNode;
  const { lostNodes = assignment?.lostNodes ?? [] } = need;
  if (need.recordingNow !== undefined && need.recordingNow !== node) {
    const pending = { node, epoch, previousNode: need.recordingNow, handover: 'Pending', reason: need.reason } as const;
    return withLostNodes(pending, lostNodes);
  }
  const moved: Assignment = {
    node,
    epoch,
    ...(before !== undefined && before !== node && { previousNode: before }),
    handover: 'Complete',
    reason: need.reason,
    // Whoever was to take it up has not: what is missing is still missing since then.
    ...(wasNeverTakenUp(camera) &&
      camera.assignment?.lastSeenTime !== undefined && { lastSeenTime: camera.assignment.lastSeenTime }),
  };
  return withLostNodes(moved, lostNodes);
}

const wasNeverTakenUp = ({ missingForMs, wasTakenUp }: PlannedCamera): boolean =>
  missingForMs !== undefined && !wasTakenUp;

function writeOf(camera: PlannedCamera, assignment: Assignment, need?: Placement): AssignmentWrite {
  const { name, uid, resourceVersion } = camera;
  const fromEpoch = camera.assignment?.epoch ?? 0;
  const urgent = need?.urgent === true && need.reason !== 'Scheduled';
  const isLost = need?.reason === 'NodeUnavailable' && need.urgent && assignment.lastSeenTime === undefined;
  const lostNode = isLost ? camera.assignment?.node : undefined;
  const confirm = need?.confirm;
  return { camera: name, uid, resourceVersion, fromEpoch, assignment, isNote: false, urgent, confirm, lostNode };
}

type Slots = {
  /** False: none is free. Otherwise what takes one. */
  free(camera: PlannedCamera, need: Placement): false | (() => void);
};

/**
 * Moves under way. A move has a slot until it is taken up, or has been waited for long enough; a handover until it
 * ends. Neither waits for a node that is not heard. Cameras that nobody records do not wait for handovers, and each node
 * that lives may take as many of them: what a move costs is paid by the node that begins to record.
 */
function slotsOf({ pool, nodes, cameras }: Snapshot): Slots {
  const heard = new Set(nodes.filter(({ liveness }) => liveness.heard).map(({ name }) => name));
  const inHandover = new Set<PlannedCamera>();
  const takers = nodes.filter(({ liveness }) => liveness.state === 'Live').length;
  let lost = 0;
  let planned = 0;
  let scheduled = 0;
  for (const camera of cameras) {
    const { assignment, suspend, writing, wasTakenUp, missingForMs } = camera;
    if (assignment?.node === undefined || suspend || !heard.has(assignment.node)) continue;
    const isNew = missingForMs !== undefined && missingForMs < TAKE_UP_MS && !wasTakenUp;
    if (assignment.reason === 'Scheduled') scheduled += Number(writing);
    else if (assignment.handover === 'Pending') inHandover.add(camera);
    else lost += Number(writing || isNew);
  }
  return {
    free(camera, need) {
      const { maxConcurrentMoves } = pool;
      if (need.reason === 'Scheduled') return scheduled < MAX_SCHEDULED && ((): number => (scheduled += 1));
      if (need.urgent) return lost < maxConcurrentMoves * takers && ((): number => (lost += 1));
      if (inHandover.has(camera)) return (): void => {}; // It has a slot.
      return lost + inHandover.size + planned < maxConcurrentMoves && ((): number => (planned += 1));
    },
  };
}

function assignedCondition(camera: PlannedCamera, nodes: ReadonlyMap<string, PlannedNode>): PlannedCondition {
  const node = camera.assignment?.node;
  if (camera.suspend) return condition('Assigned', 'False', 'Suspended', 'spec.suspend is true');
  if (node === undefined) return condition('Assigned', 'False', 'Waiting', 'is about to be given to a node');
  const owner = nodes.get(node);
  if (owner?.liveness.state === 'Unavailable') {
    if (isSuspect(camera.assignment ?? {}))
      return condition('Assigned', 'False', 'TwoNodesLost', suspectMessage(camera));
    const message = `waits for node ${node}, which is unavailable, because placement.failover is Never`;
    return condition('Assigned', 'False', 'NodeUnavailable', message);
  }
  if (owner && reportOf(camera, owner) === undefined) {
    return condition('Assigned', 'True', 'NotTakenUp', `node ${node} has not taken it up yet`);
  }
  return condition('Assigned', 'True', 'Assigned', `to node ${node}`);
}

const suspectMessage = ({ assignment }: PlannedCamera): string =>
  `${assignment?.lostNodes?.join(' and ')} had it when their recorders fell silent, so it goes to no other node: find ` +
  'out why, then set spec.suspend to true and back to false';

function poolConditions(quorum: Quorum, placed: Placed, rooms: Rooms, { nodes }: Snapshot): PlannedCondition[] {
  const { voters, live, needed, available } = quorum;
  const count = `${live} of ${voters.length} voters are live, ${needed} are needed`;
  const why = voters.length === 0 ? 'NoVoters' : 'NoMajority';
  const full = nodes.filter(({ name }) => rooms.excess(name) > 0).map(({ name }) => name);
  return [
    available
      ? condition('QuorumAvailable', 'True', 'Majority', count)
      : condition('QuorumAvailable', 'False', why, count),
    available
      ? condition('FailoverSuspended', 'False', 'Majority', 'cameras of an unavailable node move')
      : condition('FailoverSuspended', 'True', why, 'no camera is assigned or moved; what is assigned is recorded'),
    placed.lacking.length > 0
      ? condition('CapacityAvailable', 'False', 'NoRoom', `no node has room for: ${someOf(placed.lacking)}`)
      : full.length > 0
        ? condition('CapacityAvailable', 'False', 'OverLimit', `more cameras than maxCamerasPerNode: ${someOf(full)}`)
        : condition('CapacityAvailable', 'True', 'Room', 'every camera has room'),
  ];
}

/** Names for a message, which has a bound. */
function someOf(names: readonly string[]): string {
  const shown = [...names].sort().slice(0, 10);
  return names.length > shown.length ? `${shown.join(', ')} and ${names.length - shown.length} more` : shown.join(', ');
}

function condition(
  type: string,
  status: PlannedCondition['status'],
  reason: string,
  message: string,
): PlannedCondition {
  return { type, status, reason, message };
}

function loadsOf({ nodes, cameras }: Snapshot): Plan['loads'] {
  const loads = new Map(nodes.map(({ name }) => [name, { assigned: 0, leaving: 0 }]));
  for (const { assignment } of cameras) {
    const owner = loads.get(assignment?.node ?? '');
    if (owner) owner.assigned += 1;
    const previous = assignment?.handover === 'Pending' ? loads.get(assignment.previousNode ?? '') : undefined;
    if (previous) previous.leaving += 1;
  }
  return loads;
}

const byPriority = (a: PlannedCamera, b: PlannedCamera): number =>
  b.priority - a.priority || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
