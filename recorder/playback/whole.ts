// The footage that a request is for: of all nodes, or of this one alone.

import type { FastifyRequest } from 'fastify';
import type { Clock } from '../../base/clock.ts';
import type { Interval } from '../../base/interval.ts';
import { askerOf } from '../http/access.ts';
import { ApiError } from '../http/problem.ts';
import { isRelayed } from '../http/relayed.ts';
import { elsewhereHeaders } from '../http/elsewhere-header.ts';
import type { Elsewhere } from '../peers/peer.ts';
import type { Collected, Collector } from './collected.ts';
import type { PlaybackArchive, PlaybackCluster } from './deps.ts';
import { footageOf } from './footage.ts';
import type { PartsCache } from './parts-cache.ts';

export interface WholeDeps {
  readonly archive: PlaybackArchive;
  readonly parts: PartsCache;
  readonly cluster?: PlaybackCluster | undefined;
  /** Without it, the node belongs to no cluster. */
  readonly collector?: Collector | undefined;
  readonly clock: Clock;
}

/** `local`: the caller wants only the footage of this node. */
export async function wholeFootage(
  request: FastifyRequest,
  deps: WholeDeps,
  { cameraId, interval, local }: { readonly cameraId: string; readonly interval: Interval; readonly local: boolean },
): Promise<Collected> {
  const own = await footageOf(deps, cameraId, interval);
  // Out of scope: no node is asked about it.
  if (local || cameraId === '' || !deps.collector) return { footage: own, elsewhere: [] };
  return deps.collector.collect(cameraId, interval, own, askerOf(request));
}

const noAnswerOf = ({ nodeId, refused }: Elsewhere): string =>
  refused ? `${nodeId} answers with status ${refused.status}, ${refused.problem}` : `${nodeId} does not answer`;

/** When no footage of the interval can be played here. */
export const nothingToPlay = (elsewhere: readonly Elsewhere[]): ApiError =>
  elsewhere.length === 0
    ? new ApiError(404, 'no-footage', 'nothing is recorded in this interval')
    : new ApiError(
        503,
        'node-away',
        `other nodes may have footage of this interval: ${elsewhere.map(noAnswerOf).join(', ')}`,
        { headers: { 'retry-after': '5', ...elsewhereHeaders(elsewhere) }, isExpected: true },
      );

/**
 * Put before the addresses of a node in a playlist: relative to the playlist, which may be under the prefix of the API, and which
 * another node may have passed on. In a cluster it names this node, too: at the address of a Service, the next request may reach
 * another one.
 */
export function placeOf(
  request: FastifyRequest,
  nodeId: string | undefined,
  cluster: PlaybackCluster | undefined,
): string {
  const isPassedOn = isRelayed(request.raw);
  const holder = nodeId ?? cluster?.nodeId;
  if (holder === undefined || (isPassedOn && holder === cluster?.nodeId)) return '../..';
  return `${isPassedOn ? '../../../..' : '../..'}/node/${holder}`;
}
