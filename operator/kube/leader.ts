// One replica of the operator leads: it holds a Lease (coordination.k8s.io/v1), written by compare-and-swap. Whether
// another's Lease has run out is judged by whether it changes on our own monotonic clock, never by the times in it.
// There may still be two leaders for a moment: what they write is guarded by resourceVersion and epoch.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { labels, OPERATOR_LEASE } from '../../crds/names.ts';
import { isConflict, isNotFound, type CallOptions, type KubeApi, type KubeObject } from './api.ts';
import { LEASE } from './resources.ts';
import { microTime } from './time.ts';

export interface LeaderElectorOptions {
  readonly api: KubeApi;
  readonly namespace: string;
  readonly name?: string;
  /**
   * Of this process alone: the uid of its pod and something random. A container that starts again must not go on as the
   * leader at once: it has watched no Lease of a recorder yet, and the other replica has (docs/design/failover.md).
   */
  readonly identity: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly timing?: LeaderTiming;
  readonly random?: () => number;
}

export interface LeaderTiming {
  /** A Lease that did not change for so long may be taken by another. Whole seconds. */
  readonly leaseDurationMs: number;
  /** A leader that could not renew for so long leads no more. Less than `leaseDurationMs`. */
  readonly renewDeadlineMs: number;
  readonly retryMs: number;
}

/** A dead leader must be replaced before the cameras of a dead node are due (15 s): it may have been the same node. */
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
  /** As it was read or written last. */
  #lease: KubeObject | undefined;
  /** When it was seen to change. */
  #observedMs = 0;
  /** When the last renewal that succeeded was sent; undefined while another leads. */
  #renewedMs: number | undefined;

  constructor(options: LeaderElectorOptions) {
    this.#options = options;
    this.#timing = options.timing ?? DEFAULT_TIMING;
    this.#name = options.name ?? OPERATOR_LEASE;
  }

  /** By the clock as it is now: a process that was frozen knows before it does anything else. */
  get isLeader(): boolean {
    return this.#renewedMs !== undefined && this.#remainingMs() > 0;
  }

  /** Who holds the Lease as far as is known here. */
  get holder(): string | undefined {
    return this.#spec().holderIdentity ?? undefined;
  }

  /**
   * Takes part until `signal` aborts. `lead` is called whenever this replica is elected; its signal aborts when
   * leadership is lost or the election ends, and the Lease is let go of only after it has returned.
   */
  async run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock, log, identity } = this.#options;
    while (!signal.aborted) {
      await this.#campaign(signal);
      if (signal.aborted) break;
      log.info({ identity }, 'leading');
      const term = new AbortController();
      const endTerm = (): void => term.abort();
      signal.addEventListener('abort', endTerm, { once: true });
      const leading = lead(term.signal).catch((err: unknown) => {
        log.error({ err }, 'leading failed');
        term.abort();
      });
      await this.#renewUntilLost(term.signal);
      signal.removeEventListener('abort', endTerm);
      const isLost = !term.signal.aborted;
      term.abort();
      await leading;
      if (isLost) log.warn({ identity }, 'leadership lost');
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
      // A call that hangs must not outlive the term.
      const inTime = new AbortController();
      const timer = clock.after(remainingMs, () => inTime.abort());
      const abort = (): void => inTime.abort();
      signal.addEventListener('abort', abort, { once: true });
      try {
        const isHeld = await this.#inTime(this.#tryAcquire(inTime.signal), inTime.signal);
        if (signal.aborted) return;
        if (!isHeld) return this.#lose();
      } catch (err) {
        if (!signal.aborted) log.warn({ err, remainingMs: Math.round(this.#remainingMs()) }, 'Lease not renewed');
      } finally {
        timer.cancel();
        signal.removeEventListener('abort', abort);
      }
    }
  }

  /** Takes or renews the Lease. False: another has it. Throws when that cannot be told. */
  async #tryAcquire(signal: AbortSignal): Promise<boolean> {
    const { api, clock, identity } = this.#options;
    const call = { signal, timeoutMs: this.#timing.retryMs };
    // A leader knows the version it wrote; anybody else must look first.
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
      // Deleted by hand: the next try makes it anew.
      if (isNotFound(err)) this.#lease = undefined;
      if (!isConflict(err)) throw err;
      // Somebody was faster; or a write of our own went through although its answer was lost.
      await this.#read(call);
      if (this.#spec().holderIdentity === identity) throw err;
      this.#lose();
      return false;
    }
    // An answer that comes after the term is worth nothing.
    if (signal.aborted) return false;
    this.#observedMs = sentMs;
    this.#renewedMs = sentMs;
    return true;
  }

  /** Waits for `answer`, and not a moment longer than until `signal` aborts: then it counts as no. */
  async #inTime(answer: Promise<boolean>, signal: AbortSignal): Promise<boolean> {
    const aborted = Promise.withResolvers<boolean>();
    const abort = (): void => aborted.resolve(false);
    signal.addEventListener('abort', abort, { once: true });
    try {
      return await Promise.race([answer, aborted.promise]);
    } finally {
      signal.removeEventListener('abort', abort);
      answer.catch(() => {});
    }
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

  /** Lets the next replica lead at once. */
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
          // A renewal of our own was under way.
          if (!isConflict(err) || tries === 2) throw err;
          await this.#read(call);
        }
      }
      log.info({}, 'Lease released');
    } catch (err) {
      log.warn({ err }, 'Lease not released: it runs out');
    }
  }

  #lose(): void {
    this.#renewedMs = undefined;
  }

  #remainingMs(): number {
    if (this.#renewedMs === undefined) return 0;
    return this.#renewedMs + this.#timing.renewDeadlineMs - this.#options.clock.monotonicMs();
  }

  /** With jitter: candidates do not ask together. */
  #retryMs(): number {
    return this.#timing.retryMs * (1 + 0.2 * (this.#options.random ?? Math.random)());
  }

  #spec(): Spec {
    return this.#lease?.['spec'] ?? {};
  }
}
