// Makes the plan of one pool: which writes its snapshot calls for. Pure: equal snapshots give equal plans, and a pool that needs
// no change gives an empty plan. docs/design/failover.md has the rules.

import { someOf } from '../../base/some-of.ts';
import {
  homeOf,
  needOf,
  reportOf,
  TAKE_UP_MS,
  waitsForLogin,
  type Context,
  type Need,
  type Placement,
} from './needs.ts';
import { NodeLoads } from './node-loads.ts';
import { condition } from './parts.ts';
import { balancedCondition, rebalanceOf } from './rebalance.ts';
import { planStandbys, successorOf } from './standbys.ts';
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

/** Most first assignments in one plan: about as many writes as an API server accepts in a second. */
const MAX_SCHEDULED = 256;
/** A message names this many cameras or nodes and counts the others. */
const MAX_NAMED = 10;

type Needing = { readonly camera: PlannedCamera; readonly need: Placement };
type Placements = {
  readonly writes: AssignmentWrite[];
  readonly conditions: Map<string, PlannedCondition>;
  /** Cameras that need another node although every node is full. */
  readonly lacking: string[];
};

export function plan(snapshot: Snapshot): Plan {
  const nodes = new Map(snapshot.nodes.map((node) => [node.name, node]));
  const nodeLoads = new NodeLoads(snapshot);
  const isGathering = snapshot.nodes.some(
    ({ liveness }) => liveness.state === 'Unknown' && liveness.silentMs === undefined,
  );
  const context: Context = { snapshot, nodes, nodeLoads, isGathering };
  const cameras = [...snapshot.cameras].sort(byPriority);
  const quorum = quorumOf(snapshot);

  const needs = cameras.map((camera) => ({ camera, need: needOf(camera, context) }));
  const writes = needs.flatMap(({ camera, need }) =>
    need.kind === 'write' ? [{ ...writeOf(camera, need.assignment), isNote: need.isNote === true }] : [],
  );
  const placing = [...needs.filter(isPlacement), ...tooMany(needs, context)];
  const placed = place(placing, context, quorum);

  const isMoving =
    writes.length + placed.writes.length > 0 ||
    cameras.some((camera) => camera.writing || (camera.assignment?.handover === 'Pending' && !waitsForLogin(camera)));
  const proposal = isMoving ? undefined : rebalanceOf(cameras, context);
  if (proposal && quorum.heard && snapshot.pool.rebalance === proposal.id) {
    for (const { camera, assignment, to } of proposal.moves)
      writes.push({ ...writeOf(camera, { ...assignment, home: to }), isNote: true });
  }

  // Otherwise the nodes that are heard first would get all standbys.
  const waitsForNodes = isGathering && snapshot.majorityForMs < snapshot.pool.unavailableAfterMs;
  const mayChoose = quorum.heard && !waitsForNodes;
  const standbys = planStandbys(cameras, [...writes, ...placed.writes], context, mayChoose);

  return {
    writes: standbys.writes,
    standbys: standbys.conditions,
    role: planRoles(snapshot),
    cameras: new Map(
      cameras.map((camera) => [camera.name, placed.conditions.get(camera.name) ?? assignedCondition(camera, nodes)]),
    ),
    pool: [...poolConditions(quorum, placed, nodeLoads, snapshot), balancedCondition(proposal)],
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

const isPlacement = (entry: { camera: PlannedCamera; need: Need }): entry is Needing => entry.need.kind === 'place';

/** Cameras above the limit of a node whose limit was lowered. Those with the lowest priority move, if other nodes have capacity. */
function tooMany(needs: readonly { camera: PlannedCamera; need: Need }[], { nodes, nodeLoads }: Context): Needing[] {
  const found: Needing[] = [];
  const left = new Map<string, number>();
  for (const { name, liveness } of nodes.values()) {
    if (liveness.state === 'Live' && nodeLoads.excess(name) > 0) left.set(name, nodeLoads.excess(name));
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

/** Chooses nodes for the cameras that need one, as far as slots allow: cameras without a recorder first, then by priority. */
function place(placing: readonly Needing[], context: Context, quorum: Quorum): Placements {
  const { snapshot, nodeLoads } = context;
  const placed: Placements = { writes: [], conditions: new Map(), lacking: [] };
  const slots = new Slots(snapshot);
  const inOrder = [...placing.filter(({ need }) => need.urgent), ...placing.filter(({ need }) => !need.urgent)];
  // If one plan cannot place all, fill one node after the other: a node then reports its cameras in a few updates instead of one
  // by one.
  const scheduled = placing.filter(({ need }) => need.reason === 'Scheduled').length;
  const share = scheduled > MAX_SCHEDULED ? nodeLoads.share(scheduled) : 0;
  for (const { camera, need } of inOrder) {
    const refuse = (reason: string, message: string): void => {
      // A camera that is recorded by the wrong node still counts as assigned.
      if (need.urgent || need.confirm !== undefined)
        placed.conditions.set(camera.name, condition('Assigned', 'False', reason, message));
    };
    if (!quorum.heard) {
      refuse('NoMajority', 'waits until more than half of the voters renew their Leases');
      continue;
    }
    const take = slots.free(camera, need);
    if (!take) {
      refuse('Waiting', 'waits until the cameras that were assigned before are recorded');
      continue;
    }
    const owner = camera.assignment?.node;
    const target = targetOf(camera, need, context, share);
    if (target === undefined) {
      if (nodeLoads.hasCandidates(camera, owner)) {
        placed.lacking.push(camera.name);
        refuse('NoRoom', 'every node that could record it has reached its limit of cameras');
      } else refuse('NoEligibleNode', 'no live node of the pool may record it');
      continue;
    }
    take();
    nodeLoads.move(owner, target);
    placed.writes.push(writeOf(camera, assignmentOf(camera, need, target), need));
  }
  return placed;
}

function targetOf(camera: PlannedCamera, need: Placement, context: Context, share: number): string | undefined {
  const { nodeLoads } = context;
  const only = need.only ?? need.back;
  if (only !== undefined) return nodeLoads.isOpen(only, camera) ? only : undefined;
  const { assignment } = camera;
  const home = homeOf(camera, context);
  // Where footage would be missing otherwise, the standby has it.
  const successor = need.urgent || home === undefined ? successorOf(camera, context) : undefined;
  if (successor !== undefined) return successor;
  // A suspended camera returns to the node with its footage.
  const favourite = home ?? (assignment?.node === undefined ? assignment?.previousNode : undefined);
  const shared = need.reason === 'Scheduled' ? { share } : {};
  const best = nodeLoads.best(camera, assignment?.node, { favourite, ...shared });
  return best ?? (need.urgent ? nodeLoads.lastResort(camera, assignment?.node, favourite) : undefined);
}

function assignmentOf(camera: PlannedCamera, need: Placement, node: string): Assignment {
  const { assignment } = camera;
  const epoch = (assignment?.epoch ?? 0) + 1;
  const before = assignment?.node ?? assignment?.previousNode;
  const { lostNodes = assignment?.lostNodes ?? [] } = need;
  const home = homeAfter(camera, need);
  if (need.recordingNow !== undefined && need.recordingNow !== node) {
    const pending = { node, epoch, previousNode: need.recordingNow, handover: 'Pending', reason: need.reason } as const;
    return withLostNodes({ ...pending, ...home }, lostNodes);
  }
  const moved: Assignment = {
    node,
    epoch,
    ...(before !== undefined && before !== node && { previousNode: before }),
    handover: 'Complete',
    reason: need.reason,
    // The node that should have taken the camera up did not, so its footage is still missing since the same time.
    ...(wasNeverTakenUp(camera) &&
      camera.assignment?.lastSeenTime !== undefined && { lastSeenTime: camera.assignment.lastSeenTime }),
    ...home,
  };
  return withLostNodes(moved, lostNodes);
}

/** Where the camera belongs after the move: with a cause that may pass, where it belonged before, or was recorded. */
function homeAfter({ assignment, wasTakenUp }: PlannedCamera, need: Placement): Pick<Assignment, 'home'> {
  const isSettled = wasTakenUp && assignment?.handover !== 'Pending';
  const { home = isSettled ? assignment?.node : undefined } = assignment ?? {};
  const isKept = need.keepsHome === true || need.reason === 'Scheduled';
  return isKept && home !== undefined ? { home } : {};
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

/**
 * Limits the moves in progress. A move occupies a slot until the camera is taken up or the wait for that is over; a handover
 * occupies it until it ends. Neither waits for a node that is not heard. Cameras without a recorder do not wait for handovers,
 * and each live node may take `maxConcurrentMoves` of them, because the node that starts to record bears the cost of a move.
 */
class Slots {
  readonly #maxMoves: number;
  /** The nodes that may take cameras. */
  readonly #takers: number;
  readonly #inHandover = new Set<PlannedCamera>();
  /** Slots in use, by kind of move; handovers in progress have slots, too. */
  readonly #used = { scheduled: 0, urgent: 0, planned: 0 };

  constructor({ pool, nodes, cameras }: Snapshot) {
    this.#maxMoves = pool.maxConcurrentMoves;
    this.#takers = nodes.filter(({ liveness }) => liveness.state === 'Live').length;
    const heard = new Map(nodes.filter(({ liveness }) => liveness.heard).map((node) => [node.name, node]));
    for (const camera of cameras) {
      const { assignment, suspend, writing, wasTakenUp, missingForMs } = camera;
      const owner = heard.get(assignment?.node ?? '');
      if (!assignment || !owner || suspend) continue;
      const isNew = missingForMs !== undefined && missingForMs < TAKE_UP_MS && !wasTakenUp;
      // A write that gives the camera no other node occupies no slot.
      const isMoving = writing && missingForMs !== undefined;
      if (assignment.reason === 'Scheduled') this.#used.scheduled += Number(isMoving);
      else if (assignment.handover === 'Pending') {
        // Others must not wait for a Secret that may never come.
        if (!waitsForLogin(camera)) this.#inHandover.add(camera);
      } else this.#used.urgent += Number(isMoving || isNew);
    }
  }

  /** False if no slot is free; otherwise a function that takes one. */
  free(camera: PlannedCamera, need: Placement): false | (() => void) {
    if (need.reason === 'Scheduled') return this.#freeOf('scheduled', this.#used.scheduled, MAX_SCHEDULED);
    if (need.urgent) return this.#freeOf('urgent', this.#used.urgent, this.#maxMoves * this.#takers);
    if (this.#inHandover.has(camera)) return () => {}; // The camera already has a slot.
    return this.#freeOf('planned', this.#used.urgent + this.#inHandover.size + this.#used.planned, this.#maxMoves);
  }

  #freeOf(kind: 'scheduled' | 'urgent' | 'planned', used: number, limit: number): false | (() => void) {
    return used < limit && (() => void this.#used[kind]++);
  }
}

function assignedCondition(camera: PlannedCamera, nodes: ReadonlyMap<string, PlannedNode>): PlannedCondition {
  const node = camera.assignment?.node;
  if (camera.suspend) return condition('Assigned', 'False', 'Suspended', 'it is suspended');
  if (node === undefined) return condition('Assigned', 'False', 'Waiting', 'is about to be assigned to a node');
  const owner = nodes.get(node);
  if (owner?.liveness.state === 'Unavailable') {
    if (isSuspect(camera.assignment ?? {}))
      return condition('Assigned', 'False', 'TwoNodesLost', suspectMessage(camera));
    const message = `waits for node ${node}, which is unavailable, because placement.failover is Never`;
    return condition('Assigned', 'False', 'NodeUnavailable', message);
  }
  if (owner && reportOf(camera, owner) === undefined) {
    return condition('Assigned', 'True', 'NotTakenUp', `node ${node} has not started to record it yet`);
  }
  return condition('Assigned', 'True', 'Assigned', `to node ${node}`);
}

const suspectMessage = ({ assignment }: PlannedCamera): string =>
  `it was on ${assignment?.lostNodes?.join(' and ')} when their recorders became silent, so it goes to no other node: find ` +
  'out why, then set spec.suspend to true and back to false';

function poolConditions(
  quorum: Quorum,
  placed: Placements,
  nodeLoads: NodeLoads,
  { nodes }: Snapshot,
): PlannedCondition[] {
  const { votes, live, needed, available } = quorum;
  const count = `${live} of ${votes} voters are live, ${needed} are needed`;
  const why = votes === 0 ? 'NoVoters' : 'NoMajority';
  const full = nodes.filter(({ name }) => nodeLoads.excess(name) > 0).map(({ name }) => name);
  return [
    available
      ? condition('QuorumAvailable', 'True', 'Majority', count)
      : condition('QuorumAvailable', 'False', why, count),
    available
      ? condition('FailoverSuspended', 'False', 'Majority', 'cameras of an unavailable node move')
      : condition('FailoverSuspended', 'True', why, 'no camera is assigned or moved; assigned cameras are recorded'),
    placed.lacking.length > 0
      ? condition(
          'CapacityAvailable',
          'False',
          'NoRoom',
          `no node has capacity for: ${someOf(placed.lacking.toSorted(), MAX_NAMED)}`,
        )
      : full.length > 0
        ? condition(
            'CapacityAvailable',
            'False',
            'OverLimit',
            `more cameras than maxCamerasPerNode: ${someOf(full.toSorted(), MAX_NAMED)}`,
          )
        : condition('CapacityAvailable', 'True', 'Room', 'the nodes have capacity for every camera'),
  ];
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
