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
  readonly ageMs: number;
};

export type RolloutNode = {
  readonly name: string;
  /** Its Lease changes. */
  readonly isOnline: boolean;
  readonly isVoter: boolean;
  /** It is drained for the update, and not by a person; since when, undefined when it is not. */
  readonly drainedForMs: number | undefined;
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
  /** Cameras are to leave the node before its pod is replaced. */
  | { readonly kind: 'drain'; readonly node: string }
  | { readonly kind: 'delete'; readonly pod: string; readonly node: string }
  /** The node's new pod is ready and online: cameras may come back. */
  | { readonly kind: 'undrain'; readonly node: string };

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
  const drained = nodes.find(({ drainedForMs }) => drainedForMs !== undefined);
  const isDone = outdated.length === 0 && !drained;
  const busy = pods.filter((pod) => pod.isTerminating || (pod.isCurrent && !pod.isReady));
  const late = busy.find((pod) => pod.isCurrent && !pod.isTerminating && pod.ageMs > view.progressDeadlineMs);
  const step = isDone ? NOTHING : drained ? stepOfDrained(drained, view) : nextNode(view, outdated, busy);
  const isMoving = step.kind !== 'none' || busy.length > 0 || (!isDone && view.type === 'Rolling');
  return {
    step,
    updated,
    condition: late ? stopped(late, view) : progress(outdated.length, pods.length),
    recheckMs: isMoving ? LOOK_AGAIN_MS : undefined,
  };
}

const NOTHING: RolloutStep = { kind: 'none' };

function stepOfDrained(node: RolloutNode, { pods, nodes }: RolloutView): RolloutStep {
  const pod = pods.find((one) => one.node === node.name);
  if (!pod || pod.isTerminating) return NOTHING;
  if (pod.isCurrent) return pod.isReady && node.isOnline ? { kind: 'undrain', node: node.name } : NOTHING;
  const isEmpty = node.cameras === 0 || (node.drainedForMs ?? 0) > MAX_DRAIN_MS;
  const othersAreOnline = nodes.every((other) => other === node || other.isOnline || !hasPod(other, pods));
  // Never a second node away, whatever became of it since the drain began.
  return isEmpty && (othersAreOnline || !pod.isReady) ? { kind: 'delete', pod: pod.name, node: node.name } : NOTHING;
}

const hasPod = ({ name }: RolloutNode, pods: readonly RolloutPod[]): boolean => pods.some(({ node }) => node === name);

function nextNode(view: RolloutView, outdated: readonly RolloutPod[], busy: readonly RolloutPod[]): RolloutStep {
  if (view.type === 'OnDelete') return NOTHING;
  const nodeOf = (pod: RolloutPod): RolloutNode | undefined => view.nodes.find(({ name }) => name === pod.node);
  // What does not work can only get better: a roll-back begins with what the roll-out broke.
  const broken = outdated.find((pod) => !pod.isReady && !pod.isTerminating);
  if (broken) return { kind: 'delete', pod: broken.name, node: broken.node };
  const areOthersThere =
    busy.length === 0 && view.pods.every((pod) => !pod.isCurrent || nodeOf(pod)?.isOnline !== false);
  if (!areOthersThere) return NOTHING;
  const order = (pod: RolloutPod): number => (pod.node === view.leader ? 2 : nodeOf(pod)?.isVoter === true ? 1 : 0);
  const [next] = outdated.toSorted((a, b) => order(a) - order(b) || (a.node < b.node ? -1 : 1));
  if (!next) return NOTHING;
  const hasOther = view.nodes.some(({ name, isOnline }) => name !== next.node && isOnline);
  const node = nodeOf(next);
  if (view.drain && hasOther && node && node.cameras > 0) return { kind: 'drain', node: next.node };
  return { kind: 'delete', pod: next.name, node: next.node };
}

function stopped(pod: RolloutPod, { progressDeadlineMs }: RolloutView): PlannedCondition {
  const message = `${pod.name} on ${pod.node} was not ready within ${progressDeadlineMs / 1000} s; the update waits`;
  return { type: 'RolloutStopped', status: 'True', reason: 'ProgressDeadlineExceeded', message };
}

const progress = (outdated: number, pods: number): PlannedCondition => ({
  type: 'RolloutStopped',
  status: 'False',
  reason: outdated === 0 ? 'UpToDate' : 'RollingOut',
  message: outdated === 0 ? '' : `${outdated} of ${pods} pods are to be replaced`,
});
