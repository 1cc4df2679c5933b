// The footage that a request is for: of all nodes, or of this one alone.

import type { FastifyRequest } from 'fastify';
import type { Clock } from '../../base/clock.ts';
import type { Interval } from '../../base/interval.ts';
import { ArchiveError } from '../archive/disk/faults.ts';
import { askerOf } from '../http/access.ts';
import { ApiError } from '../http/problem.ts';
import { isRelayed } from '../http/relayed.ts';
import { elsewhereHeaders } from '../http/elsewhere-header.ts';
import type { Elsewhere } from '../footage/holders.ts';
import type { Asker } from '../peers/peer-requests.ts';
import type { Collected, Collector } from '../footage/collect.ts';
import type { PlaybackCluster } from './deps.ts';

export interface WholeDeps {
  readonly footage: Collector;
  readonly cluster?: PlaybackCluster | undefined;
  readonly clock: Clock;
}

/** `local`: the caller wants only the footage of this node. */
export const wholeFootage = (
  request: FastifyRequest,
  { footage }: Pick<WholeDeps, 'footage'>,
  { cameraId, interval, local }: { readonly cameraId: string; readonly interval: Interval; readonly local: boolean },
): Promise<Collected> =>
  // Out of scope: nobody else is asked about it.
  collected(footage, cameraId, interval, local || cameraId === '' ? undefined : askerOf(request));

/** Without `by`: the footage of this node. Rejects with ApiError. */
export const collected = (
  footage: Collector,
  cameraId: string,
  interval: Interval,
  by: Asker | undefined,
): Promise<Collected> =>
  listed(
    by
      ? footage.collect(cameraId, interval, by)
      : footage.own.in(cameraId, interval).then((own) => ({ footage: own, elsewhere: [] })),
  );

/** Turns the error of an archive that cannot be read into an answer. */
export async function listed<T>(list: Promise<T>): Promise<T> {
  try {
    return await list;
  } catch (err) {
    if (err instanceof ArchiveError) throw new ApiError(500, 'archive-unreadable', err.message, { cause: err });
    throw err;
  }
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
export function placeOf(request: FastifyRequest, nodeId: string, cluster: PlaybackCluster | undefined): string {
  const isPassedOn = isRelayed(request.raw);
  if (!cluster || (isPassedOn && nodeId === cluster.nodeId)) return '../..';
  return `${isPassedOn ? '../../../..' : '../..'}/node/${nodeId}`;
}
