// Computes the majority of the voters, which of them leads, and in Automatic pools which nodes are voters.

import type { PlannedNode, RoleWrite, Snapshot } from './snapshot.ts';

/** More voters would not make a pool safer, and each of them must be heard. */
const MAX_VOTERS = 7;

export type Quorum = {
  readonly voters: readonly string[];
  /** Live voters needed for a majority. */
  readonly needed: number;
  readonly live: number;
  /** More than half of the voters are Live: this is what the status shows. */
  readonly available: boolean;
  /** More than half of the voters are heard right now: this is what decisions depend on. */
  readonly heard: boolean;
  readonly leader: string | undefined;
};

export function quorumOf({ pool, nodes }: Snapshot): Quorum {
  const voters = nodes.filter(isVoter).sort(byName);
  const live = voters.filter(isLive);
  const needed = Math.floor(voters.length / 2) + 1;
  const available = live.length >= needed;
  const stays = live.some(({ name }) => name === pool.leader);
  return {
    voters: voters.map(({ name }) => name),
    needed,
    live: live.length,
    available,
    heard: hasMajority(voters),
    leader: available ? (stays ? pool.leader : live[0]?.name) : undefined,
  };
}

/**
 * The next change of a role, at most one at a time. The goal is an odd number of voters, at most seven, that changes only when
 * needed. A voter that has been gone for long gives its vote to a live learner. Without such a learner it keeps the vote, because
 * fewer voters would only hide that a node is missing.
 */
export function planRoles({ pool, nodes, changingRoles }: Snapshot): RoleWrite | undefined {
  if (pool.membership === 'Manual' || changingRoles) return undefined;
  const voters = nodes.filter(isVoter);
  if (voters.length > 0 && !hasMajority(voters)) return undefined;

  const isLost = ({ liveness }: PlannedNode): boolean =>
    liveness.state === 'Unavailable' && (liveness.silentMs ?? Infinity) >= pool.failbackAfterMs;
  const isReady = ({ drain, canRecord, liveness }: PlannedNode): boolean =>
    !drain && canRecord && liveness.heard && (voters.length === 0 || liveness.liveForMs >= pool.unavailableAfterMs);

  const learners = nodes.filter((node) => !isVoter(node) && isReady(node)).sort(byName);
  const kept = voters.filter((node) => !isLost(node)).sort((a, b) => unheard(a) - unheard(b) || byName(a, b));
  const lost = voters.filter(isLost).sort(byName);
  const wanted = new Set([...kept, ...learners, ...lost].slice(0, oddAtMost(voters.length + learners.length)));

  const promoted = learners.find((node) => wanted.has(node));
  if (promoted && voters.length <= wanted.size && hasMajority([...voters, promoted])) {
    return { node: promoted.name, resourceVersion: promoted.resourceVersion, role: 'Voter' };
  }
  const demoted = [...kept, ...lost].findLast((node) => !wanted.has(node));
  if (demoted && hasMajority(voters.filter((node) => node !== demoted))) {
    return { node: demoted.name, resourceVersion: demoted.resourceVersion, role: 'Learner' };
  }
  return undefined;
}

const oddAtMost = (count: number): number => {
  const bounded = Math.min(count, MAX_VOTERS);
  return bounded % 2 === 0 ? bounded - 1 : bounded;
};

const isVoter = ({ role }: PlannedNode): boolean => role === 'Voter';
const isLive = ({ liveness }: PlannedNode): boolean => liveness.state === 'Live';
const unheard = ({ liveness }: PlannedNode): number => (liveness.heard ? 0 : 1);
const byName = (a: PlannedNode, b: PlannedNode): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

const hasMajority = (voters: readonly PlannedNode[]): boolean =>
  2 * voters.filter(({ liveness }) => liveness.heard).length > voters.length;
