// Computes the status of a RecorderPool. Pure.

import { someOf } from '../../base/some-of.ts';
import type { Camera } from '../../crds/camera.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import { mergeConditions, type StatedCondition } from '../kube/conditions.ts';
import type { Plan, PlannedCondition, Snapshot } from '../plan/snapshot.ts';
import type { ShownStatus } from './camera-status.ts';

/** The state of the pool's pods; see `recorders.ts`. */
export interface Rollout {
  readonly nodesUpdated: number | undefined;
  readonly conditions: readonly PlannedCondition[];
}

/** The condition of a pool whose objects are as they should be. */
export const ALL_APPLIED: PlannedCondition = {
  type: 'ResourcesApplied',
  status: 'True',
  reason: 'Applied',
  message: '',
};

/** Conditions that the plan of a pool states; those of its pods are `Rollout.conditions`. */
const OF_THE_PLAN: ReadonlySet<string> = new Set([
  'QuorumAvailable',
  'FailoverSuspended',
  'CapacityAvailable',
  'Balanced',
  'NamespaceGranted',
  'NodesOnline',
  'MembersAnswer',
  'RowsFollowed',
  'CamerasRead',
  'Ready',
  'Reconciling',
  'Stalled',
]);

/** The rollout as the status shows it. */
const shownRollout = ({ status }: RecorderPool): Rollout => ({
  nodesUpdated: status?.nodesUpdated,
  conditions: (status?.conditions ?? []).filter(({ type }) => !OF_THE_PLAN.has(type)),
});

interface PoolFacts {
  readonly pool: RecorderPool;
  /** The leader's last plan; undefined before the first one. */
  readonly plan: Plan | undefined;
  readonly snapshot: Snapshot | undefined;
  /** Undefined: the pool could not be reconciled. What is shown of it stays, as of the generation for which it was true. */
  readonly rollout: Rollout | undefined;
  /** Cameras of the pool, and keys of cameras of its namespace of which nothing could be read. */
  readonly cameras?: readonly Camera[];
  readonly invalid?: readonly string[];
  /** What the rows of the database have come to, where they are Cameras. */
  readonly rows?: readonly PlannedCondition[];
  readonly nowMs: number;
}

export function statusOfPool(facts: PoolFacts): ShownStatus {
  const { pool, plan, snapshot, rollout, rows = [], nowMs } = facts;
  const generation = rollout ? pool.metadata.generation : pool.status?.observedGeneration;
  const before = pool.status?.conditions ?? [];
  const { nodesUpdated, conditions: ofPods } = rollout ?? shownRollout(pool);
  // A pool without nodes has no majority and no capacity either: its cause comes first.
  const selected = ofPods.filter(({ type }) => type === 'NodesSelected');
  const others = ofPods.filter(({ type }) => type !== 'NodesSelected');
  const stated = plan
    ? [
        ...selected,
        ...plan.pool,
        ...others,
        nodesOnline(snapshot),
        ...membersAnswer(snapshot),
        camerasRead(facts),
        ...rows,
      ]
    : [];
  const { conditions, transitions } = mergeConditions(before, withReady(stated), generation, new Date(nowMs));
  const nodes = snapshot?.nodes ?? [];
  const cameras = snapshot?.cameras ?? [];
  const byName = new Map(nodes.map((node) => [node.name, node]));
  // The last report of a node that has fallen silent does not count.
  const isRecording = (name: string, node: string | undefined, epoch: number): boolean => {
    const { liveness, cameras: reports } = byName.get(node ?? '') ?? {};
    const report = reports?.get(name);
    return liveness?.state === 'Live' && report?.state === 'Recording' && report.epoch <= epoch;
  };
  const counts = {
    nodes: nodes.length,
    nodesReady: nodes.filter(({ liveness, canRecord }) => liveness.heard && canRecord).length,
    ...(nodesUpdated !== undefined && { nodesUpdated }),
    cameras: cameras.length,
    camerasAssigned: cameras.filter(({ assignment }) => assignment?.node !== undefined).length,
    // Until a planned move is complete, the old node continues to record.
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
  const status = {
    ...(generation !== undefined && { observedGeneration: generation }),
    ...counts,
    ...membership,
    conditions,
  };
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

/** A node that is being drained, or was removed, is expected to go away. */
function nodesOnline(snapshot: Snapshot | undefined): StatedCondition {
  const nodes = snapshot?.nodes ?? [];
  const gone = nodes
    .filter(({ liveness, drain }) => liveness.state === 'Unavailable' && !drain)
    .map(({ name }) => name);
  if (gone.length === 0) return { type: 'NodesOnline', status: 'True', reason: 'AllOnline', message: '' };
  const named = gone.slice(0, MAX_NAMED).join(', ') + (gone.length > MAX_NAMED ? ', …' : '');
  const message = `${gone.length} of ${nodes.length} nodes ${gone.length === 1 ? 'is' : 'are'} unavailable: ${named}`;
  return { type: 'NodesOnline', status: 'False', reason: 'NodesUnavailable', message };
}

/** Another version may write what this one does not understand. */
function camerasRead({ cameras = [], invalid = [] }: PoolFacts): StatedCondition {
  const partly = cameras.flatMap(({ metadata, unread }) => (unread ? `${metadata.name} (${unread.join(', ')})` : []));
  if (partly.length + invalid.length === 0)
    return { type: 'CamerasRead', status: 'True', reason: 'AllRead', message: '' };
  const parts = [
    ...(partly.length > 0 ? [`recorded as far as this version understands them: ${someOf(partly, MAX_NAMED)}`] : []),
    ...(invalid.length > 0 ? [`not understood, and left as they are: ${someOf(invalid, MAX_NAMED)}`] : []),
  ];
  return { type: 'CamerasRead', status: 'False', reason: 'InvalidCamera', message: parts.join('; ') };
}

/** Where recorders run etcd: a member that hangs counts as a vote that is lost, although its node records. */
function membersAnswer(snapshot: Snapshot | undefined): readonly StatedCondition[] {
  const members = (snapshot?.nodes ?? []).filter(({ member }) => member !== undefined);
  if (members.length === 0) return [];
  const down = members.filter(({ member }) => member === 'NotAnswering').map(({ name }) => name);
  if (down.length === 0) return [{ type: 'MembersAnswer', status: 'True', reason: 'AllAnswer', message: '' }];
  const message = `etcd does not answer on ${down.join(', ')}`;
  return [{ type: 'MembersAnswer', status: 'False', reason: 'MembersSilent', message }];
}

/** A message names this many nodes. */
const MAX_NAMED = 5;

/**
 * The conditions that tools evaluate to wait for resources (kstatus, in Flux and kpt): Stalled if a person has to act,
 * Reconciling while pods are replaced. They are absent otherwise.
 */
function progressOf(stated: readonly StatedCondition[]): readonly StatedCondition[] {
  const of = (type: string): StatedCondition | undefined => stated.find((one) => one.type === type);
  const rollout = of('RolloutStopped');
  const failed = [of('ResourcesApplied'), of('NodesSelected')].find((one) => one?.status === 'False');
  const stalled = failed ?? (rollout?.status === 'True' ? rollout : undefined);
  if (stalled) return [{ ...stalled, type: 'Stalled', status: 'True' }];
  if (rollout?.reason === 'RollingOut') return [{ ...rollout, type: 'Reconciling', status: 'True' }];
  return [];
}

interface Refusal {
  readonly pool: RecorderPool;
  /** The command with which an owner of the namespace can grant the rights. */
  readonly command: string;
  /** This process has managed the pool before. */
  readonly wasOurs: boolean;
  readonly nowMs: number;
}

/** The status of a pool in a namespace where the operator has no rights; undefined if another operator manages the pool. */
export function statusOfRefused({ pool, command, wasOurs, nowMs }: Refusal): ShownStatus | undefined {
  const { namespace, generation } = pool.metadata;
  const before = pool.status?.conditions ?? [];
  // Another operator, of this namespace alone, may manage the pool: two operators would overwrite each other for ever.
  const isOthers = before.some(({ type }) => !['Ready', 'NamespaceGranted'].includes(type));
  if (isOthers && !wasOurs) return undefined;
  const message =
    `the operator has no rights in the namespace ${namespace} and does nothing there; ` +
    `who may give them runs: ${command.replaceAll('{namespace}', namespace)}`;
  // Added only while it is False: other pools do not have this condition.
  const refused: StatedCondition = { type: 'NamespaceGranted', status: 'False', reason: 'NoRights', message };
  const { conditions, transitions } = mergeConditions(before, withReady([refused]), generation, new Date(nowMs));
  return { status: { observedGeneration: generation, conditions }, isChanged: conditions !== before, transitions };
}

/** Conditions that report a problem when they are True. */
export const BAD_WHEN_TRUE: ReadonlySet<string> = new Set(['FailoverSuspended', 'NodesTaken', 'RolloutStopped']);

/** Adds the condition `Ready`: True when no condition reports a problem. Unequal nodes are none. */
function withReady(stated: readonly StatedCondition[]): readonly StatedCondition[] {
  if (stated.length === 0) {
    return [{ type: 'Ready', status: 'Unknown', reason: 'Pending', message: 'not examined yet' }];
  }
  const isWrong = ({ type, status }: StatedCondition): boolean =>
    type !== 'Balanced' && status !== (BAD_WHEN_TRUE.has(type) ? 'False' : 'True');
  const wrong = stated.find(isWrong);
  return [
    ...stated,
    ...progressOf(stated),
    wrong
      ? { type: 'Ready', status: 'False', reason: wrong.reason, message: wrong.message }
      : { type: 'Ready', status: 'True', reason: 'AsExpected', message: '' },
  ];
}
