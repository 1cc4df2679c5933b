// Computes the majority of the voters, which of them leads, and in Automatic pools which nodes are voters: an odd number, spread
// over zones.

import { zoneOf } from './parts.ts';
import type { PlannedNode, PoolView, RoleWrite, Snapshot } from './snapshot.ts';

/** More voters would not make a pool safer, and each of them must be heard. */
const MAX_VOTERS = 7;

/**
 * How many voters are a majority: more than half. Of two voters that the operator chose, one: it is heard through the API server,
 * which accepted its renewal and not the other's, and so counts like a third voter (docs/design/failover.md).
 */
export const majorityOf = (voters: number, { membership }: Pick<PoolView, 'membership'>): number =>
  voters === 2 && membership === 'Automatic' ? 1 : Math.floor(voters / 2) + 1;

/**
 * The groups of nodes of which one must have a majority: the voters, and beside a single vote that the operator gave all nodes that were
 * ever heard. The votes of a new pool are given one after the other, so otherwise nothing would ever move away from its first voter.
 */
export function electoratesOf<N>(
  nodes: readonly N[],
  isVoter: (node: N) => boolean,
  wasHeard: (node: N) => boolean,
  { membership }: Pick<PoolView, 'membership'>,
): readonly (readonly N[])[] {
  const voters = nodes.filter(isVoter);
  const isFirst = voters.length === 1 && membership === 'Automatic';
  return isFirst ? [voters, nodes.filter((node) => isVoter(node) || wasHeard(node))] : [voters];
}

export type Quorum = {
  /** Whose votes answer. */
  readonly voters: readonly string[];
  /** How many votes there are, with those that do not answer, and with the nodes that decide beside a single vote. */
  readonly votes: number;
  /** Live voters needed for a majority. */
  readonly needed: number;
  readonly live: number;
  /** A majority of the voters is Live: this is what the status shows. */
  readonly available: boolean;
  /** A majority of the voters is heard right now: this is what decisions depend on. */
  readonly heard: boolean;
  readonly leader: string | undefined;
};

export function quorumOf({ pool, nodes }: Snapshot): Quorum {
  const counted = nodes.filter(isCounted).sort(byName);
  const answering = counted.filter(({ member }) => member !== 'NotAnswering');
  const hasEtcd = counted.some(({ member }) => member !== undefined);
  // Of two members of etcd, both are needed.
  const neededOf = ({ length }: readonly PlannedNode[]): number =>
    hasEtcd ? Math.floor(length / 2) + 1 : majorityOf(length, pool);
  const liveOf = (group: readonly PlannedNode[]): readonly PlannedNode[] =>
    group.filter((node) => isLive(node) && node.member !== 'NotAnswering');
  const groups = hasEtcd ? [counted] : electorates(nodes, pool);
  const group = groups.find((one) => liveOf(one).length >= neededOf(one)) ?? counted;
  const needed = neededOf(group);
  const live = liveOf(group);
  const available = live.length >= needed;
  const leaders = liveOf(counted);
  const stays = leaders.some(({ name }) => name === pool.leader);
  return {
    voters: answering.map(({ name }) => name),
    votes: group.length,
    needed,
    live: live.length,
    available,
    heard: isHeard(nodes, pool),
    leader: available ? (stays ? pool.leader : leaders[0]?.name) : undefined,
  };
}

/**
 * The next change of a role, at most one at a time. The goal is an odd number of voters (or two, if there are no more
 * nodes), at most seven, spread over the zones of the nodes, so that the loss of a zone is no loss of the majority where that is
 * possible. A voter that has been gone for long gives its vote to a live learner. Without such a learner it keeps the vote, because
 * fewer voters would only hide that a node is missing.
 */
export function planRoles({ pool, nodes, changingRoles }: Snapshot): RoleWrite | undefined {
  if (pool.membership === 'Manual' || changingRoles) return undefined;
  const voters = nodes.filter(isVoter);
  if (voters.length > 0 && !isHeard(nodes, pool)) return undefined;

  const isLost = ({ liveness }: PlannedNode): boolean =>
    liveness.state === 'Unavailable' && (liveness.silentMs ?? Infinity) >= pool.failbackAfterMs;
  const isReady = ({ drain, canRecord, liveness }: PlannedNode): boolean =>
    !drain && canRecord && liveness.heard && (voters.length === 0 || liveness.liveForMs >= pool.unavailableAfterMs);

  const learners = nodes.filter((node) => !isVoter(node) && isReady(node)).sort(byName);
  const kept = voters.filter((node) => !isLost(node)).sort((a, b) => unheard(a) - unheard(b) || byName(a, b));
  const lost = voters.filter(isLost).sort(byName);
  const wanted = wantedVoters({ kept, learners, lost }, votersOf(voters.length + learners.length));

  const promoted = learners.find((node) => wanted.has(node));
  if (promoted && voters.length <= wanted.size && hasMajority([...voters, promoted], pool)) {
    return { node: promoted.name, resourceVersion: promoted.resourceVersion, role: 'Voter' };
  }
  const demoted = [...kept, ...lost].findLast((node) => !wanted.has(node));
  if (
    demoted &&
    hasMajority(
      voters.filter((node) => node !== demoted),
      pool,
    )
  ) {
    return { node: demoted.name, resourceVersion: demoted.resourceVersion, role: 'Learner' };
  }
  return undefined;
}

/** Voters and learners that may vote, each in order of preference. */
type Candidates = {
  readonly kept: readonly PlannedNode[];
  readonly learners: readonly PlannedNode[];
  readonly lost: readonly PlannedNode[];
};

/** The voters that there are, then learners of the zones with the fewest voters, then voters that are lost. */
function wantedVoters({ kept, learners, lost }: Candidates, count: number): ReadonlySet<PlannedNode> {
  const wanted = new Set(kept);
  const inZone = (node: PlannedNode): number => [...wanted].filter((other) => zoneOf(other) === zoneOf(node)).length;
  const mostCrowded = (): PlannedNode | undefined => {
    const silent = [...wanted].filter(({ liveness }) => !liveness.heard);
    const among = silent.length > 0 ? silent : [...wanted];
    return among.toSorted((a, b) => inZone(a) - inZone(b)).at(-1);
  };
  const sparsest = (): PlannedNode | undefined =>
    learners.filter((node) => !wanted.has(node)).toSorted((a, b) => inZone(a) - inZone(b))[0];

  for (let last = mostCrowded(); last && wanted.size > count; last = mostCrowded()) wanted.delete(last);
  for (let next = sparsest(); next && wanted.size < count; next = sparsest()) wanted.add(next);
  // Exchanges one voter for a learner of a zone that has at least two fewer, so that it ends.
  for (let next = sparsest(), last = mostCrowded(); next && last; next = sparsest(), last = mostCrowded()) {
    if (inZone(last) - inZone(next) < 2) break;
    wanted.delete(last);
    wanted.add(next);
  }
  return new Set([...wanted, ...lost].slice(0, count));
}

/** How many nodes vote if so many may. */
export const votersOf = (nodes: number): number => {
  const bounded = Math.min(nodes, MAX_VOTERS);
  return bounded > 2 && bounded % 2 === 0 ? bounded - 1 : bounded;
};

const isVoter = ({ role }: PlannedNode): boolean => role === 'Voter';
/** Its vote counts for the majority: with a member of etcd, as etcd says. */
const isCounted = ({ member, role }: PlannedNode): boolean =>
  member === 'Voting' || (role === 'Voter' && (member === undefined || member === 'NotAnswering'));
const isLive = ({ liveness }: PlannedNode): boolean => liveness.state === 'Live';
const unheard = ({ liveness }: PlannedNode): number => (liveness.heard ? 0 : 1);
const byName = (a: PlannedNode, b: PlannedNode): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

const electorates = (nodes: readonly PlannedNode[], pool: PoolView): readonly (readonly PlannedNode[])[] =>
  electoratesOf(nodes, isVoter, ({ liveness }) => liveness.silentMs !== undefined, pool);
/** A majority is heard right now, so decisions may be taken. */
const isHeard = (nodes: readonly PlannedNode[], pool: PoolView): boolean =>
  electorates(nodes, pool).some((group) => hasMajority(group, pool));

const hasMajority = (voters: readonly PlannedNode[], pool: PoolView): boolean =>
  voters.filter(({ liveness }) => liveness.heard).length >= majorityOf(voters.length, pool);
