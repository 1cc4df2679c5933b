// Counts how long the event loop works for each caller. Recording shares the loop with all requests: a caller whose requests take
// too much of the loop gets 429 until the caller's credit has grown again.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Counter, type Registry } from 'prom-client';
import { threadCpuMs, type Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { AuditSink } from '../audit/entry.ts';
import { LISTENERS } from './auth-failures.ts';
import { isStated } from './relayed.ts';
import { networkOf } from './failed-attempts.ts';
import { ApiError, pathOf } from './problem.ts';

/** Of each second, in the long run. */
const SHARE = 0.2;
/** What a caller may save up, in processor time: a page that is opened, and the slow first request of each route. */
const BURST_MS = 2_000;
/** The time to give back all of it. */
const BURST_REFILL_MS = BURST_MS / SHARE;
/** A piece of work up to this is free: thousands of ordinary requests a second come from programs that do their work. */
const FREE_MS = 1;
const REPORTED_EVERY_MS = 60_000;
/** Beyond this, the caller who worked longest ago is forgotten. */
const MAX_KEYS = 10_000;

interface Spent {
  /** When all credit is there again; monotonic. */
  wholeAtMs: number;
  reportedAtMs: number;
}

interface WorkBudgetDeps {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly log: Log;
  readonly registry: Registry | undefined;
  readonly audit: AuditSink;
  /** Processor time of this thread: what other programs of the machine take is not the caller's. */
  readonly cpuMs?: () => number;
}

export class WorkBudget {
  readonly #clock: WorkBudgetDeps['clock'];
  readonly #log: Log;
  readonly #audit: AuditSink;
  readonly #cpuMs: () => number;
  readonly #refused: Counter<'listener'>;
  /** In the order of their last work. */
  readonly #spent = new Map<string, Spent>();
  #isMeasuring = false;
  /** The request whose work is measured at this moment. */
  #request: FastifyRequest | undefined;

  constructor({ clock, log, registry, audit, cpuMs = threadCpuMs }: WorkBudgetDeps) {
    this.#clock = clock;
    this.#log = log;
    this.#audit = audit;
    this.#cpuMs = cpuMs;
    this.#refused = new Counter({
      name: 'kube_nvr_requests_over_budget_total',
      help: 'Requests that were refused because earlier requests of the same caller took too much of the event loop.',
      labelNames: ['listener'],
      registers: registry ? [registry] : [],
    });
    for (const listener of LISTENERS) this.#refused.inc({ listener }, 0);
  }

  /**
   * Measures what requests of `app` take until they wait for something for the first time, with the parsing of their bodies, and
   * their handlers until these wait. Call it before routes are added.
   */
  watch(app: FastifyInstance): void {
    const { server } = app;
    const emit = server.emit.bind(server);
    server.emit = (event: string, ...args: unknown[]) =>
      event === 'request' || event === 'upgrade'
        ? this.#measure(undefined, () => emit(event, ...args))
        : emit(event, ...args);
    app.addHook('onRequest', (request, _reply, done) => {
      this.#request = request;
      done();
    });
    const parse = app.getDefaultJsonParser('remove', 'remove');
    app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
      this.#measure(request, () => void parse(request, body as string, done));
    });
    app.addHook('onRoute', (route) => {
      const { handler } = route;
      route.handler = (request: FastifyRequest, reply: FastifyReply) =>
        this.#measure(request, () => handler.call(request.server, request, reply));
    });
  }

  /** Throws 429 when earlier work for the caller of the request, or for its network if there is none, took too long. */
  require(request: FastifyRequest): void {
    const spent = this.#spent.get(keyOf(request));
    if (!spent) return;
    const nowMs = this.#clock.monotonicMs();
    const waitMs = spent.wholeAtMs - nowMs - BURST_REFILL_MS;
    if (waitMs <= 0) return;
    this.#refused.inc({ listener: request.server.listenerName });
    if (nowMs - spent.reportedAtMs >= REPORTED_EVERY_MS) {
      spent.reportedAtMs = nowMs;
      this.#report(request);
    }
    const seconds = Math.ceil(waitMs / 1000);
    throw new ApiError(429, 'too-much-work', `your requests took too much processor time: wait ${seconds} s`, {
      headers: { 'retry-after': String(seconds) },
    });
  }

  #measure<T>(request: FastifyRequest | undefined, work: () => T): T {
    // Part of a longer piece of work, which is measured.
    if (this.#isMeasuring) return work();
    this.#isMeasuring = true;
    this.#request = request;
    const beganMs = this.#cpuMs();
    try {
      return work();
    } finally {
      const tookMs = this.#cpuMs() - beganMs;
      if (this.#request && tookMs > FREE_MS) this.#charge(keyOf(this.#request), tookMs);
      this.#request = undefined;
      this.#isMeasuring = false;
    }
  }

  #charge(key: string, tookMs: number): void {
    const nowMs = this.#clock.monotonicMs();
    const spent = this.#spent.get(key) ?? { wholeAtMs: nowMs, reportedAtMs: -Infinity };
    spent.wholeAtMs = Math.max(nowMs, spent.wholeAtMs) + tookMs / SHARE;
    this.#spent.delete(key);
    this.#spent.set(key, spent);
    const [oldest] = this.#spent.keys();
    if (this.#spent.size > MAX_KEYS) this.#spent.delete(oldest as string);
  }

  /** Once a minute for each caller. */
  #report(request: FastifyRequest): void {
    const { caller, ip: address, method, url, id: requestId } = request;
    const path = pathOf(url);
    this.#log.warn({ caller: caller?.name, address, method, path, requestId }, 'requests took too much processor time');
    this.#audit.write({ what: 'over-budget', caller: caller?.name ?? null, address, requestId });
  }
}

/** The caller, if there is one; a caller whom another node states is that node's. */
function keyOf({ caller, ip }: FastifyRequest): string {
  if (!caller) return networkOf(ip);
  return `${isStated(caller) ? caller.statedBy : ''}/${caller.name}`;
}
