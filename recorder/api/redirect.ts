// Redirects requests for a camera that another node records: 307 to that node, with the same query. The client repeats the
// request there with its own credentials. Two nodes with different views of the cluster must not redirect a client to each
// other, and none to a node that does not answer: a redirect carries the epoch that its sender knows, and only a node that knows a higher epoch redirects again.

import type { FastifyInstance, FastifyRequest } from 'fastify';
import { cameraOfFootage } from '../../base/camera-id.ts';
import type { Authenticator } from '../http/auth.ts';
import { ApiError } from '../http/problem.ts';
import type { PeerSender } from '../peers/peer-requests.ts';
import type { ClusterAccess } from './cluster-access.ts';
import type { CameraDirectory } from '../model/camera-view.ts';
import { routeConfigOf } from '../http/route-config.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The request goes to the node that records the camera whose id is in this part of it. */
    follows?: { readonly param: string } | { readonly query: string } | { readonly body: string };
    /** While that node does not answer, this one says what it and the others know. */
    isAnsweredByAll?: boolean;
  }
}

/** Query parameter of a redirected request: the epoch that the sender of the redirect knows. */
const SEEN_EPOCH = 'assigned';
/** Query parameter of a request for the footage of this node, whichever node records the camera now. */
const LOCAL = 'local';

interface Deps {
  readonly cluster: ClusterAccess;
  readonly cameras: CameraDirectory;
  readonly auth: Authenticator;
  /** Without it, nodes are taken to answer. */
  readonly peers?: Pick<PeerSender, 'answers'> | undefined;
}

/** Install it after the access hooks: a caller that may not see a camera does not learn where it is. */
export function installRedirects(app: FastifyInstance, deps: Deps): void {
  app.addHook('preHandler', async (request, reply) => {
    const location = await locationOf(request, deps);
    if (location === undefined) return undefined;
    return reply.code(307).headers({ location, 'cache-control': 'no-store' }).send();
  });
}

/** Undefined for a request that this node answers. */
async function locationOf(
  request: FastifyRequest,
  { cluster, cameras, auth, peers }: Deps,
): Promise<string | undefined> {
  const cameraId = cameraIdOf(request);
  if (cameraId === undefined || cameras.streams(cameraId)) return undefined;
  // The route of live streams authenticates its callers itself, later.
  const caller = request.caller ?? (await auth.callerOf(request, 'header-or-query'));
  if (!caller?.sees(cameraId)) return undefined;
  const asked = new URL(request.url, 'http://node');
  if (asked.searchParams.get(LOCAL) === '1') return undefined;
  await cluster.lookAtNodes();
  const owner = cluster.ownerOf(cameraId);
  if (owner?.url === undefined) return undefined;
  const seen = Number(asked.searchParams.get(SEEN_EPOCH) ?? 0);
  if (!(owner.epoch > seen)) return undefined;
  // A client would wait for a node that is gone until its own time limit.
  if (peers && !(await peers.answers(owner.nodeId))) {
    if (routeConfigOf(request).isAnsweredByAll) return undefined;
    const detail = `the node ${owner.nodeId}, which records this camera, does not answer`;
    throw new ApiError(503, 'node-away', detail, { headers: { 'retry-after': '5' }, isExpected: true });
  }
  asked.searchParams.set(SEEN_EPOCH, String(owner.epoch));
  return `${owner.url}${asked.pathname}${asked.search}`;
}

function cameraIdOf(request: FastifyRequest): string | undefined {
  const { follows } = routeConfigOf(request);
  if (!follows) return undefined;
  const [values, field] =
    'param' in follows
      ? [request.params, follows.param]
      : 'query' in follows
        ? [request.query, follows.query]
        : [request.body, follows.body];
  const cameraId = (values as Readonly<Record<string, unknown>> | undefined)?.[field];
  // The node that records a camera records its preview.
  return typeof cameraId === 'string' ? cameraOfFootage(cameraId) : undefined;
}
