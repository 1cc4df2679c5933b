// Events of cameras that other systems told: a page of those of this node, or of all nodes, each once.

import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { UnlistedNodes } from '../footage/elsewhere-item.ts';
import { byStart, Happening, HappeningError, identityOf } from '../happenings/happening.ts';
import type { HappeningQuery } from '../happenings/happenings.ts';
import { callerOf } from '../http/access.ts';
import { ApiError } from '../http/problem.ts';
import type { ApiDeps } from './deps.ts';
import { askOthers } from './pass-on.ts';
import { Next } from './pages.ts';

export const HappeningList = z
  .object({ events: z.array(Happening).describe('Newest first.'), ...UnlistedNodes.shape, next: Next })
  .meta({ id: 'CameraEventList', description: 'Events of cameras that other systems reported.' });

interface Asked extends Omit<HappeningQuery, 'limit'> {
  readonly limit: number;
  readonly isOfAllNodes: boolean;
  /** The query, as other nodes get it. */
  readonly query: string;
}

/** At most `limit` events; `isMore`: there are more. Only of cameras that the caller may see. Throws ApiError. */
export async function happeningsFor(
  request: FastifyRequest,
  deps: ApiDeps,
  { isOfAllNodes, query, limit, ...asked }: Asked,
): Promise<{ events: Happening[]; isMore: boolean; unlisted: z.output<typeof UnlistedNodes> }> {
  const { sees } = callerOf(request);
  const cameraIds = asked.cameraIds.filter(sees);
  const own = await deps.happenings.find({ ...asked, cameraIds, limit: limit + 1 }).catch((err: unknown) => {
    throw new ApiError(500, 'archive-unreadable', 'the events of cameras cannot be read', { cause: err });
  });
  const path = `/api/events/search?scope=node&limit=${limit}&${query}`;
  const { answers, unlisted } = isOfAllNodes
    ? await askOthers(request, deps, path, HappeningList)
    : { answers: [], unlisted: {} };
  // A source may have told it to several nodes.
  const all = new Map<string, Happening>();
  for (const event of [...answers.flatMap(({ events }) => events), ...own]) {
    if (!cameraIds.includes(event.camera_id)) continue;
    all.set(`${event.camera_id} ${identityOf(event)}`, event);
  }
  const events = [...all.values()].sort(byStart);
  const isMore = events.length > limit || answers.some(({ next }) => typeof next === 'string');
  return { events: events.slice(0, limit), isMore, unlisted };
}

/** What was added to the events of a camera. Throws ApiError. */
export const kept = <T>(added: Promise<T>): Promise<T> =>
  added.catch((err: unknown) => {
    if (!(err instanceof HappeningError)) throw err;
    if (err.code === 'too-many') throw new ApiError(429, 'too-many-events', err.message, { isExpected: true });
    const headers = { 'retry-after': '5' };
    throw new ApiError(503, 'events-not-kept', err.message, { cause: err, headers, isExpected: true });
  });
