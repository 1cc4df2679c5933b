// Footage that is not on this node's disk: camera, time and the other nodes in, the address at the one that should have it
// out. Several may hold footage of a camera, and what they tell is coarse: each sends on to one that was not asked before.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { callerOf } from '../http/access.ts';
import type { PlaybackCluster, RecordingHolder } from './deps.ts';

/** In the query of a redirected request, once for each node that does not have it. */
const ASKED = 'asked';
/** Nodes tell how far their footage reaches every five minutes, and when something else has changed. */
const COARSE_MS = 600_000;

/** Milliseconds since 1970. */
export interface Sought {
  readonly cameraId: string;
  readonly fromMs: number;
  readonly toMs: number;
  /** It was listed somewhere: who has it may have told nothing for long. */
  readonly exists?: true;
}

/** Sends the caller on to another node, if there is one that he may be sent to. */
export function sentElsewhere(
  request: FastifyRequest,
  reply: FastifyReply,
  sought: Sought,
  cluster: PlaybackCluster | undefined,
): FastifyReply | undefined {
  if (!cluster || !callerOf(request).sees(sought.cameraId)) return undefined;
  const location = elsewhere(request.url, sought, cluster);
  return location === undefined ? undefined : reply.header('cache-control', 'no-store').redirect(location, 307);
}

/** `url`: of the request, with its query, which is kept. Undefined when nobody else is left to ask. */
export function elsewhere(url: string, sought: Sought, cluster: PlaybackCluster): string | undefined {
  const request = new URL(url, 'http://node');
  const asked = new Set(request.searchParams.getAll(ASKED));
  const [holder] = cluster
    .holdersOf(sought.cameraId)
    .filter(({ nodeId, playbackUrl }) => playbackUrl !== undefined && !asked.has(nodeId))
    .map((holder) => ({ ...holder, offMs: distance(holder, sought) }))
    .filter(({ offMs }) => sought.exists || offMs <= COARSE_MS)
    .sort((a, b) => a.offMs - b.offMs);
  if (!holder) return undefined;
  request.searchParams.append(ASKED, cluster.nodeId);
  return `${holder.playbackUrl}${request.pathname}${request.search}`;
}

/** From the footage of a node to what is sought; 0 where they overlap, or where it has not said how far it reaches. */
const distance = ({ oldestMs = -Infinity, newestMs = Infinity }: RecordingHolder, { fromMs, toMs }: Sought): number =>
  Math.max(0, oldestMs - toMs, fromMs - newestMs);
