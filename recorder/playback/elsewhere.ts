// Redirects requests for footage that is not on this node's disk to the node that most likely has it. Several nodes may hold
// footage of a camera, and their reports are coarse: each node redirects to one that was not asked before.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { callerOf } from '../http/access.ts';
import { ApiError } from '../http/problem.ts';
import type { PeerSender } from '../peers/peer-requests.ts';
import type { PlaybackCluster, RecordingHolder } from './deps.ts';

/** Query parameter of a redirected request, once for each node that does not have the footage. */
const ASKED = 'asked';

/** Milliseconds since 1970. */
export interface Sought {
  readonly cameraId: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * Redirects the caller to another node that answers; undefined if there is none, or the caller may not see the camera. Rejects
 * with ApiError when none of those that may have it answers.
 */
export async function sentElsewhere(
  request: FastifyRequest,
  reply: FastifyReply,
  sought: Sought,
  { cluster, peers }: { cluster?: PlaybackCluster | undefined; peers?: Pick<PeerSender, 'answers'> | undefined },
): Promise<FastifyReply | undefined> {
  if (!cluster || !callerOf(request).sees(sought.cameraId)) return undefined;
  await cluster.lookAtNodes();
  // The other node's playback listener has no prefix, as the API's has.
  const places = elsewhere(request.url.slice(request.server.prefix.length), sought, cluster);
  for (const { nodeId, location } of places) {
    if (peers && !(await peers.answers(nodeId))) continue;
    return reply.header('cache-control', 'no-store').redirect(location, 307);
  }
  if (places.length === 0) return undefined;
  const away = places.map(({ nodeId }) => nodeId).join(', ');
  const headers = { 'retry-after': '5' };
  throw new ApiError(503, 'node-away', `nodes that may have it do not answer: ${away}`, { headers, isExpected: true });
}

/** The addresses on other nodes, the likeliest first. `url`: of the request; its query is kept. */
export function elsewhere(
  url: string,
  sought: Sought,
  cluster: PlaybackCluster,
): { readonly nodeId: string; readonly location: string }[] {
  const request = new URL(url, 'http://node');
  const asked = new Set(request.searchParams.getAll(ASKED));
  const holders = cluster
    .holdersOf(sought.cameraId)
    .filter(({ nodeId, playbackUrl }) => playbackUrl !== undefined && !asked.has(nodeId))
    .map((holder) => ({ ...holder, offMs: distance(holder, sought) }))
    .sort((a, b) => a.offMs - b.offMs);
  request.searchParams.append(ASKED, cluster.nodeId);
  return holders.map(({ nodeId, playbackUrl }) => ({
    nodeId,
    location: `${playbackUrl}${request.pathname}${request.search}`,
  }));
}

/** Time between the footage of a node and the sought interval; 0 if they overlap, or if the node has not reported its extent. */
const distance = ({ oldestMs = -Infinity, newestMs = Infinity }: RecordingHolder, { fromMs, toMs }: Sought): number =>
  Math.max(0, oldestMs - toMs, fromMs - newestMs);
