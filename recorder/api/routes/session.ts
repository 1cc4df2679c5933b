// `/api/session`: sign in and out, and who is signed in. The cookie of a session authenticates every route.

import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { MAX_PASSWORD_LENGTH } from '../../../base/password-hash.ts';
import { UserName } from '../../config/schema.ts';
import { callerOf } from '../../http/access.ts';
import { tell } from '../../http/audit.ts';
import { lookingRole, mayExport, type Caller } from '../../http/caller.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import { isRelayed, relayedBy } from '../../http/relayed.ts';
import type { ApiRoutes } from '../deps.ts';
import { asItself } from '../pass-on.ts';
import { Session } from '../session-item.ts';
import { TIME } from '../examples.ts';
import { isoTime, timeOrNull } from '../times.ts';

/** How long a person who signs out waits for other nodes. */
const ELSEWHERE_MS = 2_000;

const SIGN_IN = 'expected name and password, or a token';
const Credentials = z.union(
  [
    z.strictObject({
      name: z.string().min(1).max(100),
      password: z.string().min(1).max(MAX_PASSWORD_LENGTH),
    }),
    z.strictObject({
      name: z.string().min(1).max(100).describe('Name of the admin to be created.'),
      password: z.string().min(1).max(MAX_PASSWORD_LENGTH),
      code: z.string().min(1).max(100).describe('The code of the link that the recorder prints. It can be used once.'),
    }),
    z.strictObject({ token: z.string().min(1).max(4096).describe('A token, as programs send it.') }),
  ],
  SIGN_IN,
);

const SESSION = {
  name: 'anna',
  role: 'operator',
  may_export: true,
  cameras: null,
  expires_at: TIME,
  expires_ms: Date.parse(TIME),
  time_zone: 'Europe/Berlin',
  server_time: TIME,
  server_time_ms: Date.parse(TIME),
  node: 'rack-1',
  version: '1.0.0',
  site: 'Plant 7',
  features: { export: true, timelapse: true, thumbnails: true, ptz: true, discover: true, cluster: false },
};

const EXAMPLES = { 200: SESSION };

/** Throws ApiError for a name that the configuration could not have. */
export function requireName(name: string): void {
  const { error } = UserName.safeParse(name);
  if (error) throw new ApiError(400, 'invalid-parameter', `name: ${error.issues[0]?.message}`);
}

export const sessionRoutes: ApiRoutes = async (app, { deps }) => {
  const { nodeName, version, clock, site, jobs, cluster, peers, auth } = deps;

  async function describe(caller: Caller): Promise<z.output<typeof Session>> {
    const nowMs = clock.wallMs();
    const hasFfmpeg = await jobs.ffmpegIsThere();
    const expiresMs = caller.session?.expiresMs;
    return {
      name: caller.name,
      role: lookingRole(caller),
      may_export: mayExport(caller),
      cameras: caller.seesAll ? null : [...(caller.patterns ?? caller.cameras ?? [])],
      expires_at: timeOrNull(expiresMs),
      expires_ms: expiresMs ?? null,
      time_zone: site.timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
      server_time: isoTime(nowMs),
      server_time_ms: nowMs,
      node: nodeName,
      version,
      site: site.name,
      features: {
        export: hasFfmpeg,
        timelapse: hasFfmpeg,
        thumbnails: hasFfmpeg,
        ptz: true,
        discover: true,
        cluster: cluster !== undefined,
      },
    };
  }

  /** Other nodes learn only by a request that a session has ended. Nodes that do not answer now are not waited for. */
  async function signOutElsewhere(from: FastifyRequest, caller: Caller): Promise<void> {
    const others = new Set(cluster?.places().map(({ nodeId }) => nodeId));
    others.delete(cluster?.nodeId ?? '');
    const request = {
      ...asItself(from, auth, caller),
      listener: 'api',
      path: '/api/session',
      method: 'DELETE',
      headMs: ELSEWHERE_MS,
    } as const;
    await Promise.allSettled([...others].map(async (nodeId) => (await peers?.request(nodeId, request))?.body.resume()));
  }

  app.post(
    '/api/session',
    {
      config: { audit: 'sign-in', examples: { body: { name: 'anna', password: 'correct horse' }, ...EXAMPLES } },
      schema: {
        operationId: 'signIn',
        summary: 'Sign in with name and password, or with a token; make the first admin',
        description:
          'The answer sets a cookie, which authenticates every route for twelve hours after its last use, at most 30 days. With the cookie, requests that change something must come from a page of the same origin. With the code of the link that a recorder without users prints, it creates an admin with this name and password.',
        tags: ['session'],
        body: Credentials,
        response: {
          200: Session,
          400: problemResponse(
            'The body is wrong, or an admin of this name or password cannot be made; the detail says why.',
          ),
          401: problemResponse('Wrong name or password, a wrong token, or a code that is not valid any more.'),
          429: problemResponse('Too many wrong attempts from this address; Retry-After has the time to wait.'),
          503: problemResponse('The token cannot be checked: the API server of Kubernetes does not answer.'),
        },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const isNew = 'code' in body;
      if (relayedBy(request.raw)) throw new ApiError(404, 'not-found', 'sign in at the node that your browser asks');
      if (isNew) {
        tell(request, { what: 'add-user', user: body.name });
        requireName(body.name);
      }
      const { caller, cookies } = isNew ? await auth.makeAdmin(request, body) : await auth.signIn(request, body);
      if (cookies) reply.header('set-cookie', cookies);
      identified(request, caller);
      return describe(caller);
    },
  );

  /** For log, audit and limits of connections. */
  function identified(request: FastifyRequest, caller: Caller): void {
    request.caller = caller;
    app.connections.identify(request.raw.socket, auth.isOpen ? undefined : caller);
  }

  app.get(
    '/api/session',
    {
      config: { role: 'viewer', cameras: 'none', changesAlways: true, examples: EXAMPLES },
      schema: {
        operationId: 'getSession',
        summary: 'Who the caller is, and what the node offers',
        tags: ['session'],
        response: { 200: Session, 401: problemResponse('Not signed in, and no token or a wrong one.') },
      },
    },
    async (request) => describe(callerOf(request)),
  );

  app.delete(
    '/api/session',
    {
      config: { audit: 'sign-out' },
      schema: {
        operationId: 'signOut',
        summary: 'Sign out',
        description:
          'The cookie is removed, and this node does not accept it any more; nor do the other nodes of a cluster that answer.',
        tags: ['session'],
        response: { 204: z.null().describe('Signed out, or not signed in.') },
      },
    },
    async (request, reply) => {
      // For the audit. A caller that is not signed in may sign out, too.
      request.caller = await auth.callerOf(request, 'header');
      const setCookie = auth.signOut(request);
      if (request.caller?.session && !isRelayed(request.raw)) await signOutElsewhere(request, request.caller);
      return reply.code(204).header('set-cookie', setCookie).send(null);
    },
  );
};
