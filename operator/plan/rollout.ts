// Plans the next step of a rolling update of one pool: `maxUnavailable` nodes at a time, the next when a previous one
// is ready and online. Nodes that do not work anyway are updated last, and no other node waits for them. Pure.

import { someOf } from '../../base/some-of.ts';
import type { PlannedCondition } from './snapshot.ts';

export type RolloutPod = {
  readonly name: string;
  readonly node: string;
  /** The pod matches the pool's current settings. */
  readonly isCurrent: boolean;
  readonly isReady: boolean;
  /** A container of the recorder has run. */
  readonly hasStarted: boolean;
  readonly isTerminating: boolean;
  /** Time since it was last ready, or since it was created; 0 while it is ready. */
  readonly notReadyForMs: number;
  /** Why a pod does not run, according to its kubelet: `ImagePullBackOff`. */
  readonly problem: string | undefined;
  /** Why the scheduler does not place it on its node. */
  readonly unscheduled: string | undefined;
};

export type RolloutNode = {
  readonly name: string;
  /** The node's Lease changes. A new leader has not seen any change at first. */
  readonly isOnline: boolean;
  /** How long the node has been unavailable: silent for too long while others were heard. Undefined: it is not. */
  readonly lostForMs: number | undefined;
  /** Why the node cannot record, according to its recorder. */
  readonly fault: string | undefined;
  /** The node's kubelet works; otherwise its pod is not replaced. */
  readonly isReachable: boolean;
  readonly isVoter: boolean;
  /** How long the node has been updating; undefined if it is not. Stored on the RecorderNode for the next leader. */
  readonly updatingForMs: number | undefined;
  /** The node's cameras are being moved away, for the update or at a person's request. */
  readonly isDrained: boolean;
  /** The number of cameras that the node still records. */
  readonly cameras: number;
};

export type RolloutView = {
  readonly type: 'Rolling' | 'OnDelete';
  readonly drain: boolean;
  /** How many working nodes may be updated at the same time, or which percentage of all nodes: `2%`. */
  readonly maxUnavailable: number | string;
  readonly progressDeadlineMs: number;
  /** When a maintenance window opens; undefined: one is open, or none is needed; Infinity: never. */
  readonly closedUntilMs?: number | undefined;
  /** How long no step has been possible. */
  readonly stalledForMs: number;
  readonly leader: string | undefined;
  readonly pods: readonly RolloutPod[];
  readonly nodes: readonly RolloutNode[];
};

type RolloutStep =
  | { readonly kind: 'none' }
  /** Start to update the node; with `drain`, move its cameras away before its pod is replaced. */
  | { readonly kind: 'begin'; readonly node: string; readonly drain: boolean }
  | { readonly kind: 'delete'; readonly pod: string; readonly node: string }
  /** The node's new pod is ready and online: cameras may return, and the next node can be updated. */
  | { readonly kind: 'end'; readonly node: string };

export type RolloutPlan = {
  readonly step: RolloutStep;
  readonly condition: PlannedCondition;
  /** The number of nodes whose pod is up to date and ready. */
  readonly updated: number;
  /** Pods are to be replaced, no node is being updated, and no step is possible. */
  readonly isStalled: boolean;
  readonly recheckMs: number | undefined;
};

/** Cameras that find no other node are not waited for longer than this: a gap of seconds is better than no update. */
const MAX_DRAIN_MS = 60_000;
/** A node that has not worked for this long is not waited for: it will not come back by itself within seconds. */
const SICK_AFTER_MS = 60_000;
/** A node that was lost holds the update for this long: it was to record the cameras of the next one. */
const LOST_HOLDS_MS = 10 * 60_000;
const LOOK_AGAIN_MS = 1_000;
/** While the update waits for a maintenance window. */
const CLOSED_LOOK_AGAIN_MS = 30_000;
/** A message names this many nodes and counts the others. */
const MAX_NAMED = 3;

/**
 * - `updating`: it is being updated.
 * - `fit`: its recorder is ready and online.
 * - `unclear`: it is not, and may be again soon, or it runs the new version, which may be the cause: the update waits.
 * - `sick`: it does not work, and not because of the update. It is updated last, and nothing waits for it.
 * - `absent`: its machine is not there, as far as Kubernetes knows.
 */
type Health = 'updating' | 'fit' | 'unclear' | 'sick' | 'absent';

type Member = { readonly node: RolloutNode; readonly pod: RolloutPod; readonly health: Health };

export function planRollout(view: RolloutView): RolloutPlan {
  const { pods, nodes, type } = view;
  const members = membersOf(view);
  const updated = pods.filter((pod) => pod.isCurrent && pod.isReady && !pod.isTerminating).length;
  const outdated = pods.filter((pod) => !pod.isCurrent).length;
  const turns = nodes.filter(({ updatingForMs }) => updatingForMs !== undefined);
  const isDone = outdated === 0 && turns.length === 0;
  const held = heldBy(view, members);
  const limit = limitOf(view, members);
  const step = isDone ? NOTHING : (stepOfTurns(turns, view, held, limit) ?? nextTurn(view, members, held, limit));
  const isMoving = step.kind !== 'none' || held.size > 0 || (!isDone && type === 'Rolling');
  const late = isDone ? undefined : lateOf(view, members);
  const waits = type === 'Rolling' && step.kind === 'none' && turns.length === 0 && outdated > 0;
  const isClosed = view.closedUntilMs !== undefined;
  return {
    step,
    updated,
    isStalled: waits && held.size > 0 && !isClosed,
    condition: late === undefined ? progress(outdated, view, members) : stopped(late),
    recheckMs: !isMoving ? undefined : waits && isClosed ? CLOSED_LOOK_AGAIN_MS : LOOK_AGAIN_MS,
  };
}

const NOTHING: RolloutStep = { kind: 'none' };

/** Nodes with one pod, whose RecorderNode is known. */
function membersOf({ nodes, pods }: RolloutView): readonly Member[] {
  return nodes.flatMap((node) => {
    const ofNode = pods.filter((pod) => pod.node === node.name);
    // For a moment, the old pod may be there beside the new one.
    const pod = ofNode.find(({ isTerminating }) => isTerminating) ?? ofNode[0];
    return pod ? { node, pod, health: healthOf(node, pod) } : [];
  });
}

function healthOf(node: RolloutNode, pod: RolloutPod): Health {
  if (node.updatingForMs !== undefined) return 'updating';
  const isBroken = !pod.isReady && (!pod.hasStarted || node.fault !== undefined);
  if (!isBroken && node.lostForMs !== undefined && node.lostForMs < LOST_HOLDS_MS) return 'unclear';
  if (!node.isReachable) return 'absent';
  if (pod.isTerminating) return 'unclear';
  if (pod.isReady && node.isOnline) return 'fit';
  if (isBroken) return 'sick';
  const isSick = pod.isReady ? node.lostForMs !== undefined : pod.notReadyForMs > SICK_AFTER_MS;
  // A current pod that fails may fail because of the new version.
  return isSick && !pod.isCurrent ? 'sick' : 'unclear';
}

/** The nodes that count against `maxUnavailable`. */
function heldBy({ nodes }: RolloutView, members: readonly Member[]): ReadonlySet<string> {
  const unclear = members.filter(({ health }) => health === 'unclear').map(({ node }) => node.name);
  const updating = nodes.filter(({ updatingForMs }) => updatingForMs !== undefined).map(({ name }) => name);
  return new Set([...unclear, ...updating]);
}

/** How many nodes may be away at once. With a percentage: one, until a node shows that the new version works. */
function limitOf({ maxUnavailable, nodes }: RolloutView, members: readonly Member[]): number {
  if (typeof maxUnavailable === 'number') return maxUnavailable;
  const isProven = members.some(({ pod, health }) => pod.isCurrent && health === 'fit');
  return isProven ? Math.max(1, Math.floor((nodes.length * Number.parseInt(maxUnavailable, 10)) / 100)) : 1;
}

function stepOfTurns(
  turns: readonly RolloutNode[],
  view: RolloutView,
  held: ReadonlySet<string>,
  limit: number,
): RolloutStep | undefined {
  for (const node of turns) {
    const step = stepOfTurn(node, view, held, limit);
    if (step.kind !== 'none') return step;
  }
  return undefined;
}

function stepOfTurn(node: RolloutNode, view: RolloutView, held: ReadonlySet<string>, limit: number): RolloutStep {
  const ofNode = view.pods.filter((one) => one.node === node.name);
  const pod = ofNode.find(({ isTerminating }) => !isTerminating);
  // The old pod is gone and the new one not there yet, or both exist for a moment.
  if (!pod || ofNode.length > 1) return NOTHING;
  if (pod.isCurrent) return pod.isReady && node.isOnline ? { kind: 'end', node: node.name } : NOTHING;
  const isEmpty = !node.isDrained || node.cameras === 0 || (node.updatingForMs ?? 0) > MAX_DRAIN_MS;
  // Never take another node down if one failed since the update of this one started.
  const mayGo = isEmpty && (!pod.isReady || held.size <= limit);
  return mayGo ? { kind: 'delete', pod: pod.name, node: node.name } : NOTHING;
}

function nextTurn(
  view: RolloutView,
  members: readonly Member[],
  held: ReadonlySet<string>,
  limit: number,
): RolloutStep {
  if (view.type === 'OnDelete') return NOTHING;
  const outdated = members.filter(({ pod }) => !pod.isCurrent && !pod.isTerminating);
  const order = ({ node }: Member): number => (node.name === view.leader ? 2 : node.isVoter ? 1 : 0);
  // What does not work can be replaced at any time.
  const [next] = outdated
    .filter(({ health }) => health === 'fit' && view.closedUntilMs === undefined)
    .toSorted((a, b) => order(a) - order(b) || (a.node.name < b.node.name ? -1 : 1));
  if (!next) {
    if (view.nodes.some(({ updatingForMs }) => updatingForMs !== undefined)) return NOTHING;
    // Pods that do not work can only improve, so nothing is drained or waited for.
    const broken = outdated.find(
      ({ health, node, pod }) => health === 'sick' || (health === 'unclear' && !pod.isReady && node.isReachable),
    );
    return broken ? { kind: 'delete', pod: broken.pod.name, node: broken.node.name } : NOTHING;
  }
  if (held.size >= limit || (held.size > 0 && !keepsMajority(view, next.node))) return NOTHING;
  const hasOther = view.nodes.some(({ name, isOnline }) => name !== next.node.name && isOnline);
  return { kind: 'begin', node: next.node.name, drain: view.drain && hasOther && next.node.cameras > 0 };
}

/** Whether more than half of the voters are online without the nodes that are being updated. */
function keepsMajority({ nodes }: RolloutView, next: RolloutNode): boolean {
  if (!next.isVoter) return true;
  const voters = nodes.filter(({ isVoter }) => isVoter);
  const left = voters.filter((node) => node !== next && node.isOnline && node.updatingForMs === undefined);
  return 2 * left.length > voters.length;
}

/** What has held up the update for too long. */
function lateOf(view: RolloutView, members: readonly Member[]): string | undefined {
  const { progressDeadlineMs, stalledForMs } = view;
  for (const { node, pod, health } of members) {
    const { updatingForMs = 0 } = node;
    const what = `${pod.name} on ${node.name}`;
    const isFailing = (health === 'updating' || health === 'unclear') && node.isReachable;
    if (isFailing && pod.isCurrent && !pod.isTerminating && pod.notReadyForMs > progressDeadlineMs)
      return `${what} was not ready within ${seconds(progressDeadlineMs)}: ${problemOf(node, pod)}`;
    const limitMs = progressDeadlineMs + (node.isReachable ? MAX_DRAIN_MS : 0);
    if (health === 'updating' && updatingForMs > limitMs)
      return `${what} was not updated within ${seconds(limitMs)}: ${problemOf(node, pod)}`;
  }
  const podless = view.nodes.find(
    ({ name, updatingForMs = 0 }) => updatingForMs > progressDeadlineMs && !view.pods.some((pod) => pod.node === name),
  );
  if (podless) return `no pod was made on ${podless.name} within ${seconds(progressDeadlineMs)}`;
  if (stalledForMs <= progressDeadlineMs) return undefined;
  return `no pod could be replaced for ${seconds(progressDeadlineMs)}: ${named(members.filter(isWaitedFor))}`;
}

const seconds = (ms: number): string => `${ms / 1000} s`;

function stopped(what: string): PlannedCondition {
  const message = `${what}; the update waits`;
  return { type: 'RolloutStopped', status: 'True', reason: 'ProgressDeadlineExceeded', message };
}

function progress(
  outdated: number,
  { pods, closedUntilMs }: RolloutView,
  members: readonly Member[],
): PlannedCondition {
  const waitedFor = outdated === 0 ? [] : members.filter(isWaitedFor);
  const notWaitedFor = members.filter(({ health }) => health === 'sick' || health === 'absent');
  const parts = [
    ...(outdated === 0 ? [] : [`${outdated} of ${pods.length} pods are to be replaced`]),
    ...(outdated === 0 || closedUntilMs === undefined ? [] : [windowText(closedUntilMs)]),
    ...(waitedFor.length === 0 ? [] : [`waits for ${named(waitedFor)}`]),
    ...(notWaitedFor.length === 0 ? [] : [`does not wait for ${named(notWaitedFor)}`]),
  ];
  return {
    type: 'RolloutStopped',
    status: 'False',
    reason: outdated === 0 ? 'UpToDate' : 'RollingOut',
    message: parts.join('; '),
  };
}

const windowText = (opensMs: number): string =>
  opensMs === Infinity
    ? 'spec.update.windows has no window that opens: its time zone is unknown'
    : `waits for the window that opens at ${new Date(opensMs).toISOString()}`;

const isWaitedFor = ({ health }: Member): boolean => health === 'unclear';

const named = (members: readonly Member[]): string =>
  someOf(
    members.map(({ node, pod }) => `${node.name} (${problemOf(node, pod)})`),
    MAX_NAMED,
  );

function problemOf(node: RolloutNode, pod: RolloutPod): string {
  const { isTerminating, isReady, hasStarted, problem, unscheduled } = pod;
  if (unscheduled !== undefined) return `its pod cannot be scheduled: ${unscheduled}`;
  if (!node.isReachable) return 'Kubernetes reports that its machine is not ready';
  if (isTerminating) return 'its pod is ending';
  if (!isReady && !hasStarted) return `its pod has not started${problem === undefined ? '' : `: ${problem}`}`;
  if (node.fault !== undefined) return `it cannot record: ${node.fault}`;
  if (!isReady) return `its recorder is not ready${problem === undefined ? '' : `: ${problem}`}`;
  return node.isOnline ? 'its cameras are moving away' : 'its Lease does not change';
}
