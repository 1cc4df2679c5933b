// What every listener does with a request before and after its route: asks for a token where the route has a role, and
// leaves a line in the log.

import type { FastifyInstance } from 'fastify';
import type { Log } from '../../base/log.ts';
import type { Role } from '../config/schema.ts';
import type { Authenticator, CredentialPlace } from './auth.ts';
import { pathOf } from './problem.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may call the route; without it, anyone. */
    role?: Role;
    credentials?: CredentialPlace;
  }
}

/** Holds every route of `app` to the role in its `config`. */
export function installAccess(app: FastifyInstance, auth: Authenticator): void {
  app.addHook('onRequest', async (request, reply) => {
    const { role, credentials = 'header' } = request.routeOptions.config;
    if (role === undefined) return;
    // Only Bearer: for Basic browsers would open a dialogue of their own over the page's.
    reply.header('www-authenticate', 'Bearer realm="recorder"');
    auth.require(request, role, credentials);
    reply.removeHeader('www-authenticate');
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
      },
      'request answered',
    );
  });
}
