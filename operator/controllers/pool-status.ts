// What a RecorderPool shows. What is known in, the status to apply out; pure.

import type { RecorderPool } from '../../crds/recorder-pool.ts';
import { mergeConditions, type StatedCondition } from '../kube/conditions.ts';
import type { Plan, PlannedCondition, Snapshot } from '../plan/snapshot.ts';
import type { ShownStatus } from './camera-status.ts';

/** How the pods of a pool are: see `recorders.ts`. */
export interface Rollout {
  readonly nodesUpdated: number;
  readonly conditions: readonly PlannedCondition[];
}

export interface PoolFacts {
  readonly pool: RecorderPool;
  /** Of the leader's last plan; undefined before the first. */
  readonly plan: Plan | undefined;
  readonly snapshot: Snapshot | undefined;
  readonly rollout: Rollout | undefined;
  readonly nowMs: number;
}

export function statusOfPool({ pool, plan, snapshot, rollout, nowMs }: PoolFacts): ShownStatus {
  const { generation } = pool.metadata;
  const before = pool.status?.conditions ?? [];
  const stated = plan ? [...plan.pool, ...(rollout?.conditions ?? [])] : [];
  const { conditions, transitions } = mergeConditions(before, withReady(stated), generation, new Date(nowMs));
  const nodes = snapshot?.nodes ?? [];
  const cameras = snapshot?.cameras ?? [];
  const byName = new Map(nodes.map((node) => [node.name, node]));
  // What a node said before it fell silent is no news.
  const isRecording = (name: string, node: string | undefined, epoch: number): boolean => {
    const { liveness, cameras: reports } = byName.get(node ?? '') ?? {};
    const report = reports?.get(name);
    return liveness?.state === 'Live' && report?.state === 'Recording' && report.epoch <= epoch;
  };
  const counts = {
    nodes: nodes.length,
    nodesReady: nodes.filter(({ liveness, canRecord }) => liveness.heard && canRecord).length,
    ...(rollout && { nodesUpdated: rollout.nodesUpdated }),
    cameras: cameras.length,
    camerasAssigned: cameras.filter(({ assignment }) => assignment?.node !== undefined).length,
    // Until a planned move is complete, the old node records on.
    camerasRecording: cameras.filter(
      ({ name, assignment }) =>
        assignment &&
        (isRecording(name, assignment.node, assignment.epoch) ||
          (assignment.handover === 'Pending' && isRecording(name, assignment.previousNode, assignment.epoch))),
    ).length,
  };
  const membership = plan && {
    ...(plan.leader !== undefined && { leader: plan.leader }),
    voters: plan.voters,
    quorum: plan.quorum,
  };
  const status = { observedGeneration: generation, ...counts, ...membership, conditions };
  const { status: shown } = pool;
  const isChanged =
    conditions !== before ||
    Object.entries(status).some(
      ([key, value]) =>
        key !== 'conditions' && JSON.stringify(shown?.[key as keyof typeof shown]) !== JSON.stringify(value),
    ) ||
    (shown?.leader !== undefined && plan?.leader === undefined);
  return { status, isChanged, transitions };
}

export interface Refusal {
  readonly pool: RecorderPool;
  /** What an owner of the namespace runs to change that. */
  readonly command: string;
  /** This process has looked after the pool before. */
  readonly wasOurs: boolean;
  readonly nowMs: number;
}

/** What a pool shows in a namespace where the operator has no rights; undefined when it is not ours to say. */
export function statusOfRefused({ pool, command, wasOurs, nowMs }: Refusal): ShownStatus | undefined {
  const { namespace, generation } = pool.metadata;
  const before = pool.status?.conditions ?? [];
  // An operator of the namespace alone may look after it: two would write against each other for ever.
  const isOthers = before.some(({ type }) => !['Ready', 'NamespaceGranted'].includes(type));
  if (isOthers && !wasOurs) return undefined;
  const message =
    `the operator has no rights in the namespace ${namespace} and does nothing there; ` +
    `who may give them runs: ${command.replaceAll('{namespace}', namespace)}`;
  // Stated only while it is so: elsewhere there is nothing to say about it.
  const refused: StatedCondition = { type: 'NamespaceGranted', status: 'False', reason: 'NoRights', message };
  const { conditions, transitions } = mergeConditions(before, withReady([refused]), generation, new Date(nowMs));
  return { status: { observedGeneration: generation, conditions }, isChanged: conditions !== before, transitions };
}

/** Conditions that are wrong when they are True. */
export const BAD_WHEN_TRUE: ReadonlySet<string> = new Set(['FailoverSuspended', 'NodesTaken', 'RolloutStopped']);

/** True when nothing is wrong. */
function withReady(stated: readonly StatedCondition[]): readonly StatedCondition[] {
  if (stated.length === 0) {
    return [{ type: 'Ready', status: 'Unknown', reason: 'Pending', message: 'not looked at yet' }];
  }
  const isWrong = ({ type, status }: StatedCondition): boolean =>
    status !== (BAD_WHEN_TRUE.has(type) ? 'False' : 'True');
  const wrong = stated.find(isWrong);
  return [
    ...stated,
    wrong
      ? { type: 'Ready', status: 'False', reason: wrong.reason, message: wrong.message }
      : { type: 'Ready', status: 'True', reason: 'AsExpected', message: '' },
  ];
}
