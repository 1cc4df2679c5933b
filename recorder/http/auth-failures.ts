// Counts refused tokens for metrics, and reports them in log and audit at most once a minute.

import { Counter, type Registry } from 'prom-client';
import type { FastifyRequest } from 'fastify';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { AuditSink } from '../audit/entry.ts';
import { pathOf } from './problem.ts';

/**
 * `wrong`: unknown or expired. `password`: a wrong name or password. `held-off`: not checked, because there were too many wrong ones. `audience`: for another
 * audience. `plaintext`: sent without TLS where that is not allowed.
 */
const REASONS = ['wrong', 'password', 'held-off', 'audience', 'plaintext'] as const;
export type AuthFailure = (typeof REASONS)[number];

export const LISTENERS = ['api', 'playback', 'metrics'] as const;
export type ListenerName = (typeof LISTENERS)[number];

const LOGGED_EVERY_MS = 60_000;
/** In one line. */
const MAX_ADDRESSES = 5;
/** Addresses that are remembered for a minute; attempts from further ones are only counted. */
const MAX_COUNTED_ADDRESSES = 1_000;

interface AuthFailuresOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly registry: Registry | undefined;
  readonly audit: AuditSink;
}

export class AuthFailures {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #audit: AuditSink;
  readonly #counter: Counter;
  /** Attempts since the last line, by address; undefined if there were none. */
  #unreported: { count: number; readonly addresses: Map<string, number> } | undefined;

  constructor({ clock, log, registry, audit }: AuthFailuresOptions) {
    this.#clock = clock;
    this.#log = log;
    this.#audit = audit;
    this.#counter = new Counter({
      name: 'kube_nvr_auth_failures_total',
      help: 'Requests with a token that was refused, by reason.',
      labelNames: ['listener', 'reason'],
      registers: registry ? [registry] : [],
    });
    for (const listener of LISTENERS) for (const reason of REASONS) this.#counter.inc({ listener, reason }, 0);
  }

  /** The first one is reported at once, those of the following minute together. */
  count(reason: AuthFailure, { server, ip: address, method, url, id }: FastifyRequest): void {
    this.#counter.inc({ listener: server.listenerName, reason });
    const unreported = this.#unreported;
    if (!unreported) {
      const what = reason === 'password' ? 'a sign-in was refused' : 'a token was refused';
      this.#log.warn({ reason, address, method, path: pathOf(url), requestId: id }, what);
      this.#write(1, [[address, 1]], 1);
      this.#unreported = { count: 0, addresses: new Map() };
      this.#clock.after(LOGGED_EVERY_MS, () => this.#report());
      return;
    }
    unreported.count++;
    const known = unreported.addresses.get(address);
    if (known !== undefined || unreported.addresses.size < MAX_COUNTED_ADDRESSES) {
      unreported.addresses.set(address, (known ?? 0) + 1);
    }
  }

  /** Reports what has not been reported yet. */
  close(): void {
    this.#report();
  }

  #report(): void {
    const unreported = this.#unreported;
    if (!unreported || unreported.count === 0) {
      this.#unreported = undefined;
      return;
    }
    const most = [...unreported.addresses].toSorted(([, a], [, b]) => b - a).slice(0, MAX_ADDRESSES);
    const { count, addresses } = unreported;
    this.#log.warn({ count, addresses: addresses.size, most: Object.fromEntries(most) }, 'tokens were refused');
    this.#write(count, most, addresses.size);
    this.#unreported = { count: 0, addresses: new Map() };
    this.#clock.after(LOGGED_EVERY_MS, () => this.#report());
  }

  #write(attempts: number, most: readonly (readonly [string, number])[], addresses: number): void {
    const named = most.map(([address, attempts]) => ({ address, attempts }));
    this.#audit.write({ what: 'failed-logins', caller: null, attempts, addresses, most: named });
  }
}
