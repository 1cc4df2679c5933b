// Plans the next step of a rolling update of one pool: one node at a time, the next when the previous one is ready and online.
// Pure.

import type { PlannedCondition } from './snapshot.ts';

export type RolloutPod = {
  readonly name: string;
  readonly node: string;
  /** The pod matches the pool's current settings. */
  readonly isCurrent: boolean;
  readonly isReady: boolean;
  readonly isTerminating: boolean;
  /** Time since it was last ready, or since it was created; 0 while it is ready. */
  readonly notReadyForMs: number;
};

export type RolloutNode = {
  readonly name: string;
  /** The node's Lease changes. A new leader has not seen any change at first. */
  readonly isOnline: boolean;
  /** The node's kubelet works; otherwise its pod is not replaced. */
  readonly isReachable: boolean;
  readonly isVoter: boolean;
  /** How long the node has been updating; undefined if it is not. Stored on the RecorderNode for the next leader. */
  readonly updatingForMs: number | undefined;
  /** The node's cameras are being moved away, for the update or at somebody's request. */
  readonly isDrained: boolean;
  /** The number of cameras that the node still records. */
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

type RolloutStep =
  | { readonly kind: 'none' }
  /** Start to update the node; with `drain`, move its cameras away before its pod is replaced. */
  | { readonly kind: 'begin'; readonly node: string; readonly drain: boolean }
  | { readonly kind: 'delete'; readonly pod: string; readonly node: string }
  /** The node's new pod is ready and online: cameras may return, and the next node can be updated. */
  | { readonly kind: 'end'; readonly node: string };

type RolloutPlan = {
  readonly step: RolloutStep;
  readonly condition: PlannedCondition;
  /** The number of nodes whose pod is up to date and ready. */
  readonly updated: number;
  readonly recheckMs: number | undefined;
};

/** Cameras that find no other node are not waited for longer than this: a gap of seconds is better than no update. */
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
  // The old pod is gone and the new one not there yet, or both exist for a moment.
  if (!pod || ofNode.length > 1) return NOTHING;
  if (pod.isCurrent) return pod.isReady && node.isOnline ? { kind: 'end', node: node.name } : NOTHING;
  const isEmpty = !node.isDrained || node.cameras === 0 || (node.updatingForMs ?? 0) > MAX_DRAIN_MS;
  // Never take a second node down, even if another one failed since the update of this one started.
  const mayGo = isEmpty && (!pod.isReady || othersOnline(node.name, view));
  return mayGo ? { kind: 'delete', pod: pod.name, node: node.name } : NOTHING;
}

/** Whether all other nodes with a pod and a working kubelet are online; a dead machine is not waited for. */
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
  // Broken pods first, because they can only improve: a rollback starts with the pods that the rollout broke.
  const broken = outdated.find((pod) => !pod.isReady);
  if (broken) return { kind: 'begin', node: broken.node, drain: false };
  const order = (pod: RolloutPod): number => (pod.node === view.leader ? 2 : nodeOf(pod)?.isVoter === true ? 1 : 0);
  const [next] = outdated.toSorted((a, b) => order(a) - order(b) || (a.node < b.node ? -1 : 1));
  if (!next || busy.length > 0) return NOTHING;
  const node = nodeOf(next);
  // Includes this node: as long as its Lease has not been seen to change, it is unknown what it records.
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
