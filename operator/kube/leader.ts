// Leader election among the replicas of the operator, with a Lease (coordination.k8s.io/v1) that is written by compare-and-swap.
// Whether another replica's Lease has expired is judged only by how long it has not changed on our own monotonic clock, never by
// the times inside it. Two replicas may still believe to lead for a moment: resourceVersion and epoch protect what they write.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { promptly } from '../../base/promptly.ts';
import { labels, OPERATOR_LEASE } from '../../crds/names.ts';
import { isConflict, isNotFound, type CallOptions, type KubeApi, type KubeObject } from './api.ts';
import { LEASE } from './resources.ts';
import { microTime } from './time.ts';

interface LeaderElectorOptions {
  readonly api: KubeApi;
  readonly namespace: string;
  readonly name?: string;
  /**
   * Identifies this process: the uid of its pod and a random part. A restarted container must not resume leading at once: it has
   * not watched any Lease of a recorder yet, but the other replica has (docs/design/failover.md).
   */
  readonly identity: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly timing?: LeaderTiming;
  readonly random?: () => number;
}

export interface LeaderTiming {
  /** Another replica may take a Lease that has not changed for this long. Whole seconds. */
  readonly leaseDurationMs: number;
  /** A leader that could not renew for this long stops leading. Less than `leaseDurationMs`. */
  readonly renewDeadlineMs: number;
  readonly retryMs: number;
}

/**
 * A dead leader must be replaced before the cameras of a dead node must be moved (15 s), because both may have been on one node.
 */
export const DEFAULT_TIMING: LeaderTiming = { leaseDurationMs: 10_000, renewDeadlineMs: 7_000, retryMs: 2_000 };

interface Spec {
  readonly holderIdentity?: string | null;
  readonly leaseDurationSeconds?: number;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

export class LeaderElector {
  readonly #options: LeaderElectorOptions;
  readonly #timing: LeaderTiming;
  readonly #name: string;
  /** The Lease as last read or written. */
  #lease: KubeObject | undefined;
  /** When it was last seen to change, on the monotonic clock. */
  #observedMs = 0;
  /** When the last successful renewal was sent; undefined while not leading. */
  #renewedMs: number | undefined;

  constructor(options: LeaderElectorOptions) {
    this.#options = options;
    this.#timing = options.timing ?? DEFAULT_TIMING;
    this.#name = options.name ?? OPERATOR_LEASE;
  }

  /** Computed from the current time, so that a process that was frozen knows before it does anything else. */
  get isLeader(): boolean {
    return this.#renewedMs !== undefined && this.#remainingMs() > 0;
  }

  /** The holder of the Lease as last seen. */
  get holder(): string | undefined {
    return this.#spec().holderIdentity ?? undefined;
  }

  /**
   * Takes part in the election until `signal` aborts. `lead` is called each time this replica is elected. Its signal aborts when
   * leadership is lost or the election ends. When it returns, also earlier, its term ends and the Lease is released.
   */
  async run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock, log, identity } = this.#options;
    while (!signal.aborted) {
      await this.#campaign(signal);
      if (signal.aborted) break;
      log.info({ identity }, 'this replica leads now');
      const term = new AbortController();
      const endTerm = (): void => term.abort();
      signal.addEventListener('abort', endTerm, { once: true });
      const leading = lead(term.signal)
        .catch((err: unknown) => log.bug({ err }, 'the work of the leader failed'))
        .finally(endTerm);
      await this.#renewUntilLost(term.signal);
      signal.removeEventListener('abort', endTerm);
      endTerm();
      await leading;
      if (!signal.aborted) log.warn({ identity }, 'this replica no longer leads');
      await this.#release();
      if (!signal.aborted) await clock.sleep(this.#retryMs(), signal);
    }
  }

  async #campaign(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    for (let isFirst = true; !signal.aborted; isFirst = false) {
      if (!isFirst) await clock.sleep(this.#retryMs(), signal);
      if (signal.aborted) return;
      try {
        if (await this.#tryAcquire(signal)) return;
      } catch (err) {
        if (!signal.aborted) log.warn({ err }, 'the Lease cannot be read or written');
      }
    }
  }

  /** Returns when `signal` aborts or the Lease could not be renewed in time. */
  async #renewUntilLost(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    while (!signal.aborted) {
      await clock.sleep(Math.max(0, Math.min(this.#timing.retryMs, this.#remainingMs())), signal);
      if (signal.aborted) return;
      const remainingMs = this.#remainingMs();
      if (remainingMs <= 0) return this.#lose();
      // A call that hangs must not outlast the term.
      const inTime = new AbortController();
      const timer = clock.after(remainingMs, () => inTime.abort());
      const abort = (): void => inTime.abort();
      signal.addEventListener('abort', abort, { once: true });
      try {
        const isHeld = await promptly(this.#tryAcquire(inTime.signal), inTime.signal);
        if (signal.aborted) return;
        if (!isHeld) return this.#lose();
      } catch (err) {
        if (signal.aborted) return;
        if (inTime.signal.aborted) return this.#lose();
        log.warn({ err, remainingMs: Math.round(this.#remainingMs()) }, 'the Lease could not be renewed');
      } finally {
        timer.cancel();
        signal.removeEventListener('abort', abort);
      }
    }
  }

  /** Takes or renews the Lease. False if another replica holds it. Throws if that cannot be determined. */
  async #tryAcquire(signal: AbortSignal): Promise<boolean> {
    const { api, clock, identity } = this.#options;
    const call = { signal, timeoutMs: this.#timing.retryMs };
    // A leader knows the version that it wrote; a candidate must read first.
    if (this.#renewedMs === undefined || !this.#lease) await this.#read(call);
    const { holderIdentity, leaseDurationSeconds = 0 } = this.#spec();
    if (this.#lease && holderIdentity && holderIdentity !== identity) {
      if (clock.monotonicMs() < this.#observedMs + leaseDurationSeconds * 1000) {
        this.#lose();
        return false;
      }
    }
    const sentMs = clock.monotonicMs();
    try {
      const next = this.#next();
      this.#lease = await (this.#lease ? api.replace(LEASE, next, call) : api.create(LEASE, next, call));
    } catch (err) {
      // Deleted by hand: the next attempt creates it.
      if (isNotFound(err)) this.#lease = undefined;
      if (!isConflict(err)) throw err;
      // Another replica was faster, or our own write succeeded although its response was lost.
      await this.#read(call);
      if (this.#spec().holderIdentity === identity) throw err;
      this.#lose();
      return false;
    }
    // A response after the end of the term does not count.
    if (signal.aborted) return false;
    this.#observedMs = sentMs;
    this.#renewedMs = sentMs;
    return true;
  }

  async #read(call: CallOptions): Promise<void> {
    const { api, namespace, clock } = this.#options;
    const before = this.#lease?.metadata.resourceVersion;
    try {
      this.#lease = await api.get(LEASE, { namespace, name: this.#name }, call);
    } catch (err) {
      if (!isNotFound(err)) throw err;
      this.#lease = undefined;
    }
    if (this.#lease?.metadata.resourceVersion !== before) this.#observedMs = clock.monotonicMs();
  }

  #next(): KubeObject {
    const { namespace, identity, clock } = this.#options;
    const before = this.#spec();
    const isOurs = before.holderIdentity === identity;
    const now = microTime(clock.wallMs());
    return {
      ...this.#lease,
      metadata: { ...(this.#lease?.metadata ?? { labels: labels('operator') }), namespace, name: this.#name },
      spec: {
        holderIdentity: identity,
        leaseDurationSeconds: Math.ceil(this.#timing.leaseDurationMs / 1000),
        acquireTime: isOurs ? (before.acquireTime ?? now) : now,
        renewTime: now,
        leaseTransitions: (before.leaseTransitions ?? 0) + (isOurs ? 0 : 1),
      } satisfies Spec,
    };
  }

  /** Releases the Lease, so that another replica can lead at once. */
  async #release(): Promise<void> {
    const { api, log, clock, identity } = this.#options;
    const isHeld = this.isLeader;
    this.#lose();
    if (!isHeld) return;
    const call = { timeoutMs: this.#timing.retryMs };
    try {
      for (let tries = 1; this.#lease && this.#spec().holderIdentity === identity; tries++) {
        const { leaseTransitions = 0 } = this.#spec();
        const spec: Spec = { leaseDurationSeconds: 1, leaseTransitions, renewTime: microTime(clock.wallMs()) };
        try {
          this.#lease = await api.replace(LEASE, { ...this.#lease, spec }, call);
        } catch (err) {
          // One of our own renewals was in flight.
          if (!isConflict(err) || tries === 2) throw err;
          await this.#read(call);
        }
      }
      log.info({}, 'the Lease was released');
    } catch (err) {
      log.warn({ err }, 'the Lease could not be released: it expires by itself');
    }
  }

  #lose(): void {
    this.#renewedMs = undefined;
  }

  #remainingMs(): number {
    if (this.#renewedMs === undefined) return 0;
    return this.#renewedMs + this.#timing.renewDeadlineMs - this.#options.clock.monotonicMs();
  }

  /** With jitter, so that candidates do not all ask at once. */
  #retryMs(): number {
    return this.#timing.retryMs * (1 + 0.2 * (this.#options.random ?? Math.random)());
  }

  #spec(): Spec {
    return this.#lease?.['spec'] ?? {};
  }
}
