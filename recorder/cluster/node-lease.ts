// The recorder's sign of life: a Lease that it renews every few seconds (coordination.k8s.io/v1). Observers only check whether it
// changes. A renewal that succeeds after failed ones also shows that the API server is back.

import { randomBytes } from 'node:crypto';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { nodeLeaseName, POOL_LABEL, poolLabels } from '../../crds/names.ts';
import { leaseSecondsOf, NO_PROCESS } from '../../crds/renewal.ts';
import { ApiServerError, type ApiServer, type KubernetesObject } from './api-server.ts';

interface NodeLeaseOptions {
  readonly api: Pick<ApiServer, 'call' | 'get'>;
  /** Called to replace connections to the API server that may be dead. */
  readonly reconnect: () => void;
  readonly namespace: string;
  readonly nodeId: string;
  readonly pool: string;
  /** How often the pool wants the Lease to be renewed. */
  readonly renewMs: () => number;
  /** Called when a renewal succeeded after failed ones, or after this process was frozen: what was mirrored may be outdated. */
  readonly recovered: () => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** A renewal that takes longer is given up; the next one uses a new connection. */
const RENEW_TIMEOUT_MS = 2_500;
/** A renewal that failed is tried again this soon, because with a long interval few of them may fail. */
const RETRY_MS = 2_000;
/** The operator makes the Lease of a new node at once. Doubled for each further attempt, because all nodes may be new. */
const ABSENT_RETRY_MS = 250;
/** After this many renewals without a response. */
const RECONNECT_AFTER = 2;

export class NodeLease {
  readonly #options: NodeLeaseOptions;
  readonly #path: string;
  #holder: string;
  #lease: KubernetesObject | undefined;
  #timer: Timer | undefined;
  #failures = 0;
  /** The interval that the Lease announces: nodes are judged by it, so a longer one begins only when it is announced. */
  #announcedMs: number | undefined;
  /** The interval in the last renewal, accepted or not. */
  #triedMs: number | undefined;
  #renewedMs: number | undefined;
  #isOurs = false;
  #isAbsent = false;
  #closed = false;
  #renewing: Promise<void> | undefined;

  constructor(options: NodeLeaseOptions) {
    this.#options = options;
    this.#path = `/apis/coordination.k8s.io/v1/namespaces/${options.namespace}/leases`;
    this.#holder = `${options.nodeId}/${randomBytes(6).toString('hex')}`;
  }

  /** Whether the API server accepted the last renewal. */
  get isHeld(): boolean {
    return this.#renewedMs !== undefined && this.#failures === 0;
  }

  /** Monotonic time of the last successful renewal. */
  get renewedMs(): number | undefined {
    return this.#renewedMs;
  }

  /** The Lease was read, and no other pool of the namespace has it. Otherwise nothing of this node is ours to write. */
  get isOurs(): boolean {
    return this.#isOurs;
  }

  start(): void {
    this.#next(0);
  }

  /** Call when the pool may want another interval: announces it at once. */
  renewalChanged(): void {
    if (!this.#timer || this.#triedMs === this.#options.renewMs()) return;
    this.#timer.cancel();
    this.#next(0);
  }

  /** Ends the renewals and says so in the Lease, as far as the API server answers. */
  release(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#timer?.cancel();
    this.#renewing = this.#release(this.#renewing);
  }

  /** Unless `release` was called, a recorder that stops looks to observers like one that died. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#renewing;
  }

  async #release(renewing: Promise<void> | undefined): Promise<void> {
    const { nodeId, log } = this.#options;
    await renewing;
    if (this.#announcedMs === undefined) return;
    this.#holder = `${nodeId}${NO_PROCESS}`;
    try {
      await this.#write(this.#announcedMs);
    } catch (err) {
      if (!(err instanceof ApiServerError)) throw err;
      log.info({ reason: err.reason, problem: err.message }, 'the Lease of this node could not be released');
    }
  }

  #next(delayMs: number): void {
    if (this.#closed) return;
    this.#timer = this.#options.clock.after(delayMs, () => {
      this.#timer = undefined;
      this.#renewing = this.#renewOnce();
    });
  }

  async #renewOnce(): Promise<void> {
    const { clock, log, recovered, reconnect } = this.#options;
    const renewMs = this.#options.renewMs();
    const beforeMs = this.#announcedMs ?? renewMs;
    this.#triedMs = renewMs;
    const startMs = clock.monotonicMs();
    const sinceMs = this.#renewedMs === undefined ? 0 : startMs - this.#renewedMs;
    try {
      this.#lease = await this.#write(renewMs);
      this.#announcedMs = renewMs;
      const wasAway = this.#failures > 0 || sinceMs > 3 * beforeMs + RENEW_TIMEOUT_MS;
      if (this.#failures > 0) log.info({ failures: this.#failures }, 'the Lease of this node can be renewed again');
      this.#failures = 0;
      this.#renewedMs = clock.monotonicMs();
      if (wasAway) recovered();
    } catch (err) {
      if (!(err instanceof ApiServerError)) throw err;
      this.#failures++;
      this.#isAbsent = err.status === 404;
      // It was changed again or deleted by others: read it again.
      if (err.status === 409 || err.status === 404) this.#lease = undefined;
      if (err.status === 0 && this.#failures % RECONNECT_AFTER === 0) reconnect();
      if (this.#failures === 1)
        log.warn({ reason: err.reason, problem: err.message }, 'the Lease of this node could not be renewed');
    }
    const isNew = this.#renewedMs === undefined && this.#failures > 0 && this.#isAbsent;
    const nextMs = Math.min(
      this.#failures > 0 ? RETRY_MS : Infinity,
      isNew ? ABSENT_RETRY_MS * 2 ** (this.#failures - 1) : Infinity,
      this.#announcedMs ?? Infinity,
      this.#options.renewMs(),
    );
    this.#next(Math.max(0, nextMs - (clock.monotonicMs() - startMs)));
  }

  async #write(renewMs: number): Promise<KubernetesObject> {
    const known = this.#lease;
    if (!known) return this.#readAndPut(renewMs);
    try {
      return await this.#put(known, renewMs);
    } catch (err) {
      if (!(err instanceof ApiServerError) || err.status !== 409) throw err;
      // Mostly our own renewal, whose answer was lost: a pause here would make one lost answer cost two renewals of the three
      // for which a node counts as heard.
      this.#lease = undefined;
      return this.#readAndPut(renewMs);
    }
  }

  async #readAndPut(renewMs: number): Promise<KubernetesObject> {
    const { api, nodeId } = this.#options;
    // The operator creates the Lease: a right to create one would also allow creating those of other nodes or programs.
    this.#lease = await api.get(`${this.#path}/${nodeLeaseName(nodeId)}`, { timeoutMs: RENEW_TIMEOUT_MS });
    return this.#put(this.#lease, renewMs);
  }

  async #put(lease: KubernetesObject, renewMs: number): Promise<KubernetesObject> {
    const { api, nodeId, pool } = this.#options;
    const owner = poolOfLease(lease);
    this.#isOurs = owner === undefined || owner === pool;
    if (!this.#isOurs) throw new ApiServerError(409, 'OTHER_POOL', `the pool ${owner} records on this node already`);
    const path = `${this.#path}/${nodeLeaseName(nodeId)}`;
    const options = { timeoutMs: RENEW_TIMEOUT_MS };
    return (await api.call('PUT', path, this.#body(lease, renewMs), options)) as KubernetesObject;
  }

  #body(before: KubernetesObject, renewMs: number): unknown {
    const { nodeId, pool, clock } = this.#options;
    const now = new Date(clock.wallMs()).toISOString().replace('Z', '000Z');
    const spec = (before['spec'] ?? {}) as {
      holderIdentity?: unknown;
      acquireTime?: unknown;
      leaseTransitions?: unknown;
    };
    const isOurs = spec.holderIdentity === this.#holder;
    const transitions = typeof spec.leaseTransitions === 'number' ? spec.leaseTransitions : 0;
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        // Keeps labels and owners that others have set.
        ...before.metadata,
        name: nodeLeaseName(nodeId),
        labels: { ...(before.metadata['labels'] as object | undefined), ...poolLabels(pool) },
      },
      spec: {
        holderIdentity: this.#holder,
        leaseDurationSeconds: leaseSecondsOf(renewMs),
        acquireTime: isOurs ? spec.acquireTime : now,
        renewTime: now,
        leaseTransitions: isOurs ? transitions : transitions + 1,
      },
    };
  }
}

function poolOfLease({ metadata: { labels } }: KubernetesObject): string | undefined {
  const pool = (labels as Readonly<Record<string, unknown>> | undefined)?.[POOL_LABEL];
  return typeof pool === 'string' ? pool : undefined;
}
