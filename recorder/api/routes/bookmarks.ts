// `/api/cameras/{id}/bookmarks`: moments and spans that people name. A bookmark is an event of a person, and is found as all events are.

import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { MINUTE_MS } from '../../../base/units.ts';
import { Happening, OF_PERSON } from '../../happenings/happening.ts';
import { callerOf } from '../../http/access.ts';
import { tell } from '../../http/audit.ts';
import { ApiError, problemResponse, unknownCamera } from '../../http/problem.ts';
import { EpochNumber } from '../../http/query.ts';
import { isKnownCamera, type ApiRoutes } from '../deps.ts';
import { FROM } from '../examples.ts';
import { kept } from '../happening-list.ts';

const TYPE = 'bookmark';
const MAX_NAME = 200;
const MAX_NOTE = 2_000;
/** Clocks differ. */
const MAX_EARLY_MS = 5 * MINUTE_MS;

const Body = z.object({
  name: z
    .string('expected a text')
    .trim()
    .min(1, 'expected a text')
    .max(MAX_NAME, `expected at most ${MAX_NAME} characters`),
  note: z.string('expected a text').max(MAX_NOTE, `expected at most ${MAX_NOTE} characters`).optional(),
  from: EpochNumber.describe('The moment, or the start of the span, seconds since 1970.'),
  to: EpochNumber.optional().describe('The end of the span. Default: a moment.'),
});

const EXAMPLE = {
  camera_id: 'gate',
  id: `${FROM * 1000}-5b1f0c9e`,
  source: OF_PERSON,
  type: TYPE,
  start_ms: FROM * 1000,
  end_ms: (FROM + 20) * 1000,
  reported_by: 'anna',
  received_ms: (FROM + 600) * 1000,
  data: { name: 'White van', note: 'the second time this night' },
};

const problems = {
  403: problemResponse('This needs the role operator.'),
  503: problemResponse('The disk does not take the change: nothing has changed.'),
};

export const bookmarkRoutes: ApiRoutes = async (app, { deps }) => {
  const { happenings, clock } = deps;
  const mustKnow = async (cameraId: string): Promise<void> => {
    if (!(await isKnownCamera(deps, cameraId, true))) throw unknownCamera();
  };

  app.post(
    '/api/cameras/:id/bookmarks',
    {
      config: {
        role: 'operator',
        cameras: { param: 'id' },
        audit: 'bookmark',
        examples: {
          body: { name: EXAMPLE.data.name, note: EXAMPLE.data.note, from: FROM, to: FROM + 20 },
          201: EXAMPLE,
        },
      },
      schema: {
        operationId: 'makeBookmark',
        summary: 'Name a moment or a span of a camera',
        description:
          'An event of the type bookmark and the source person, with the caller as reported_by. It stays until somebody removes it. It does not protect footage from removal.',
        tags: ['events'],
        params: z.object({ id: z.string() }),
        body: Body,
        response: {
          201: Happening,
          400: problemResponse('A field is missing or wrong; the detail names it.'),
          404: problemResponse('There is no such camera and no footage of it.'),
          429: problemResponse('The camera has too many bookmarks on that day.'),
          ...problems,
        },
      },
    },
    async (request, reply) => {
      const { id: cameraId } = request.params;
      await mustKnow(cameraId);
      const { name, note, from, to = from } = request.body;
      const nowMs = Math.floor(clock.wallMs());
      const [startMs, endMs] = [Math.floor(from * 1000), Math.ceil(to * 1000)];
      if (to < from) throw new ApiError(400, 'invalid-interval', 'to: expected a time that is not before from');
      if (startMs > nowMs + MAX_EARLY_MS)
        throw new ApiError(400, 'invalid-interval', 'from: expected a time that is not in the future');
      const bookmark: Happening = {
        camera_id: cameraId,
        // With its start, so that it is found again.
        id: `${startMs}-${randomBytes(4).toString('hex')}`,
        source: OF_PERSON,
        type: TYPE,
        start_ms: startMs,
        end_ms: endMs,
        reported_by: callerOf(request).name,
        received_ms: nowMs,
        data: { name, ...(note !== undefined && { note }) },
      };
      tell(request, { bookmark: bookmark.id });
      await kept(happenings.add([bookmark]));
      return reply.code(201).send(bookmark);
    },
  );

  app.delete(
    '/api/cameras/:id/bookmarks/:bookmark',
    {
      config: { role: 'operator', cameras: { param: 'id' }, audit: 'remove-bookmark' },
      schema: {
        operationId: 'removeBookmark',
        summary: 'Remove a bookmark',
        description: 'In a cluster, ask the node that keeps it: the others answer 404.',
        tags: ['events'],
        params: z.object({ id: z.string(), bookmark: z.string() }),
        response: {
          204: z.null().describe('It is in no answer any more.'),
          404: problemResponse('This node has no such bookmark.'),
          500: problemResponse('The events on the disk cannot be read.'),
          ...problems,
        },
      },
    },
    async (request, reply) => {
      const { id: cameraId, bookmark: id } = request.params;
      tell(request, { bookmark: id });
      const fromMs = Number(/^(\d{1,15})-/.exec(id)?.[1] ?? NaN);
      const wants = (event: Happening): boolean => event.source === OF_PERSON && event.id === id;
      const query = { cameraIds: [cameraId], fromMs, toMs: fromMs + 1, wants, limit: 1 };
      const [found] = await happenings.find(query).catch((err: unknown) => {
        throw new ApiError(500, 'archive-unreadable', 'the events of cameras cannot be read', { cause: err });
      });
      // That of a camera that is gone can be removed, too.
      if (!found) await mustKnow(cameraId);
      if (!found) throw new ApiError(404, 'bookmark-not-found', 'this node has no such bookmark');
      await kept(happenings.add([{ ...found, removed_by: callerOf(request).name }]));
      return reply.code(204).send(null);
    },
  );
};
