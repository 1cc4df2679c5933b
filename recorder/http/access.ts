// What every listener does with a request before and after its route: asks for a token where the route has a role, keeps
// cameras from whoever they do not concern, and leaves a line in the log.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { assert } from '../../base/assert.ts';
import type { Log } from '../../base/log.ts';
import type { Role } from '../config/schema.ts';
import { requireRole, type Authenticator, type Caller, type CredentialPlace } from './auth.ts';
import { ApiError, pathOf, unknownCamera } from './problem.ts';

/**
 * Which cameras a route with a role concerns, for callers whose token is for some cameras only:
 *
 * - `none`: it tells nothing of cameras and does nothing to them.
 * - `param` or `body`: the camera whose id is in this path parameter or field of the body. For one out of scope the caller
 *   gets `unknownCamera()`, after the request was validated: the handler has to throw the same, before anything else, for
 *   a camera that it does not know.
 * - `filtered`: the handler asks `callerOf(request).sees(cameraId)` for each camera that it would tell of.
 */
export type CameraScope = 'none' | 'filtered' | { readonly param: string } | { readonly body: string };

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may call the route; without it, anyone. */
    role?: Role;
    credentials?: CredentialPlace;
    /** Without it, a route with a role concerns the node as a whole: a token that is for some cameras only gets 403. */
    cameras?: CameraScope;
  }
  interface FastifyRequest {
    /** Who asks; undefined where the route has no role. */
    caller: Caller | undefined;
  }
}

/** Who calls a route that has a role. */
export function callerOf({ caller }: FastifyRequest): Caller {
  assert(caller, 'the route has a role');
  return caller;
}

/** The id of a camera that concerns the caller, else one that no camera has: for answers that unknown cameras get too. */
export const visibleCamera = (request: FastifyRequest, cameraId: string): string =>
  callerOf(request).sees(cameraId) ? cameraId : '';

/** Holds every route of `app` to the role and the cameras in its `config`. */
export function installAccess(app: FastifyInstance, auth: Authenticator): void {
  app.decorateRequest('caller', undefined);
  const sending = new Map<FastifyReply, Caller>();
  const stopListening = auth.onChange(() => {
    for (const [reply, caller] of sending) if (!auth.renewed(caller)) reply.raw.destroy();
  });
  app.addHook('onClose', async () => stopListening());
  app.addHook('onRequest', async (request, reply) => {
    const { role, credentials = 'header', cameras } = request.routeOptions.config;
    if (role === undefined) return;
    // Only Bearer: for Basic browsers would open a dialogue of their own over the page's.
    reply.header('www-authenticate', 'Bearer realm="recorder"');
    const found = auth.identify(request, credentials);
    // Most are known at once: a request then waits for nothing.
    const caller = found instanceof Promise ? await found : found;
    // Also of one who may not: an audit wants to know who it was.
    request.caller = caller;
    requireRole(caller, role);
    reply.removeHeader('www-authenticate');
    if (!caller.seesAll && cameras === undefined) {
      throw new ApiError(403, 'forbidden', 'this concerns the whole node, and the token is for some cameras only');
    }
    // What is sent as media may take hours, and ends with its token.
    if (credentials === 'header-or-query') {
      sending.set(reply, caller);
      const letGo = auth.hold(caller);
      reply.raw.once('close', () => {
        sending.delete(reply);
        letGo();
      });
    }
  });
  app.addHook('preHandler', async (request) => {
    const { role, cameras } = request.routeOptions.config;
    if (role === undefined || typeof cameras !== 'object') return;
    const [values, field] = 'param' in cameras ? [request.params, cameras.param] : [request.body, cameras.body];
    const cameraId = (values as Readonly<Record<string, unknown>>)[field];
    assert(typeof cameraId === 'string', 'the schema of the route names the camera');
    if (!callerOf(request).sees(cameraId)) throw unknownCamera();
  });
}

/** Lets the event loop run without pauses while a request is answered; `keepAwake` returns what ends that. */
export function installKeepAwake(app: FastifyInstance, keepAwake: () => () => void): void {
  app.addHook('onRequest', async (request, reply) => {
    // A viewer's request is answered when it leaves; its pictures do not wait for turns of the loop.
    if (request.headers.upgrade === undefined) reply.raw.once('close', keepAwake());
  });
}

/** One line a request, without its query: that may hold a token. */
export function logAnswers(app: FastifyInstance, log: Log): void {
  app.addHook('onResponse', async (request, reply) => {
    log.debug(
      {
        method: request.method,
        path: pathOf(request.url),
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime),
        requestId: request.id,
        ...(request.caller ? { caller: request.caller.name } : {}),
      },
      'request answered',
    );
  });
}
