// Redirects requests for a camera that another node records: 307 to that node, with the same query. The client repeats the
// request there with its own credentials. Two nodes with different views of the cluster must not redirect a client to each
// other: a redirect carries the epoch that its sender knows, and only a node that knows a higher epoch redirects again.

import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Authenticator } from '../http/auth.ts';
import type { ClusterAccess } from './cluster-access.ts';
import type { CameraDirectory } from '../model/camera-view.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The request goes to the node that records the camera whose id is in this part of it. */
    follows?: { readonly param: string } | { readonly query: string } | { readonly body: string };
  }
}

/** Query parameter of a redirected request: the epoch that the sender of the redirect knows. */
const SEEN_EPOCH = 'assigned';
/** Query parameter of a request for the footage of this node, whichever node records the camera now. */
const LOCAL = 'local';

type Deps = { readonly cluster: ClusterAccess; readonly cameras: CameraDirectory; readonly auth: Authenticator };

/** Install it after the access hooks: a caller that may not see a camera does not learn where it is. */
export function installRedirects(app: FastifyInstance, deps: Deps): void {
  app.addHook('preHandler', async (request, reply) => {
    const location = await locationOf(request, deps);
    if (location === undefined) return undefined;
    return reply.code(307).headers({ location, 'cache-control': 'no-store' }).send();
  });
}

/** Undefined for a request that this node answers. */
async function locationOf(request: FastifyRequest, { cluster, cameras, auth }: Deps): Promise<string | undefined> {
  const cameraId = cameraIdOf(request);
  if (cameraId === undefined || cameras.get(cameraId)) return undefined;
  // The route of live streams authenticates its callers itself, later.
  const caller = request.caller ?? (await auth.callerOf(request, 'header-or-query'));
  if (!caller?.sees(cameraId)) return undefined;
  const asked = new URL(request.url, 'http://node');
  if (asked.searchParams.get(LOCAL) === '1') return undefined;
  const owner = cluster.ownerOf(cameraId);
  if (owner?.url === undefined) return undefined;
  const seen = Number(asked.searchParams.get(SEEN_EPOCH) ?? 0);
  if (!(owner.epoch > seen)) return undefined;
  asked.searchParams.set(SEEN_EPOCH, String(owner.epoch));
  return `${owner.url}${asked.pathname}${asked.search}`;
}

function cameraIdOf(request: FastifyRequest): string | undefined {
  const { follows } = request.routeOptions.config;
  if (!follows) return undefined;
  const [values, field] =
    'param' in follows
      ? [request.params, follows.param]
      : 'query' in follows
        ? [request.query, follows.query]
        : [request.body, follows.body];
  const cameraId = (values as Readonly<Record<string, unknown>> | undefined)?.[field];
  return typeof cameraId === 'string' ? cameraId : undefined;
}
