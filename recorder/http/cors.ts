// Allows pages of other origins only if the configuration names them (Fetch Standard §3.2).

import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ApiError } from './problem.ts';

/** RFC 9110 §9.2.1 */
export const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Origins as browsers write them, `https://nvr.example:8443`; `*` for all. */
export type Origins = readonly string[];

interface CorsOptions {
  readonly origins: Origins;
  /** In a cluster: origins of the pages of its nodes, each of which shows the cameras of all. */
  readonly memberOrigins?: (() => Origins) | undefined;
  /** The routes that answer preflights. */
  readonly path: string;
  readonly methods: string;
  /** Headers of requests and answers beyond the CORS-safelisted ones. */
  readonly requestHeaders: string;
  readonly exposedHeaders?: string;
  /** Whether pages of the same host are allowed on any port: the recorder's own page plays from the playback listener. */
  readonly sameHost: boolean;
}

/**
 * Browsers leave out cookies and stored logins, so an allowed page has only the rights of its token. Some requests that
 * change something need no preflight: they are refused for pages of other origins.
 */
export function installCors(app: FastifyInstance, options: CorsOptions): void {
  const { origins, memberOrigins, path, methods, requestHeaders, exposedHeaders, sameHost } = options;
  const isAllowed = (origin: string, request: FastifyRequest): boolean =>
    isNamed(origins, origin) || (sameHost && isSameHost(origin, request)) || isMember(memberOrigins, origin);

  app.addHook('onRequest', (request, reply, done) => {
    reply.header('vary', 'origin');
    const { origin } = request.headers;
    if (origin === undefined) return done();
    if (isAllowed(origin, request)) {
      reply.header('access-control-allow-origin', origin);
      if (exposedHeaders !== undefined) reply.header('access-control-expose-headers', exposedHeaders);
    } else if (!SAFE.has(request.method) && !isOwnPage(request)) {
      throw new ApiError(
        403,
        'foreign-origin',
        'pages of this origin may not change anything: to allow it, add it to cors.origins',
      );
    }
    return done();
  });
  if (origins.length === 0 && !sameHost && !memberOrigins) return;
  app.options(path, { schema: { hide: true } }, async (_request, reply) =>
    reply
      .code(204)
      .header('access-control-allow-methods', methods)
      .header('access-control-allow-headers', requestHeaders)
      .header('access-control-max-age', '600')
      .send(),
  );
}

export const isNamed = (origins: Origins, origin: string): boolean =>
  origins.includes(origin) || (origins.includes('*') && origin !== 'null');

/** Whether the request comes from the page of a node of the same cluster. */
export const isMember = (memberOrigins: (() => Origins) | undefined, origin: string): boolean =>
  memberOrigins?.().includes(origin) ?? false;

/** Whether the request comes from the recorder's own page, or from a program. A page cannot set X-Forwarded-Host. */
export function isOwnPage({ headers }: FastifyRequest): boolean {
  const { origin, host } = headers;
  if (origin === undefined) return true;
  if (!URL.canParse(origin)) return false;
  const from = new URL(origin).host;
  return from === host || from === headers['x-forwarded-host'];
}

/**
 * Browsers send cookies with requests of every page of the same site, which may be another program on this machine. With a
 * cookie, only the recorder's own page may change something or open a WebSocket; throws 403.
 */
export function requireOwnPage(request: FastifyRequest): void {
  const { origin, upgrade, 'sec-fetch-site': from } = request.headers;
  if (SAFE.has(request.method) && upgrade === undefined) return;
  // Pages cannot set these headers. Over plain HTTP, browsers send Origin only.
  if (from === 'same-origin' || (from === undefined && origin !== undefined && isOwnPage(request))) return;
  throw new ApiError(403, 'foreign-origin', "with a session, only the recorder's own page may change anything");
}

function isSameHost(origin: string, request: FastifyRequest): boolean {
  return URL.canParse(origin) && new URL(origin).hostname === request.hostname;
}
