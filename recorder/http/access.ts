// The hooks that every listener shares: they require a token where the route has a role, hide cameras outside the scope of
// the token, and log each answer.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { assert } from '../../base/assert.ts';
import type { Log } from '../../base/log.ts';
import type { Role } from '../config/schema.ts';
import type { Asker } from '../peers/peer-requests.ts';
import { requireRole, type Authenticator, type CredentialPlace } from './auth.ts';
import { mayExport, type Caller } from './caller.ts';
import { credentialOf } from './credentials.ts';
import { installHostCheck } from './host.ts';
import { ApiError, pathOf, unknownCamera } from './problem.ts';
import { routeConfigOf } from './route-config.ts';

/**
 * Which cameras a route with a role concerns, for callers whose token is for some cameras only:
 *
 * - `none`: the answer has nothing about cameras, and nothing is done to them.
 * - `param` or `body`: the camera whose id is in this path parameter or field of the body. If it is out of scope, the caller
 *   gets `unknownCamera()` once the request has been validated: for an unknown camera the handler must throw the same, before
 *   anything else.
 * - `filtered`: the handler asks `callerOf(request).sees(cameraId)` for each camera in its answer.
 */
type CameraScope = 'none' | 'filtered' | { readonly param: string } | { readonly body: string };

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may call the route; without it, anyone. */
    role?: Role;
    /** A right that the role does not include. */
    right?: 'export';
    credentials?: CredentialPlace;
    /** Without it, a route with a role concerns the node as a whole: a token that is for some cameras only gets 403. */
    cameras?: CameraScope;
    /** The answer lasts for long and is mostly idle: it does not keep the event loop awake (see `installKeepAwake`). */
    isStanding?: boolean;
  }
  interface FastifyRequest {
    /** With its present rights, where the answer may last. Undefined where the route has no role. */
    caller: Caller | undefined;
  }
}

/** A stranger's body is parsed before anything is known of the stranger. The largest is the certificate request of a server. */
const STRANGER_BODY_BYTES = 4 * 1024;

/** The caller of a route that has a role. */
export function callerOf({ caller }: FastifyRequest): Caller {
  assert(caller, 'the route has a role');
  return caller;
}

/** The caller, for requests to other nodes. */
export const askerOf = (request: FastifyRequest): Asker => ({
  name: callerOf(request).name,
  credential: credentialOf(request),
});

/** The id if the camera is in the caller's scope, else one that no camera has: for routes that answer for unknown cameras. */
export const visibleCamera = (request: FastifyRequest, cameraId: string): string =>
  callerOf(request).sees(cameraId) ? cameraId : '';

/** Enforces the role and the cameras in the `config` of every route of `app`. */
export function installAccess(app: FastifyInstance, auth: Authenticator): void {
  app.decorateRequest('caller', undefined);
  app.addHook('onRoute', (route) => {
    if (route.config?.role === undefined) route.bodyLimit ??= STRANGER_BODY_BYTES;
  });
  auth.work?.watch(app);
  if (auth.hosts) installHostCheck(app, auth.hosts);
  app.addHook('onRequest', (request, reply, done) => {
    const { role, credentials = 'header' } = routeConfigOf(request);
    if (role === undefined) {
      auth.work?.require(request);
      return done();
    }
    const found = auth.identify(request, credentials);
    // Most callers are known at once; their requests continue in the same turn of the event loop.
    if (found instanceof Promise) return found.then((caller) => admit(request, reply, caller, role));
    admit(request, reply, found, role);
    return done();
  });
  function admit(request: FastifyRequest, reply: FastifyReply, caller: Caller, role: Role): void {
    const { credentials, cameras, right } = routeConfigOf(request);
    // Set even if the role is too low: the audit names the caller.
    request.caller = caller;
    auth.work?.require(request);
    app.connections.identify(request.raw.socket, auth.isOpen ? undefined : caller);
    const cookie = auth.prolonged(request, caller);
    if (cookie !== undefined) reply.header('set-cookie', cookie);
    requireRole(caller, role);
    if (right === 'export' && !mayExport(caller)) {
      throw new ApiError(403, 'forbidden', `this needs the right to export, which ${caller.name} does not have`);
    }
    if (!caller.seesAll && cameras === undefined) {
      throw new ApiError(403, 'forbidden', 'this concerns the whole node, and the token is for some cameras only');
    }
    // Media may be sent for hours; the connection is closed when the token is revoked.
    if (credentials === 'header-or-query' || credentials === 'anywhere') {
      const letGo = auth.lease(caller, {
        changed: (renewed) => (request.caller = renewed),
        ended: () => reply.raw.destroy(),
      });
      reply.raw.once('close', letGo);
    }
  }
  app.addHook('onSend', (request, reply, payload, done) => {
    const location = reply.getHeader('location');
    if (typeof location === 'string') reply.header('location', auth.followed(request.caller, location));
    done(null, payload);
  });
  app.addHook('preHandler', (request, _reply, done) => {
    const { role, cameras } = routeConfigOf(request);
    if (role === undefined || typeof cameras !== 'object') return done();
    const [values, field] = 'param' in cameras ? [request.params, cameras.param] : [request.body, cameras.body];
    const cameraId = (values as Readonly<Record<string, unknown>>)[field];
    assert(typeof cameraId === 'string', 'the schema of the route names the camera');
    if (!callerOf(request).sees(cameraId)) throw unknownCamera();
    return done();
  });
}

/** Keeps the event loop running without pauses while a request is answered. `keepAwake` returns a function that ends that. */
export function installKeepAwake(app: FastifyInstance, keepAwake: () => () => void): void {
  app.addHook('onRequest', (request, reply, done) => {
    // The request of a viewer lasts as long as its live stream, whose pictures do not need this.
    const { isStanding } = routeConfigOf(request);
    if (request.headers.upgrade === undefined && !isStanding) reply.raw.once('close', keepAwake());
    done();
  });
}

/** One line per request, without its query, which may contain a token or a link. */
export function logAnswers(app: FastifyInstance, log: Log): void {
  app.addHook('onResponse', (request, reply, done) => {
    log.debug(
      {
        method: request.method,
        path: pathOf(request.url),
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime),
        requestId: request.id,
        ...(request.caller ? { caller: request.caller.name } : {}),
      },
      'a request was answered',
    );
    done();
  });
}
