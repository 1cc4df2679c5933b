// Who changed what: requests in, one line for each that would change something out, whether it was allowed to or not.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { CAMERA_ID } from '../config/schema.ts';
import { pathOf } from './problem.ts';

export interface AuditDeps {
  /** Takes the lines. They hold no token and no body. */
  readonly audit: Pick<Log, 'info'>;
  readonly clock: Clock;
}

/** RFC 9110 §9.2.1 */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
const MAX_PATH_LENGTH = 300;
/** Callers without a token must not wash away what others did: so many of their lines a minute, then a number. */
const MAX_UNKNOWN_LINES = 60;
const UNKNOWN_WINDOW_MS = 60_000;

/** Writes a line for each call of a route with a role, unless its method is safe. Install it before what may refuse. */
export function installAudit(app: FastifyInstance, { audit, clock }: AuditDeps): void {
  const written = new WeakSet<FastifyReply>();
  const mayWrite = limitUnknown(clock);

  function write(request: FastifyRequest, reply: FastifyReply, outcome: Record<string, unknown>): void {
    const { caller, method, routeOptions, ip, id } = request;
    written.add(reply);
    const passed = caller ? { suppressed: 0 } : mayWrite();
    if (!passed) return;
    const camera = cameraOf(request);
    audit.info(
      {
        caller: caller?.name ?? null,
        role: caller?.role ?? null,
        method,
        route: routeOptions.url,
        path: pathOf(request.url).slice(0, MAX_PATH_LENGTH),
        ...(camera === undefined ? {} : { camera }),
        address: ip,
        ...outcome,
        requestId: id,
        ...(passed.suppressed > 0 ? { suppressed: passed.suppressed } : {}),
      },
      'audit',
    );
  }

  const concerns = ({ method, routeOptions }: FastifyRequest): boolean =>
    !SAFE.has(method) && routeOptions.config.role !== undefined;

  app.addHook('onRequest', async (request, reply) => {
    if (!concerns(request)) return;
    // Whoever leaves before the answer is there has asked all the same; what comes of it follows when it is known.
    reply.raw.once('close', () => {
      if (!written.has(reply)) write(request, reply, { status: null, outcome: 'caller gone' });
    });
  });
  app.addHook('onSend', async (request, reply) => {
    if (!concerns(request)) return;
    const { statusCode: status } = reply;
    write(request, reply, { status, outcome: outcomeOf(status) });
  });
}

function outcomeOf(status: number): string {
  if (status < 300) return 'done';
  // Another node does it, and has a line of its own.
  if (status < 400) return 'redirected';
  return status === 401 || status === 403 || status === 429 ? 'denied' : 'failed';
}

/** The camera that a call is about, where its route says so. */
function cameraOf({ routeOptions, params, body }: FastifyRequest): string | undefined {
  const { cameras } = routeOptions.config;
  if (typeof cameras !== 'object') return undefined;
  const [values, field] = 'param' in cameras ? [params, cameras.param] : [body, cameras.body];
  const value = (values as Readonly<Record<string, unknown>> | null | undefined)?.[field];
  return typeof value === 'string' && CAMERA_ID.test(value) ? value : undefined;
}

/** Undefined for a line too many; else how many there were since the last one. */
function limitUnknown(clock: Clock): () => { readonly suppressed: number } | undefined {
  let windowMs = -Infinity;
  let lines = 0;
  let suppressed = 0;
  return () => {
    const nowMs = clock.monotonicMs();
    if (nowMs - windowMs >= UNKNOWN_WINDOW_MS) {
      windowMs = nowMs;
      lines = 0;
    }
    if (++lines > MAX_UNKNOWN_LINES) {
      suppressed++;
      return undefined;
    }
    const before = suppressed;
    suppressed = 0;
    return { suppressed: before };
  };
}
