// The next step of a rolling update of one pool: one node at a time, the next when the last is ready and online. Pods and
// nodes in, what to do now out; pure.

import type { PlannedCondition } from './snapshot.ts';

export type RolloutPod = {
  readonly name: string;
  readonly node: string;
  /** Runs what the pool says now. */
  readonly isCurrent: boolean;
  readonly isReady: boolean;
  readonly isTerminating: boolean;
  /** Since it was ready last, or since it was made; 0 while it is. */
  readonly notReadyForMs: number;
};

export type RolloutNode = {
  readonly name: string;
  /** Its Lease changes. An operator that has just begun to lead has heard of nobody yet. */
  readonly isOnline: boolean;
  /** Its kubelet works: without it no pod is replaced. */
  readonly isReachable: boolean;
  readonly isVoter: boolean;
  /** Its turn has come; since when, undefined when it has not. Kept with the node, for the next leader. */
  readonly updatingForMs: number | undefined;
  /** Cameras are to leave it, because of the update or because a person wants that. */
  readonly isDrained: boolean;
  /** Cameras that it still records. */
  readonly cameras: number;
};

export type RolloutView = {
  readonly type: 'Rolling' | 'OnDelete';
  readonly drain: boolean;
  readonly progressDeadlineMs: number;
  readonly leader: string | undefined;
  readonly pods: readonly RolloutPod[];
  readonly nodes: readonly RolloutNode[];
};

export type RolloutStep =
  | { readonly kind: 'none' }
  /** The node's turn begins; with `drain` its cameras are to leave before its pod is replaced. */
  | { readonly kind: 'begin'; readonly node: string; readonly drain: boolean }
  | { readonly kind: 'delete'; readonly pod: string; readonly node: string }
  /** The node's new pod is ready and online: cameras may come back, and the next node's turn comes. */
  | { readonly kind: 'end'; readonly node: string };

export type RolloutPlan = {
  readonly step: RolloutStep;
  readonly condition: PlannedCondition;
  /** Nodes whose pod is up to date and ready. */
  readonly updated: number;
  readonly recheckMs: number | undefined;
};

/** Cameras that find no other node are not waited for longer: a gap of seconds is better than no update. */
const MAX_DRAIN_MS = 60_000;
const LOOK_AGAIN_MS = 1_000;

export function planRollout(view: RolloutView): RolloutPlan {
  const { pods, nodes } = view;
  const updated = pods.filter((pod) => pod.isCurrent && pod.isReady && !pod.isTerminating).length;
  const outdated = pods.filter((pod) => !pod.isCurrent);
  const turn = nodes.find(({ updatingForMs }) => updatingForMs !== undefined);
  const isDone = outdated.length === 0 && !turn;
  const reachable = new Set(nodes.filter(({ isReachable }) => isReachable).map(({ name }) => name));
  const busy = pods.filter((pod) => reachable.has(pod.node) && (pod.isTerminating || (pod.isCurrent && !pod.isReady)));
  const late = busy.find((pod) => pod.isCurrent && !pod.isTerminating && pod.notReadyForMs > view.progressDeadlineMs);
  const step = isDone ? NOTHING : turn ? stepOfTurn(turn, view) : nextTurn(view, busy);
  const isMoving = step.kind !== 'none' || busy.length > 0 || (!isDone && view.type === 'Rolling');
  return {
    step,
    updated,
    condition: late
      ? stopped(`${late.name} on ${late.node}`, view)
      : turn?.isReachable === false && (turn.updatingForMs ?? 0) > view.progressDeadlineMs
        ? stopped(turn.name, view)
        : progress(outdated.length, pods.length),
    recheckMs: isMoving ? LOOK_AGAIN_MS : undefined,
  };
}

const NOTHING: RolloutStep = { kind: 'none' };

function stepOfTurn(node: RolloutNode, view: RolloutView): RolloutStep {
  const ofNode = view.pods.filter((one) => one.node === node.name);
  const pod = ofNode.find(({ isTerminating }) => !isTerminating);
  // Its old pod is gone and the new one not there yet, or both are there for a moment.
  if (!pod || ofNode.length > 1) return NOTHING;
  if (pod.isCurrent) return pod.isReady && node.isOnline ? { kind: 'end', node: node.name } : NOTHING;
  const isEmpty = !node.isDrained || node.cameras === 0 || (node.updatingForMs ?? 0) > MAX_DRAIN_MS;
  // Never a second node away, whatever became of it since the turn began.
  const mayGo = isEmpty && (!pod.isReady || othersOnline(node.name, view));
  return mayGo ? { kind: 'delete', pod: pod.name, node: node.name } : NOTHING;
}

/** All that have a pod and a kubelet: a machine that is dead cannot be waited for. */
function othersOnline(name: string, { nodes, pods }: RolloutView): boolean {
  const withPod = new Set(pods.filter(({ isTerminating }) => !isTerminating).map(({ node }) => node));
  return nodes.every(
    (other) => other.name === name || other.isOnline || !other.isReachable || !withPod.has(other.name),
  );
}

function nextTurn(view: RolloutView, busy: readonly RolloutPod[]): RolloutStep {
  if (view.type === 'OnDelete') return NOTHING;
  const nodes = new Map(view.nodes.map((node) => [node.name, node]));
  const nodeOf = (pod: RolloutPod): RolloutNode | undefined => nodes.get(pod.node);
  const outdated = view.pods.filter((pod) => !pod.isCurrent && !pod.isTerminating && nodeOf(pod)?.isReachable);
  // What does not work can only get better: a roll-back begins with what the roll-out broke.
  const broken = outdated.find((pod) => !pod.isReady);
  if (broken) return { kind: 'begin', node: broken.node, drain: false };
  const order = (pod: RolloutPod): number => (pod.node === view.leader ? 2 : nodeOf(pod)?.isVoter === true ? 1 : 0);
  const [next] = outdated.toSorted((a, b) => order(a) - order(b) || (a.node < b.node ? -1 : 1));
  if (!next || busy.length > 0) return NOTHING;
  const node = nodeOf(next);
  // Also itself: whoever has heard of nobody does not know what is recorded where.
  if (!node?.isOnline || !othersOnline(next.node, view)) return NOTHING;
  const hasOther = view.nodes.some(({ name, isOnline }) => name !== next.node && isOnline);
  return { kind: 'begin', node: next.node, drain: view.drain && hasOther && node.cameras > 0 };
}

function stopped(what: string, { progressDeadlineMs }: RolloutView): PlannedCondition {
  const message = `${what} was not ready within ${progressDeadlineMs / 1000} s; the update waits`;
  return { type: 'RolloutStopped', status: 'True', reason: 'ProgressDeadlineExceeded', message };
}

const progress = (outdated: number, pods: number): PlannedCondition => ({
  type: 'RolloutStopped',
  status: 'False',
  reason: outdated === 0 ? 'UpToDate' : 'RollingOut',
  message: outdated === 0 ? '' : `${outdated} of ${pods} pods are to be replaced`,
});
