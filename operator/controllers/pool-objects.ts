// Applies the objects that run the recorders of a pool: account and rights, settings, Services, DaemonSet. One that the API server
// refuses does not hold up the others.

import type { Clock } from '../../base/clock.ts';
import {
  API_VERSION,
  metricsTokenName,
  OPERATOR_MANAGER,
  recorderName,
  sessionKeyName,
  tokensName,
} from '../../crds/names.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import { isNewer } from '../../base/kubernetes/resource-version.ts';
import type { KubeApi, KubeObject, Resource } from '../kube/api.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { Change } from '../kube/informer.ts';
import { applyOwned, deleteOwned, type Owner } from '../kube/owned.ts';
import {
  CONFIG_MAP,
  DAEMON_SET,
  NETWORK_POLICY,
  PERSISTENT_VOLUME_CLAIM,
  POD_DISRUPTION_BUDGET,
  ROLE,
  ROLE_BINDING,
  SERVICE,
  SERVICE_ACCOUNT,
} from '../kube/resources.ts';
import { disruptionBudgetOf } from '../manifests/guard.ts';
import { networkPolicyOf, type EgressPorts } from '../manifests/network-policy.ts';
import type { ConfiguredPool } from '../manifests/copying.ts';
import { configMapOf, daemonSetOf, servicesOf } from '../manifests/recorder.ts';
import { claimsOf, nodeRecorderName, usesClaims } from '../manifests/storage.ts';
import { roleBindingOf, roleOf, serviceAccountOf } from '../manifests/recorder-access.ts';
import type { Caches } from '../observe/caches.ts';
import type { PlannedCondition } from '../plan/snapshot.ts';
import { makeTokens } from './admin-token.ts';
import type { CameraLogins } from './camera-logins.ts';
import { trustOf } from './certificates.ts';
import { metricsTokenOf } from './metrics-token.ts';
import { withoutRight } from './pool-secret.ts';
import { makeSessionKey } from './session-key.ts';
import { refusalOf } from './refusals.ts';

interface PoolObjectsOptions {
  readonly api: KubeApi;
  readonly caches: Pick<Caches, 'camerasOf' | 'nodesOf' | 'podsOf' | 'recorderNodes'>;
  readonly events: Pick<EventRecorder, 'record'>;
  /** The image for pools that name none. */
  readonly image: string;
  readonly priorityClass: string;
  readonly logins: CameraLogins;
  /** Networks in which no camera can be. */
  readonly clusterNetworks: () => Promise<readonly string[]>;
  /** Undefined: no NetworkPolicies are made. */
  readonly egress: EgressPorts | undefined;
  readonly clock: Clock;
}

/** What the objects are made from, in addition to the pool. */
interface Inputs {
  /** A digest of the settings that pods read only at their start. */
  readonly digest: string;
  /** Nodes that record for other pools. */
  readonly taken: readonly string[];
  /** Nodes on which pods of the pool may run. */
  readonly nodes: readonly string[];
  /** Nodes on which pods stay although the pool may select these nodes no more. */
  readonly named: readonly string[];
  /** Certificates of the authorities that recorders trust. */
  readonly bundle: string | undefined;
  /** How many guards must not be evicted. */
  readonly guards: number;
}

interface Problem {
  readonly condition: PlannedCondition;
  /** False: some objects are not as they should be. */
  readonly isApplied: boolean;
}

/** All objects are applied again after this time: a watch may have missed what others have changed or deleted. */
const APPLY_ANEW_MS = 300_000;
/** No Secret is watched, because a watch needs the right to read all of them. */
const SECRETS_ANEW_MS = 30_000;

/** In place of a digest: the object does not exist. */
const NONE = 'none';

/** What was last applied, so that an unchanged pool costs no requests. */
interface AppliedObjects {
  readonly uid: string | undefined;
  readonly digests: Map<string, string>;
  /** What the API server made of them. */
  readonly written: Map<string, WrittenObject>;
  /** Objects that others have changed or deleted, as they left them; undefined: deleted. */
  readonly disturbed: Map<string, WrittenObject | undefined>;
  secretsSinceMs: number;
  /** Digest of the token for metrics. */
  metricsSha256?: string;
  areTokensMade?: boolean;
  isSessionKeyMade?: boolean;
  readonly sinceMs: number;
}

interface WrittenObject {
  readonly uid: string | undefined;
  readonly resourceVersion: string;
  readonly content: string;
}

export class PoolObjects {
  readonly #options: PoolObjectsOptions;
  readonly #applied = new Map<string, AppliedObjects>();

  constructor(options: PoolObjectsOptions) {
    this.#options = options;
  }

  forget(key?: string): void {
    if (key === undefined) this.#applied.clear();
    else this.#applied.delete(key);
  }

  /** An object of the pool was changed or deleted. Returns whether it is to be applied again: another program did that. */
  saw(key: string, { kind }: Resource, change: Change<KubeObject>): boolean {
    const applied = this.#applied.get(key);
    const seen = change.kind === 'deleted' ? change.previous : change.object;
    const id = `${kind}/${seen.metadata.name}`;
    const written = applied?.written.get(id);
    if (!applied || !written) return false;
    const now = writtenOf(seen);
    const isOurs =
      change.kind === 'deleted'
        ? now.uid !== written.uid
        : now.content === written.content || !isNewer(now.resourceVersion, written.resourceVersion);
    if (isOurs) return false;
    applied.digests.delete(id);
    applied.disturbed.set(id, change.kind === 'deleted' ? undefined : now);
    return true;
  }

  /** Returns the first problem that a person has to solve. Throws ApiError when it should be tried again. */
  async apply(key: string, pool: ConfiguredPool, inputs: Inputs): Promise<Problem | undefined> {
    const { api, egress } = this.#options;
    const { namespace, name, uid } = pool.metadata;
    const applied = this.#appliedOf(key, uid);
    const { digests } = applied;
    const owner: Owner = { apiVersion: API_VERSION, kind: 'RecorderPool', name, uid: uid ?? '' };
    const noMetricsToken = await this.#keepMetricsToken(pool, applied, owner);
    const noTokens = await this.#keepTokens(pool, applied);
    const noSessionKey = await this.#keepSessionKey(pool, applied, owner);
    const objects = await this.#objectsOf(key, pool, inputs, applied.metricsSha256);
    // Deletes the policy that an earlier spec required.
    const policyID = `${NETWORK_POLICY.kind}/${recorderName(name)}`;
    const hasPolicy = objects.some(([resource]) => resource === NETWORK_POLICY);
    if (!hasPolicy && egress && digests.get(policyID) !== NONE) {
      await deleteOwned(api, NETWORK_POLICY, { namespace, name: recorderName(name) }, owner);
      digests.set(policyID, NONE);
    }
    let refusal = usesClaims(pool.spec) ? await this.#keepClaims(pool, inputs.nodes, digests, owner) : undefined;
    for (const [resource, object] of objects) {
      const id = `${resource.kind}/${object.metadata.name}`;
      const wanted = JSON.stringify(object);
      if (digests.get(id) === wanted) continue;
      const left = applied.disturbed.has(id) ? { as: applied.disturbed.get(id) } : undefined;
      applied.disturbed.delete(id);
      let isWritten = false;
      const refused = await refusalOf(async () => {
        const made = writtenOf(await applyOwned(api, resource, object, owner));
        if (left && left.as?.content !== made.content) this.#tell(pool, id);
        applied.written.set(id, made);
        // The watch may show it, and its status, before the response does; or what others have done since.
        isWritten = !applied.disturbed.has(id) || applied.disturbed.get(id)?.content === made.content;
        if (isWritten) applied.disturbed.delete(id);
      }, id);
      if (refused) refusal ??= refused;
      else if (isWritten) digests.set(id, wanted);
    }
    if (refusal) return { condition: refusal, isApplied: false };
    if (noTokens) return { condition: noTokens, isApplied: false };
    const lack = noMetricsToken ?? noSessionKey;
    return lack && { condition: lack, isApplied: true };
  }

  #tell(pool: RecorderPool, id: string): void {
    const note = `another program changed or deleted ${id}: it is as it should be again`;
    this.#options.events.record(pool, { type: 'Warning', reason: 'ObjectRestored', action: 'Apply', note });
  }

  /**
   * Applies the claims of each node before the pod that waits for them, and deletes the DaemonSets of nodes that the pool has no
   * longer. Their claims stay. Returns the first refusal.
   */
  async #keepClaims(
    pool: RecorderPool,
    nodes: readonly string[],
    digests: Map<string, string>,
    owner: Owner,
  ): Promise<PlannedCondition | undefined> {
    const { api, caches } = this.#options;
    const { namespace, name } = pool.metadata;
    let refusal: PlannedCondition | undefined;
    for (const claim of nodes.flatMap((node) => claimsOf(pool, node))) {
      const id = `${claim.kind}/${claim.metadata.name}`;
      const wanted = JSON.stringify(claim);
      if (digests.get(id) === wanted) continue;
      const options = { fieldManager: OPERATOR_MANAGER, force: true };
      const refused = await refusalOf(() => api.apply(PERSISTENT_VOLUME_CLAIM, claim, options), id);
      if (refused) refusal ??= refused;
      else digests.set(id, wanted);
    }
    const left = caches.nodesOf(pool).filter(({ spec }) => !nodes.includes(spec.nodeName));
    for (const { spec } of left) {
      const daemonSet = nodeRecorderName(name, spec.nodeName);
      const id = `${DAEMON_SET.kind}/${daemonSet}`;
      if (digests.get(id) === NONE) continue;
      await deleteOwned(api, DAEMON_SET, { namespace, name: daemonSet }, owner);
      digests.set(id, NONE);
    }
    return refusal;
  }

  #appliedOf(key: string, uid: string | undefined): AppliedObjects {
    const nowMs = this.#options.clock.monotonicMs();
    let applied = this.#applied.get(key);
    if (!applied || applied.uid !== uid || nowMs - applied.sinceMs > APPLY_ANEW_MS) {
      const nothing = { digests: new Map(), written: new Map(), disturbed: new Map() };
      this.#applied.set(key, (applied = { uid, ...nothing, secretsSinceMs: nowMs, sinceMs: nowMs }));
    }
    if (nowMs - applied.secretsSinceMs >= SECRETS_ANEW_MS) {
      applied.secretsSinceMs = nowMs;
      delete applied.metricsSha256;
      delete applied.areTokensMade;
      delete applied.isSessionKeyMade;
    }
    return applied;
  }

  async #objectsOf(
    key: string,
    pool: ConfiguredPool,
    { digest, taken, nodes, named, bundle, guards }: Inputs,
    metricsSha256: string | undefined,
  ): Promise<readonly (readonly [Resource, KubeObject])[]> {
    const { caches, image, priorityClass, logins, clusterNetworks, egress } = this.#options;
    const { namespace, name } = pool.metadata;
    const secrets = await logins.granted(key, pool, caches.camerasOf(pool));
    const networks = await clusterNetworks();
    const policy = egress && networkPolicyOf(pool, egress, networks);
    return [
      [SERVICE_ACCOUNT, serviceAccountOf({ namespace, name })],
      [ROLE, roleOf({ namespace, name }, secrets, this.#nodeNames(pool))],
      [ROLE_BINDING, roleBindingOf({ namespace, name })],
      [CONFIG_MAP, configMapOf(pool, networks, metricsSha256)],
      ...(bundle === undefined ? [] : [[CONFIG_MAP, trustOf(pool, bundle)] as const]),
      ...servicesOf(pool).map((service) => [SERVICE, service] as const),
      [POD_DISRUPTION_BUDGET, disruptionBudgetOf(pool, guards)],
      ...(policy ? [[NETWORK_POLICY, policy] as const] : []),
      ...(usesClaims(pool.spec)
        ? nodes.map((node) => [DAEMON_SET, daemonSetOf(pool, image, digest, priorityClass, {}, node)] as const)
        : [[DAEMON_SET, daemonSetOf(pool, image, digest, priorityClass, { without: taken, named })] as const]),
    ];
  }

  /**
   * Reads or makes the token for metrics. Returns the condition if there is none: recorders work without it, but then metrics need
   * a token for all cameras.
   */
  async #keepMetricsToken(
    pool: RecorderPool,
    applied: AppliedObjects,
    owner: Owner,
  ): Promise<PlannedCondition | undefined> {
    if (pool.spec.metrics.mode !== 'Token' || applied.metricsSha256 !== undefined) return undefined;
    const secret = `the Secret ${metricsTokenName(pool.metadata.name)}`;
    let why = `${secret} has no token: delete it, and a new one is created`;
    try {
      const made = await metricsTokenOf(this.#options.api, pool, owner);
      if (made !== undefined) {
        applied.metricsSha256 = made;
        return undefined;
      }
    } catch (err) {
      why = withoutRight(err, `${secret} with the token for metrics`);
    }
    return { type: 'ResourcesApplied', status: 'False', reason: 'NoMetricsToken', message: why };
  }

  /** Makes the tokens of a pool that names no Secret for them. Returns the condition if there are none: pods wait for them. */
  async #keepTokens(pool: RecorderPool, applied: AppliedObjects): Promise<PlannedCondition | undefined> {
    if (applied.areTokensMade === true) return undefined;
    try {
      await makeTokens(this.#options.api, pool);
      applied.areTokensMade = true;
      return undefined;
    } catch (err) {
      const message = withoutRight(err, `the Secret ${tokensName(pool.metadata.name)}`);
      return { type: 'ResourcesApplied', status: 'False', reason: 'NoTokens', message };
    }
  }

  /** Makes the key of sessions. Returns the condition if there is none: then each recorder has a key of its own. */
  async #keepSessionKey(
    pool: RecorderPool,
    applied: AppliedObjects,
    owner: Owner,
  ): Promise<PlannedCondition | undefined> {
    if (pool.spec.auth.mode === 'None' || applied.isSessionKeyMade === true) return undefined;
    const secret = `the Secret ${sessionKeyName(pool.metadata.name)}`;
    let why = `${secret} has no key of 64 hexadecimal digits: delete it, and a new one is created`;
    try {
      if (await makeSessionKey(this.#options.api, pool, owner)) {
        applied.isSessionKeyMade = true;
        return undefined;
      }
    } catch (err) {
      why = withoutRight(err, `${secret} with the key of sessions`);
    }
    return { type: 'ResourcesApplied', status: 'False', reason: 'NoSessionKey', message: why };
  }

  /** Includes nodes whose pod has just started: their recorders are about to write. */
  #nodeNames(pool: RecorderPool): readonly string[] {
    const { caches } = this.#options;
    const nodes = caches.nodesOf(pool).map(({ metadata }) => metadata.name);
    const taken = new Set(nodes);
    const coming = caches.podsOf(pool).flatMap(({ spec }) => spec?.nodeName ?? []);
    const { namespace } = pool.metadata;
    return [
      ...nodes,
      ...coming.filter((node) => !taken.has(node) && !caches.recorderNodes.get(`${namespace}/${node}`)),
    ];
  }
}

/** Where the API server counts changes of what is wanted (`generation`), changes of the status do not count. */
function writtenOf({ metadata }: KubeObject): WrittenObject {
  const { uid, resourceVersion = '', generation, labels, annotations, ownerReferences } = metadata;
  const what = generation === undefined ? resourceVersion : [generation, labels, annotations, ownerReferences];
  return { uid, resourceVersion, content: JSON.stringify([uid, what]) };
}
