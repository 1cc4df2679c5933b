// Reconciles the recorders of a pool: the objects that run them, a RecorderNode for each node that has or should have
// one, and rolling updates.

import { createHash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { someOf } from '../../base/some-of.ts';
import { API_VERSION, poolLabels, recorderName } from '../../crds/names.ts';
import type { RecorderNode } from '../../crds/recorder-node.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import { isConflict, isNotFound, nameOfKey, type KubeApi, type KubeObject, type Resource } from '../kube/api.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { Change } from '../kube/informer.ts';
import { DAEMON_SET, POD, RECORDER_NODE } from '../kube/resources.ts';
import type { EgressPorts } from '../manifests/network-policy.ts';
import { copyingOf, namesTargets, type ConfiguredPool } from '../manifests/copying.ts';
import { objectivesOf } from '../manifests/objectives.ts';
import { daemonSetOf, settingsOf } from '../manifests/recorder.ts';
import { daemonSetNameOf, usesClaims } from '../manifests/storage.ts';
import { hasStarted, isReady, nodeOf, unplacedBecause, waitsFor, type Caches } from '../observe/caches.ts';
import { isSelected } from '../observe/leaving.ts';
import { untolerated } from '../observe/tolerated.ts';
import { bundleOf } from '../../base/authorities.ts';
import { planRollout, type RolloutNode, type RolloutPlan, type RolloutPod } from '../plan/rollout.ts';
import type { Plan, PlannedCondition, PlannedNode } from '../plan/snapshot.ts';
import { opensAfterMs } from '../plan/windows.ts';
import { addressesOf, podsByNode } from './addresses.ts';
import type { CameraLogins } from './camera-logins.ts';
import type { Certificates } from './certificates.ts';
import type { Guarding, Guards } from './guards.ts';
import { keepLeases } from './node-leases.ts';
import { PoolObjects } from './pool-objects.ts';
import { ALL_APPLIED, type Rollout } from './pool-status.ts';
import { PodsPlaced, type DaemonSetStatus } from './pods-placed.ts';
import { refusalOf } from './refusals.ts';

interface RecordersOptions {
  readonly api: KubeApi;
  readonly caches: Caches;
  readonly events: Pick<EventRecorder, 'record'>;
  /** The image for pools that name none. */
  readonly image: string;
  readonly priorityClass: string;
  readonly logins: CameraLogins;
  /** Networks in which no camera can be. */
  readonly clusterNetworks: () => Promise<readonly string[]>;
  /** Undefined: no NetworkPolicies are made. */
  readonly egress: EgressPorts | undefined;
  readonly certificates: Certificates;
  readonly guards: Guards;
  readonly clock: Clock;
}

/** The leader's last plan of a pool, with the nodes that it was made for, by name. */
interface PlanOfPool {
  readonly plan: Plan;
  readonly nodes: ReadonlyMap<string, PlannedNode>;
}

/** Annotation of a RecorderNode: since when the node is being updated. Stored there for the next leader. */
const UPDATING_SINCE = 'kube-nvr.dev/updating-since';
/** Annotation of a RecorderNode: `spec.drain` was set for the update. A drain that a person set stays. */
const DRAINED_FOR_UPDATE = 'kube-nvr.dev/drained-for-update';
/** Annotation of the pod template: the digest of the pool's settings. */
const SETTINGS = 'kube-nvr.dev/settings';

interface RecorderDaemonSet {
  readonly spec?: {
    readonly template?: { readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> } };
  };
  readonly status?: DaemonSetStatus;
}

/** What `kubectl rollout restart` wrote into the DaemonSet: pods that are older are replaced, one by one like others. */
const restartedAt = (daemonSet: RecorderDaemonSet | undefined): string | undefined =>
  daemonSet?.spec?.template?.metadata?.annotations?.['kubectl.kubernetes.io/restartedAt'];

/** How long to wait until the cache shows a write. */
const EXPECT_MS = 10_000;

export class Recorders {
  readonly #options: RecordersOptions;
  readonly #objects: PoolObjects;
  readonly #placed: PodsPlaced;
  /**
   * The last update that was begun or ended, by pool, until the cache shows it. Until then the next step would be planned on
   * outdated data.
   */
  readonly #expected = new Map<
    string,
    { readonly node: string; readonly isUpdating: boolean; readonly sinceMs: number }
  >();

  /** Since when no step of a pool's update has been possible. */
  readonly #stalledSinceMs = new Map<string, number>();

  constructor(options: RecordersOptions) {
    this.#options = options;
    this.#objects = new PoolObjects(options);
    this.#placed = new PodsPlaced(options.clock);
  }

  /** Another leader may have written meanwhile: forget what was applied, so that everything is applied again. */
  forget(key?: string): void {
    if (key === undefined) this.#options.certificates.forget();
    this.#options.logins.forget(key);
    this.#objects.forget(key);
    this.#placed.forget(key);
    if (key !== undefined) this.#options.guards.forget(key);
    for (const kept of [this.#expected, this.#stalledSinceMs]) {
      if (key === undefined) kept.clear();
      else kept.delete(key);
    }
  }

  /** See `PoolObjects`. */
  sawOwned(key: string, resource: Resource, change: Change<KubeObject>): boolean {
    return this.#objects.saw(key, resource, change);
  }

  /**
   * Makes the pool's objects match its spec, and takes the next step of its update. `lastPlan` may return another plan
   * after each write.
   */
  async reconcile(
    key: string,
    own: RecorderPool,
    lastPlan: () => PlanOfPool | undefined,
    guarding: Guarding,
  ): Promise<Rollout & { readonly recheckMs: number | undefined }> {
    const pool = this.#configured(own);
    const daemonSet = await this.#daemonSet(pool, recorderName(pool.metadata.name));
    const digest = digestOf(pool, this.#options, restartedAt(daemonSet));
    const taken = this.#takenNodes(pool);
    const selected = this.#selectedNodes(pool);
    const named = this.#keptNodes(pool, lastPlan());
    const { certificates, caches, clock } = this.#options;
    const authorities = await certificates.authoritiesOf(pool);
    const bundle = 'status' in authorities ? undefined : bundleOf(authorities, clock.wallMs());
    const problem =
      notUnderstood(pool) ??
      this.#targetsUnknown(pool) ??
      (await this.#objects.apply(key, pool, {
        digest,
        taken: [...taken.keys()],
        nodes: [...new Set([...selected.filter((name) => !taken.has(name)), ...named])].sort(),
        named,
        bundle,
        guards: guarding.budget,
      }));
    const guardsProblem = await refusalOf(() => this.#options.guards.keep(pool, guarding), 'the guard of a node');
    const pods = this.#podsOf(pool, digest);
    const placement = await this.#placed.look({
      pool,
      pods: caches.podsOf(pool),
      nodes: selected.filter((name) => !taken.has(name) && this.#allowsPods(name, pool)),
      daemonSetOf: async (node) => {
        const own = usesClaims(pool.spec) ? await this.#daemonSet(pool, daemonSetNameOf(pool, node)) : daemonSet;
        return own?.status;
      },
    });
    const nodesProblem = await refusalOf(
      () => this.#keepNodes(pool, new Set([...pods.map(({ node }) => node), ...placement.podless]), lastPlan),
      'the RecorderNode or Lease of a node',
    );
    const issued = 'status' in authorities ? authorities : await certificates.sign(pool, authorities);
    const planned = lastPlan();
    const rollout = this.#rollout(key, pool, pods, planned);
    // A DaemonSet that was not applied would make the same pods again.
    const isHeld = problem?.isApplied === false && rollout.step.kind !== 'end';
    // Without a plan nothing is known about the nodes.
    if (planned && !isHeld && this.#isUpToDate(key)) await this.#step(key, pool, rollout.step);
    return {
      nodesUpdated: rollout.updated,
      conditions: [
        problem?.condition ?? nodesProblem ?? guardsProblem ?? ALL_APPLIED,
        issued,
        selectedCondition(pool, selected.length > 0 || !caches.nodes.isSynced),
        takenCondition(taken),
        ...copiesCondition(pool),
        placement.condition,
        rollout.condition,
      ],
      recheckMs: rollout.recheckMs,
    };
  }

  /** What its cameras say about copies, and its objectives, are part of the settings of its recorders. */
  #configured(pool: RecorderPool): ConfiguredPool {
    const { caches } = this.#options;
    const { namespace } = pool.metadata;
    const cameras = caches.camerasOf(pool);
    const { settings: objectives } = objectivesOf(pool, cameras, caches.objectivesIn(namespace));
    if (!namesTargets(pool, cameras)) return { ...pool, objectives };
    return { ...pool, objectives, copying: copyingOf(pool, cameras, caches.targetsIn(namespace)) };
  }

  /** Pods must not be replaced by some that copy nothing because it is not known yet where to. */
  #targetsUnknown({ copying }: ConfiguredPool): NotApplied | undefined {
    if (!copying || this.#options.caches.targets.isSynced) return undefined;
    return notApplied('TargetsUnknown', 'ArchiveTargets cannot be listed yet');
  }

  /** The state of the pool's update, and its next step. */
  #rollout(key: string, pool: RecorderPool, pods: readonly RolloutPod[], planned: PlanOfPool | undefined): RolloutPlan {
    const nowMs = this.#options.clock.monotonicMs();
    const { type, drain, maxUnavailable, progressDeadlineSeconds, windows = [] } = pool.spec.update;
    const wallMs = this.#options.clock.wallMs();
    const opensMs = wallMs + (opensAfterMs(windows, wallMs) ?? Infinity);
    const rollout = planRollout({
      type,
      drain,
      maxUnavailable,
      progressDeadlineMs: progressDeadlineSeconds * 1000,
      closedUntilMs: opensMs > wallMs ? opensMs : undefined,
      stalledForMs: nowMs - (this.#stalledSinceMs.get(key) ?? nowMs),
      leader: planned?.plan.leader,
      pods,
      nodes: this.#options.caches.nodesOf(pool).map((node) => this.#rolloutNode(node, planned)),
    });
    if (!rollout.isStalled) this.#stalledSinceMs.delete(key);
    else if (!this.#stalledSinceMs.has(key)) this.#stalledSinceMs.set(key, nowMs);
    return rollout;
  }

  /** Nodes that this pool selects but that record for another pool of the namespace, with that pool's name. */
  #takenNodes({ metadata, spec }: RecorderPool): ReadonlyMap<string, string> {
    const { recorderNodes, nodes } = this.#options.caches;
    const others = recorderNodes.list().filter((node) => {
      const isOther = node.metadata.namespace === metadata.namespace && node.spec.poolRef.name !== metadata.name;
      return isOther && isSelected(nodes.get(node.spec.nodeName), spec);
    });
    const taken = others.map((node) => [node.spec.nodeName, node.spec.poolRef.name] as const);
    return new Map(taken.sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** Names of the Kubernetes nodes on which pods of the pool may run. */
  #selectedNodes({ spec }: RecorderPool): readonly string[] {
    const nodes = this.#options.caches.nodes.list().filter((node) => isSelected(node, spec));
    return nodes.map(({ metadata }) => metadata.name).sort();
  }

  /**
   * Nodes of the pool whose pods stay: those that it selects, so that no change of a label ends a pod before its cameras have moved,
   * and those that it selects no more, until then.
   */
  #keptNodes(pool: RecorderPool, planned: PlanOfPool | undefined): readonly string[] {
    const { caches } = this.#options;
    const kept = caches.nodesOf(pool).filter(({ metadata, spec }) => {
      const node = caches.nodes.get(spec.nodeName);
      const { assigned, leaving } = planned?.plan.loads.get(metadata.name) ?? { assigned: 0, leaving: 0 };
      return node && (!planned || isSelected(node, pool.spec) || assigned + leaving > 0);
    });
    return kept.map(({ spec }) => spec.nodeName).sort();
  }

  /** Undefined: there is none (yet). */
  async #daemonSet({ metadata: { namespace } }: RecorderPool, name: string): Promise<RecorderDaemonSet | undefined> {
    try {
      return (await this.#options.api.get(DAEMON_SET, { namespace, name })) as RecorderDaemonSet;
    } catch (err) {
      if (isNotFound(err)) return undefined;
      throw err;
    }
  }

  #allowsPods(node: string, { spec }: RecorderPool): boolean {
    return untolerated(this.#options.caches.nodes.get(node)?.spec?.taints, spec.tolerations).length === 0;
  }

  #podsOf(pool: RecorderPool, digest: string): readonly RolloutPod[] {
    const nowMs = this.#options.clock.wallMs();
    return this.#options.caches.podsOf(pool).flatMap((pod): RolloutPod[] => {
      const { name, annotations, deletionTimestamp, creationTimestamp } = pod.metadata;
      const node = nodeOf(pod);
      if (node === undefined) return [];
      const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready');
      const since = ready?.lastTransitionTime ?? creationTimestamp ?? '';
      return [
        {
          name,
          node,
          isCurrent: annotations?.[SETTINGS] === digest,
          isReady: isReady(pod.status),
          hasStarted: hasStarted(pod),
          problem: waitsFor(pod),
          unscheduled: unplacedBecause(pod),
          isTerminating: deletionTimestamp !== undefined,
          notReadyForMs: isReady(pod.status) ? 0 : Math.max(0, nowMs - Date.parse(since)),
        },
      ];
    });
  }

  #rolloutNode({ metadata, spec, status }: RecorderNode, planned: PlanOfPool | undefined): RolloutNode {
    const { name, annotations } = metadata;
    const since = annotations?.[UPDATING_SINCE];
    const load = planned?.plan.loads.get(name);
    const liveness = planned?.nodes.get(name)?.liveness;
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    const online = status?.conditions?.find(({ type }) => type === 'Online');
    const nowMs = this.#options.clock.wallMs();
    // From the status, which the next leader sees, too.
    const lostForMs = online?.status === 'False' ? Math.max(0, nowMs - Date.parse(online.lastTransitionTime)) : 0;
    return {
      name,
      isOnline: liveness?.heard ?? false,
      lostForMs: liveness?.state === 'Unavailable' ? lostForMs : undefined,
      fault: ready?.status === 'False' ? `${ready.reason}: ${ready.message}` : undefined,
      isReachable: isReady(this.#options.caches.nodes.get(spec.nodeName)?.status),
      isVoter: spec.role === 'Voter',
      updatingForMs: since === undefined ? undefined : Math.max(0, nowMs - Date.parse(since)),
      isDrained: spec.drain,
      cameras: load ? load.assigned + load.leaving : 0,
    };
  }

  /** Whether the cache shows the last update that was begun or ended. */
  #isUpToDate(key: string): boolean {
    const expected = this.#expected.get(key);
    if (!expected) return true;
    const { namespace = '' } = nameOfKey(key);
    const { annotations } = this.#options.caches.recorderNodes.get(`${namespace}/${expected.node}`)?.metadata ?? {};
    const isShown = (annotations?.[UPDATING_SINCE] !== undefined) === expected.isUpdating;
    if (!isShown && this.#options.clock.monotonicMs() - expected.sinceMs < EXPECT_MS) return false;
    this.#expected.delete(key);
    return true;
  }

  async #step(key: string, pool: RecorderPool, step: RolloutPlan['step']): Promise<void> {
    const { api, clock, events, caches } = this.#options;
    if (step.kind === 'none') return;
    const { namespace } = pool.metadata;
    const say = (reason: string, note: string): void =>
      events.record(pool, { type: 'Normal', reason, action: 'Update', note });
    if (step.kind === 'delete') {
      say('ReplacingPod', `pod ${step.pod} on ${step.node} is replaced`);
      await ignoreMissing(api.delete(POD, { namespace, name: step.pod }));
      return;
    }
    const isUpdating = step.kind === 'begin';
    const { metadata, spec } = caches.recorderNodes.get(`${namespace}/${step.node}`) ?? {};
    const drains = isUpdating && step.drain && spec?.drain === false;
    const returns = !isUpdating && metadata?.annotations?.[DRAINED_FOR_UPDATE] !== undefined;
    const annotations = {
      [UPDATING_SINCE]: isUpdating ? new Date(clock.wallMs()).toISOString() : null,
      [DRAINED_FOR_UPDATE]: drains ? 'true' : null,
    };
    await api.mergePatch(
      RECORDER_NODE,
      { namespace, name: step.node },
      { metadata: { annotations }, ...((drains || returns) && { spec: { drain: drains } }) },
    );
    this.#expected.set(key, { node: step.node, isUpdating, sinceMs: clock.monotonicMs() });
    if (drains) say('DrainingNode', `${step.node} is drained for an update`);
    if (!isUpdating) say('NodeUpdated', `${step.node} is updated`);
  }

  /** Creates a RecorderNode for each node that has a pod or should have one, updates its addresses, and deletes those of nodes that are gone. */
  async #keepNodes(
    pool: RecorderPool,
    nodesOfPods: ReadonlySet<string>,
    lastPlan: () => PlanOfPool | undefined,
  ): Promise<void> {
    const { api, caches, events } = this.#options;
    const { namespace, name, uid = '' } = pool.metadata;
    const known = new Map(caches.nodesOf(pool).map((node) => [node.metadata.name, node]));
    const pods = podsByNode(caches.podsOf(pool));
    for (const node of nodesOfPods) {
      const pod = pods.get(node);
      const addresses = pod && addressesOf(pool, pod);
      const { spec } = known.get(node) ?? {};
      if (spec) {
        const { address, playbackAddress } = addresses ?? spec;
        if (address === spec.address && playbackAddress === spec.playbackAddress) continue;
        await ignoreMissing(api.mergePatch(RECORDER_NODE, { namespace, name: node }, { spec: addresses }));
        continue;
      }
      const other = caches.recorderNodes.get(`${namespace}/${node}`);
      if (other) {
        const note = `${node} records for the pool ${other.spec.poolRef.name} already`;
        events.record(pool, { type: 'Warning', reason: 'NodeTaken', action: 'AddNode', note });
        continue;
      }
      await api
        .create(RECORDER_NODE, {
          apiVersion: API_VERSION,
          kind: 'RecorderNode',
          metadata: {
            name: node,
            namespace,
            labels: poolLabels(name),
            ownerReferences: [{ apiVersion: API_VERSION, kind: 'RecorderPool', name, uid, controller: true }],
          },
          spec: { nodeName: node, poolRef: { name }, ...addresses },
        })
        .catch((err: unknown) => {
          // The cache is outdated: the object exists.
          if (!isConflict(err)) throw err;
        });
    }
    await keepLeases(pool, { api, caches });
    const { nodes } = lastPlan() ?? {};
    if (!caches.nodes.isSynced || !nodes) return;
    for (const node of known.keys()) {
      const isWanted = isSelected(caches.nodes.get(node), pool.spec);
      const isLive = nodes.get(node)?.liveness.state === 'Live';
      if (isWanted || isLive || nodesOfPods.has(node)) continue;
      await ignoreMissing(api.delete(RECORDER_NODE, { namespace, name: node }, { uid: known.get(node)?.metadata.uid }));
    }
  }
}

/** A message names this many nodes and counts the others. */
const MAX_NAMED = 5;

/** What another version means by a field is not guessed: the objects of the pool stay as they are. */
function notUnderstood({ unread }: RecorderPool): NotApplied | undefined {
  if (!unread) return undefined;
  return notApplied('NotUnderstood', `this version does not understand ${someOf(unread, MAX_NAMED)}`);
}

interface NotApplied {
  readonly condition: PlannedCondition;
  readonly isApplied: false;
}

function notApplied(reason: string, why: string): NotApplied {
  const message = `${why}; pods and other objects of the pool stay as they are`;
  return { condition: { type: 'ResourcesApplied', status: 'False', reason, message }, isApplied: false };
}

/** Absent in a pool that copies nothing. */
function copiesCondition({ copying }: ConfiguredPool): readonly PlannedCondition[] {
  if (!copying) return [];
  const type = 'CopiesConfigured';
  if (copying.refused.length === 0) return [{ type, status: 'True', reason: 'Configured', message: '' }];
  return [{ type, status: 'False', reason: 'NotCopied', message: someOf(copying.refused, MAX_NAMED) }];
}

function selectedCondition({ spec }: RecorderPool, hasNodes: boolean): PlannedCondition {
  if (hasNodes) return { type: 'NodesSelected', status: 'True', reason: 'Selected', message: '' };
  const labels = Object.entries(spec.nodeSelector ?? {}).map(([key, value]) => `${key}=${value}`);
  const affinity = spec.podTemplate?.spec?.affinity ? ' and fits the affinity of spec.podTemplate' : '';
  const message =
    labels.length === 0
      ? 'no node fits the affinity of spec.podTemplate'
      : `no node has the labels of spec.nodeSelector${affinity}; label the nodes that should record: kubectl label node NODE ${labels.join(' ')}`;
  return { type: 'NodesSelected', status: 'False', reason: 'NoNodes', message };
}

function takenCondition(taken: ReadonlyMap<string, string>): PlannedCondition {
  if (taken.size === 0) return { type: 'NodesTaken', status: 'False', reason: 'NoneTaken', message: '' };
  const nodes = Array.from(taken, ([node, pool]) => `${node} (pool ${pool})`);
  const message = `nodes of the selector record for another pool, and not for this one: ${someOf(nodes, MAX_NAMED)}`;
  return { type: 'NodesTaken', status: 'True', reason: 'NodeTaken', message };
}

/** Digest of the settings; when it changes, every pod is outdated. */
function digestOf(
  pool: ConfiguredPool,
  { image, priorityClass }: RecordersOptions,
  restartedAt: string | undefined,
): string {
  // Which nodes have pods is no setting of a pod: the pods of other nodes stay as they are.
  const unplaced = { ...pool, spec: { ...pool.spec, nodeSelector: undefined } };
  const { spec } = daemonSetOf(unplaced, image, '', priorityClass) as unknown as { spec: { template: unknown } };
  return createHash('sha256')
    .update(JSON.stringify([spec.template, settingsOf(pool), ...(restartedAt === undefined ? [] : [restartedAt])]))
    .digest('hex')
    .slice(0, 16);
}

async function ignoreMissing(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (err) {
    if (!isNotFound(err)) throw err;
  }
}
