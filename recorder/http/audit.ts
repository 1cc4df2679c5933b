// Writes the audit: a line for each call, allowed or refused, that changes something or reads what only admins may read, and
// visits for footage that is watched or downloaded over time.

import { SAFE } from './cors.ts';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../base/clock.ts';
import type { Action, AuditEntry, AuditSink, Visit } from '../audit/entry.ts';
import { KEPT_ELSEWHERE, VISITS } from '../audit/entry.ts';
import type { VisitFacts, Visits } from '../audit/visits.ts';
import { CAMERA_ID } from '../../base/camera-id.ts';
import { callerOf } from './access.ts';
import type { Caller } from './caller.ts';
import { pathOf } from './problem.ts';
import { relayedBy } from './relayed.ts';
import { routeConfigOf } from './route-config.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The name of the route's calls in the audit. Required for a route with a role that changes something. */
    audit?: Action;
  }
  interface FastifyInstance {
    visits: Visits | undefined;
  }
  interface FastifyRequest {
    /** Facts that the handler adds to the line. */
    told: Record<string, unknown> | undefined;
  }
}

interface AuditDeps {
  readonly audit: AuditSink;
  readonly visits?: Visits | undefined;
  readonly clock: Clock;
}

const CALLER_GONE = { status: null, outcome: 'caller gone' };
const MAX_PATH_LENGTH = 300;
/** Lines per minute from callers without a token. Further ones are only counted: they must not push out other lines. */
const MAX_UNKNOWN_LINES = 60;
const UNKNOWN_WINDOW_MS = 60_000;

/** Adds facts to the line of a request that only its handler knows, such as the window of an export. */
export function tell({ told }: FastifyRequest, facts: Omit<AuditEntry, 'what'> & { readonly what?: Action }): void {
  if (told) Object.assign(told, facts);
}

/** Begins a visit with the route's name in the audit; it ends with the answer. `facts`: which footage of which camera. */
export function visit(
  request: FastifyRequest,
  reply: FastifyReply,
  facts: Pick<VisitFacts, 'camera' | 'cameras' | 'job' | 'fromMs' | 'toMs'>,
): void {
  const { socket } = request.raw;
  const before = socket.bytesWritten;
  const end = beginVisit(request, callerOf(request), routeConfigOf(request).audit as Visit, facts);
  reply.raw.once('close', () => end(socket.bytesWritten - before || 0));
}

/** The same for a live stream, which has no answer. */
export function beginVisit(
  { server, raw, ip, id }: FastifyRequest,
  caller: Caller,
  what: Visit,
  facts: Pick<VisitFacts, 'camera' | 'cameras' | 'job' | 'fromMs' | 'toMs'>,
): (bytes: number) => void {
  const { name, role } = caller;
  const who = { caller: name, role, ...vouchedIn(raw, caller), address: ip, requestId: id };
  return server.visits?.begin({ what, ...who, ...facts }) ?? (() => {});
}

/** The node that vouches for a caller whom this node has not checked, also if this node believes it nothing. */
function vouchedIn(raw: IncomingMessage, caller: Caller | undefined): { readonly statedBy?: string } {
  const statedBy = relayedBy(raw)?.viewer?.statedBy ?? caller?.session?.vouchedBy;
  return statedBy === undefined ? {} : { statedBy };
}

/** Install it before any hook that may refuse. Throws for a route that changes something and has no name in the audit. */
export function installAudit(app: FastifyInstance, { audit, visits, clock }: AuditDeps): void {
  const written = new WeakSet<FastifyReply>();
  const unknownLines = new UnknownLines(clock);
  app.decorate('visits', visits);
  app.decorateRequest('told', undefined);
  app.addHook('onRoute', ({ method, url, config }) => {
    if (!config?.role || config.audit !== undefined || [method].flat().every((one) => SAFE.has(one))) return;
    throw new Error(`${String(method)} ${url} changes something: give it a name in the audit`);
  });

  function write(request: FastifyRequest, reply: FastifyReply, outcome: Record<string, unknown>): void {
    const { caller, method, routeOptions, ip, id, told } = request;
    written.add(reply);
    const { audit: what } = routeOptions.config;
    if (what !== undefined && KEPT_ELSEWHERE.has(what) && outcome['outcome'] === 'done') return;
    const passed = caller ? { suppressed: 0 } : unknownLines.take();
    if (!passed) return;
    const camera = cameraOf(request);
    audit.write({
      what: what as Action,
      caller: caller?.name ?? null,
      role: caller?.role ?? null,
      ...vouchedIn(request.raw, caller),
      method,
      route: routeOptions.url,
      path: pathOf(request.url).slice(0, MAX_PATH_LENGTH),
      ...(camera === undefined ? {} : { camera }),
      address: ip,
      ...outcome,
      requestId: id,
      // The last word: a handler may know better than the status how it went.
      ...told,
      ...(passed.suppressed > 0 ? { suppressed: passed.suppressed } : {}),
    });
  }

  const concerns = (request: FastifyRequest): boolean => {
    const { audit } = routeConfigOf(request);
    return audit !== undefined && !VISITS.has(audit);
  };

  app.addHook('onRequest', (request, reply, done) => {
    if (concerns(request)) {
      request.told = {};
      // The call counts even if the caller disconnects before the answer. The result follows when it is known.
      reply.raw.once('close', () => {
        if (written.has(reply)) return;
        const { statusCode: status, writableEnded } = reply.raw;
        // A handler may have sent its answer itself.
        write(request, reply, writableEnded ? { status, outcome: outcomeOf(status) } : CALLER_GONE);
      });
    }
    done();
  });
  app.addHook('onSend', (request, reply, _payload, done) => {
    const { statusCode: status } = reply;
    if (concerns(request)) write(request, reply, { status, outcome: outcomeOf(status) });
    done();
  });
}

function outcomeOf(status: number): string {
  if (status < 300) return 'done';
  // Another node carries it out and writes its own line.
  if (status < 400) return 'redirected';
  return status === 401 || status === 403 || status === 429 ? 'denied' : 'failed';
}

/** The camera that a call concerns, according to the scope of its route. */
function cameraOf(request: FastifyRequest): string | undefined {
  const { params, body } = request;
  const { cameras } = routeConfigOf(request);
  if (typeof cameras !== 'object') return undefined;
  const [values, field] = 'param' in cameras ? [params, cameras.param] : [body, cameras.body];
  const value = (values as Readonly<Record<string, unknown>> | null | undefined)?.[field];
  return typeof value === 'string' && CAMERA_ID.test(value) ? value : undefined;
}

/** Limits the lines about unknown callers. */
class UnknownLines {
  readonly #clock: Clock;
  #windowMs = -Infinity;
  #lines = 0;
  #suppressed = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** For each line: undefined if there were too many, otherwise the number of lines suppressed since the last one. */
  take(): { readonly suppressed: number } | undefined {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#windowMs >= UNKNOWN_WINDOW_MS) {
      this.#windowMs = nowMs;
      this.#lines = 0;
    }
    this.#lines++;
    if (this.#lines > MAX_UNKNOWN_LINES) {
      this.#suppressed++;
      return undefined;
    }
    const suppressed = this.#suppressed;
    this.#suppressed = 0;
    return { suppressed };
  }
}
