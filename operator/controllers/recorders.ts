// Reconciles the recorders of a pool: the objects that run them, a RecorderNode for each node that has one, and rolling updates
// of one node at a time.

import { createHash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { API_VERSION, metricsTokenName, nodeLeaseName, poolLabels, recorderName } from '../../crds/names.ts';
import type { RecorderNode } from '../../crds/recorder-node.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import { ApiError, isConflict, isNotFound, nameOfKey, type KubeApi, type KubeObject } from '../kube/api.ts';
import type { EventRecorder } from '../kube/events.ts';
import { applyOwned, deleteOwned, ForeignObjectError, type Owner } from '../kube/owned.ts';
import {
  CONFIG_MAP,
  DAEMON_SET,
  LEASE,
  NETWORK_POLICY,
  POD,
  POD_DISRUPTION_BUDGET,
  RECORDER_NODE,
  ROLE,
  ROLE_BINDING,
  SERVICE,
  SERVICE_ACCOUNT,
} from '../kube/resources.ts';
import type { Resource } from '../kube/api.ts';
import { networkPolicyOf, type EgressPorts } from '../manifests/network-policy.ts';
import { configMapOf, daemonSetOf, disruptionBudgetOf, servicesOf, settingsOf } from '../manifests/recorder.ts';
import { roleBindingOf, roleOf, serviceAccountOf } from '../manifests/recorder-access.ts';
import { hasStarted, isReady, waitsFor, type Caches } from '../observe/caches.ts';
import { bundleOf } from '../plan/authorities.ts';
import { addressesOf, podOfNode } from './addresses.ts';
import { trustOf, type Certificates } from './certificates.ts';
import { metricsTokenOf } from './metrics-token.ts';
import { planRollout, type RolloutNode, type RolloutPod } from '../plan/rollout.ts';
import type { Plan, PlannedCondition, PlannedNode } from '../plan/snapshot.ts';
import type { CameraLogins } from './camera-logins.ts';
import type { Rollout } from './pool-status.ts';

interface RecordersOptions {
  readonly api: KubeApi;
  readonly caches: Caches;
  readonly events: EventRecorder;
  /** The image for pools that name none. */
  readonly image: string;
  readonly priorityClass: string;
  readonly logins: CameraLogins;
  /** Networks in which no camera can be. */
  readonly clusterNetworks: () => Promise<readonly string[]>;
  /** Undefined: no NetworkPolicies are made. */
  readonly egress: EgressPorts | undefined;
  readonly certificates: Certificates;
  readonly clock: Clock;
}

/** The leader's last plan of a pool, with the nodes that it was made for, by name. */
interface Planned {
  readonly plan: Plan;
  readonly nodes: ReadonlyMap<string, PlannedNode>;
}

/** Annotation of a RecorderNode: since when the node is being updated. Stored there for the next leader. */
const UPDATING_SINCE = 'kube-nvr.dev/updating-since';
/** Annotation of a RecorderNode: `spec.drain` was set for the update. A drain that somebody else set stays. */
const DRAINED_FOR_UPDATE = 'kube-nvr.dev/drained-for-update';
/** Annotation of the pod template: the digest of the pool's settings. */
const SETTINGS = 'kube-nvr.dev/settings';

/** Objects are applied again after this time, which repairs what others have changed or deleted. */
const APPLY_ANEW_MS = 300_000;

/** In place of a digest: the object does not exist. */
const NONE = 'none';

/** How long to wait until the cache shows a write. */
const EXPECT_MS = 10_000;

/** What was last applied, so that an unchanged pool costs no requests. */
interface Applied {
  readonly uid: string | undefined;
  readonly digests: Map<string, string>;
  /** Digest of the token for metrics. */
  metricsSha256?: string;
  readonly sinceMs: number;
}

export class Recorders {
  readonly #o: RecordersOptions;
  readonly #applied = new Map<string, Applied>();
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
    this.#o = options;
  }

  /** Another leader may have written meanwhile: forget what was applied, so that everything is applied again. */
  forget(key?: string): void {
    if (key === undefined) this.#o.certificates.forget();
    this.#o.logins.forget(key);
    for (const kept of [this.#applied, this.#expected, this.#stalledSinceMs]) {
      if (key === undefined) kept.clear();
      else kept.delete(key);
    }
  }

  /**
   * Makes the pool's objects what it says, and takes the next step of its update. `lastPlan` may return another plan after
   * each write.
   */
  async reconcile(
    key: string,
    pool: RecorderPool,
    lastPlan: () => Planned | undefined,
  ): Promise<Rollout & { readonly recheckMs: number | undefined }> {
    const digest = digestOf(pool, this.#o);
    const taken = this.#takenNodes(pool);
    const { certificates, clock } = this.#o;
    const authorities = await certificates.authoritiesOf(pool);
    const bundle = 'status' in authorities ? undefined : bundleOf(authorities, clock.wallMs());
    const foreign = await this.#apply(key, pool, digest, { taken: [...taken.keys()], bundle });
    const pods = this.#podsOf(pool, digest);
    await this.#keepNodes(pool, pods, lastPlan);
    const issued = 'status' in authorities ? authorities : await certificates.sign(pool, authorities);
    const planned = lastPlan();
    const rollout = planRollout({
      type: pool.spec.update.type,
      drain: pool.spec.update.drain,
      maxUnavailable: pool.spec.update.maxUnavailable,
      progressDeadlineMs: pool.spec.update.progressDeadlineSeconds * 1000,
      stalledForMs: clock.monotonicMs() - (this.#stalledSinceMs.get(key) ?? clock.monotonicMs()),
      leader: planned?.plan.leader,
      pods,
      nodes: this.#o.caches.nodesOf(pool).map((node) => this.#rolloutNode(node, planned)),
    });
    if (!rollout.isStalled) this.#stalledSinceMs.delete(key);
    else if (!this.#stalledSinceMs.has(key)) this.#stalledSinceMs.set(key, clock.monotonicMs());
    // Without a plan nothing is known about the nodes.
    if (planned && this.#isUpToDate(key)) await this.#step(key, pool, rollout.step);
    return {
      nodesUpdated: rollout.updated,
      conditions: [foreign ?? NOTHING_FOREIGN, issued, takenCondition(taken), rollout.condition],
      recheckMs: rollout.recheckMs,
    };
  }

  async #apply(
    key: string,
    pool: RecorderPool,
    digest: string,
    { taken, bundle }: { readonly taken: readonly string[]; readonly bundle: string | undefined },
  ): Promise<PlannedCondition | undefined> {
    const { api, caches, image, priorityClass, logins, egress } = this.#o;
    const { uid, name } = pool.metadata;
    let applied = this.#applied.get(key);
    const nowMs = this.#o.clock.monotonicMs();
    if (applied?.uid !== uid || nowMs - (applied?.sinceMs ?? 0) > APPLY_ANEW_MS) {
      this.#applied.set(key, (applied = { uid, digests: new Map(), sinceMs: nowMs }));
    }
    const { digests } = applied as Applied;
    let problem: PlannedCondition | undefined;
    const owner: Owner = { apiVersion: API_VERSION, kind: 'RecorderPool', name, uid: uid ?? '' };
    const secrets = await logins.granted(key, pool, caches.camerasOf(pool));
    const { namespace } = pool.metadata;
    if (pool.spec.metrics.mode === 'Token' && applied?.metricsSha256 === undefined) {
      const made = await this.#metricsToken(pool, owner);
      if (typeof made === 'string') (applied as Applied).metricsSha256 = made;
      else problem = made;
    }
    const networks = await this.#o.clusterNetworks();
    const policy = egress && networkPolicyOf(pool, egress, networks);
    const objects: readonly (readonly [Resource, KubeObject])[] = [
      [SERVICE_ACCOUNT, serviceAccountOf({ namespace, name })],
      [ROLE, roleOf({ namespace, name }, secrets, this.#nodeNames(pool))],
      [ROLE_BINDING, roleBindingOf({ namespace, name })],
      [CONFIG_MAP, configMapOf(pool, networks, applied?.metricsSha256)],
      ...(bundle === undefined ? [] : [[CONFIG_MAP, trustOf(pool, bundle)] as const]),
      ...servicesOf(pool).map((service) => [SERVICE, service] as const),
      [POD_DISRUPTION_BUDGET, disruptionBudgetOf(pool)],
      ...(policy ? [[NETWORK_POLICY, policy] as const] : []),
      [DAEMON_SET, daemonSetOf(pool, image, digest, priorityClass, taken)],
    ];
    // A policy that an earlier spec required.
    const policyID = `${NETWORK_POLICY.kind}/${recorderName(name)}`;
    if (!policy && egress && digests.get(policyID) !== NONE) {
      await deleteOwned(api, NETWORK_POLICY, { namespace, name: recorderName(name) }, owner);
      digests.set(policyID, NONE);
    }
    for (const [resource, object] of objects) {
      const id = `${resource.kind}/${object.metadata.name}`;
      const wanted = JSON.stringify(object);
      if (digests.get(id) === wanted) continue;
      try {
        await applyOwned(api, resource, object, owner);
      } catch (err) {
        if (!(err instanceof ForeignObjectError)) throw err;
        return { type: 'ResourcesApplied', status: 'False', reason: 'ForeignObject', message: err.message };
      }
      digests.set(id, wanted);
    }
    return problem;
  }

  /**
   * The digest of the token for metrics, or the condition that says why there is none. Recorders work without it, but then
   * metrics need a token for all cameras.
   */
  async #metricsToken(pool: RecorderPool, owner: Owner): Promise<string | PlannedCondition> {
    const secret = `the Secret ${metricsTokenName(pool.metadata.name)}`;
    let why = `${secret} has no token: delete it, and a new one is created`;
    try {
      const made = await metricsTokenOf(this.#o.api, pool, owner);
      if (made !== undefined) return made;
    } catch (err) {
      if (!(err instanceof ApiError) || err.status !== 403) throw err;
      why = `${secret} with the token for metrics may not be read or made: ${err.message}`;
    }
    return { type: 'ResourcesApplied', status: 'False', reason: 'NoMetricsToken', message: why };
  }

  /** Includes nodes whose pod has just started: their recorders are about to write. */
  #nodeNames(pool: RecorderPool): readonly string[] {
    const { caches } = this.#o;
    const nodes = caches.nodesOf(pool).map(({ metadata }) => metadata.name);
    const taken = new Set(nodes);
    const coming = caches.podsOf(pool).flatMap(({ spec }) => spec?.nodeName ?? []);
    const { namespace } = pool.metadata;
    return [
      ...nodes,
      ...coming.filter((node) => !taken.has(node) && !caches.recorderNodes.get(`${namespace}/${node}`)),
    ];
  }

  /** Nodes that this pool selects but that record for another pool of the namespace, with that pool's name. */
  #takenNodes({ metadata, spec }: RecorderPool): ReadonlyMap<string, string> {
    const { recorderNodes, nodes } = this.#o.caches;
    const others = recorderNodes.list().filter((node) => {
      const isOther = node.metadata.namespace === metadata.namespace && node.spec.poolRef.name !== metadata.name;
      return isOther && isSelected(nodes.get(node.spec.nodeName)?.metadata.labels, spec.nodeSelector);
    });
    const taken = others.map((node) => [node.spec.nodeName, node.spec.poolRef.name] as const);
    return new Map(taken.sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #podsOf(pool: RecorderPool, digest: string): readonly RolloutPod[] {
    const nowMs = this.#o.clock.wallMs();
    return this.#o.caches.podsOf(pool).flatMap((pod): RolloutPod[] => {
      const { name, annotations, deletionTimestamp, creationTimestamp } = pod.metadata;
      const node = pod.spec?.nodeName;
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
          isTerminating: deletionTimestamp !== undefined,
          notReadyForMs: isReady(pod.status) ? 0 : Math.max(0, nowMs - Date.parse(since)),
        },
      ];
    });
  }

  #rolloutNode({ metadata, spec, status }: RecorderNode, planned: Planned | undefined): RolloutNode {
    const { name, annotations } = metadata;
    const since = annotations?.[UPDATING_SINCE];
    const load = planned?.plan.loads.get(name);
    const liveness = planned?.nodes.get(name)?.liveness;
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    return {
      name,
      isOnline: liveness?.heard ?? false,
      isLost: liveness?.state === 'Unavailable',
      fault: ready?.status === 'False' ? `${ready.reason}: ${ready.message}` : undefined,
      isReachable: isReady(this.#o.caches.nodes.get(spec.nodeName)?.status),
      isVoter: spec.role === 'Voter',
      updatingForMs: since === undefined ? undefined : Math.max(0, this.#o.clock.wallMs() - Date.parse(since)),
      isDrained: spec.drain,
      cameras: load ? load.assigned + load.leaving : 0,
    };
  }

  /** Whether the cache shows the last update that was begun or ended. */
  #isUpToDate(key: string): boolean {
    const expected = this.#expected.get(key);
    if (!expected) return true;
    const { namespace = '' } = nameOfKey(key);
    const { annotations } = this.#o.caches.recorderNodes.get(`${namespace}/${expected.node}`)?.metadata ?? {};
    const isShown = (annotations?.[UPDATING_SINCE] !== undefined) === expected.isUpdating;
    if (!isShown && this.#o.clock.monotonicMs() - expected.sinceMs < EXPECT_MS) return false;
    this.#expected.delete(key);
    return true;
  }

  async #step(key: string, pool: RecorderPool, step: ReturnType<typeof planRollout>['step']): Promise<void> {
    const { api, clock, events, caches } = this.#o;
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

  /** Creates a RecorderNode for each node that has a pod, updates its addresses, and deletes those of nodes that are gone. */
  async #keepNodes(
    pool: RecorderPool,
    pods: readonly RolloutPod[],
    lastPlan: () => Planned | undefined,
  ): Promise<void> {
    const { api, caches, events } = this.#o;
    const { namespace, name, uid = '' } = pool.metadata;
    const known = new Map(caches.nodesOf(pool).map((node) => [node.metadata.name, node]));
    for (const node of new Set(pods.map(({ node }) => node))) {
      const pod = podOfNode(caches.podsOf(pool), node);
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
    for (const [node, { metadata }] of known) await this.#keepLease(pool, node, metadata.uid ?? '');
    const { nodes } = lastPlan() ?? {};
    if (!caches.nodes.isSynced || !nodes) return;
    const withPod = new Set(pods.map(({ node }) => node));
    for (const node of known.keys()) {
      const isWanted = isSelected(caches.nodes.get(node)?.metadata.labels, pool.spec.nodeSelector);
      const isLive = nodes.get(node)?.liveness.state === 'Live';
      if (isWanted || isLive || withPod.has(node)) continue;
      await ignoreMissing(api.delete(RECORDER_NODE, { namespace, name: node }, { uid: known.get(node)?.metadata.uid }));
    }
  }

  /** Creates the empty Lease that the node's recorder renews. It is deleted with the RecorderNode. */
  async #keepLease({ metadata }: RecorderPool, node: string, uid: string): Promise<void> {
    const { api, caches } = this.#o;
    const { namespace, name: pool } = metadata;
    const name = nodeLeaseName(node);
    if (caches.leases.get(`${namespace}/${name}`)) return;
    const ownerReferences = [{ apiVersion: API_VERSION, kind: 'RecorderNode', name: node, uid }];
    await api
      .create(LEASE, {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name, namespace, labels: poolLabels(pool), ownerReferences },
      })
      .catch((err: unknown) => {
        if (!isConflict(err)) throw err;
      });
  }
}

const NOTHING_FOREIGN: PlannedCondition = {
  type: 'ResourcesApplied',
  status: 'True',
  reason: 'Applied',
  message: '',
};

/** A message names this many nodes and counts the others. */
const MAX_NAMED = 5;

function takenCondition(taken: ReadonlyMap<string, string>): PlannedCondition {
  if (taken.size === 0) return { type: 'NodesTaken', status: 'False', reason: 'NoneTaken', message: '' };
  const named = [...taken].slice(0, MAX_NAMED).map(([node, pool]) => `${node} (pool ${pool})`);
  const more = taken.size > MAX_NAMED ? ` and ${taken.size - MAX_NAMED} more` : '';
  const message = `nodes of the selector record for another pool, and not for this one: ${named.join(', ')}${more}`;
  return { type: 'NodesTaken', status: 'True', reason: 'NodeTaken', message };
}

/** `labels` undefined: the node does not exist. */
function isSelected(
  labels: Readonly<Record<string, string>> | undefined,
  selector: Readonly<Record<string, string>> | undefined = {},
): boolean {
  return labels !== undefined && Object.entries(selector).every(([key, value]) => labels[key] === value);
}

/** Digest of the settings; when it changes, every pod is outdated. */
function digestOf(pool: RecorderPool, { image, priorityClass }: RecordersOptions): string {
  const { spec } = daemonSetOf(pool, image, '', priorityClass) as unknown as { spec: { template: unknown } };
  return createHash('sha256')
    .update(JSON.stringify([spec.template, settingsOf(pool)]))
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
