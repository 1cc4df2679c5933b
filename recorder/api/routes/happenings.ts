// `POST /api/cameras/{id}/events` and `GET /api/events/search`: what cameras and other systems tell.

import { validatorCompiler } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { DAY_MS, MINUTE_MS } from '../../../base/units.ts';
import { OF_CAMERA, OF_PERSON, type Happening } from '../../happenings/happening.ts';
import { MAX_LATE_MS } from '../../happenings/happenings.ts';
import { callerOf } from '../../http/access.ts';
import { matchesPattern } from '../../../base/camera-scope.ts';
import { requireOrder } from '../../http/interval.ts';
import { ApiError, problemResponse, unknownCamera } from '../../http/problem.ts';
import { CameraIds, EpochSeconds } from '../../http/query.ts';
import { isKnownCamera, type ApiRoutes } from '../deps.ts';
import { FROM } from '../examples.ts';
import { HappeningList, happeningsFor, kept } from '../happening-list.ts';
import { cursorOf, PageQuery, placeOf } from '../pages.ts';
import { Scope } from '../scope.ts';

const MAX_BATCH = 100;
const MAX_BODY_BYTES = 1024 * 1024;
const MAX_DATA = 4_096;
/** Clocks of sources differ. */
const MAX_EARLY_MS = 5 * MINUTE_MS;
const MAX_TYPES = 16;
const MAX_DAYS = 31;
const USUAL_ENTRIES = 100;
const SINGLE = 'application/cloudevents+json';
const BATCH = 'application/cloudevents-batch+json';

const text = (max: number) => z.string().min(1, 'expected a text').max(max, `expected at most ${max} characters`);
const Time = z.iso.datetime({ offset: true, error: 'expected a time such as 2026-11-21T09:30:00Z' });

const Report = z
  .object({
    specversion: z.literal('1.0', 'expected 1.0'),
    id: text(200).describe('Unique for its source. An event that comes again is kept once.'),
    source: text(200)
      .refine((source) => source !== OF_CAMERA, `expected another name than ${OF_CAMERA}, which is the camera itself`)
      .refine((source) => source !== OF_PERSON, `expected another name than ${OF_PERSON}, of whom bookmarks are`)
      .describe('What tells it: a name, or a URI.'),
    type: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,99}$/, 'expected at most 100 letters, digits and ._/-')
      .describe('What happened, such as person or com.example.door.opened.'),
    time: Time.optional().describe('When it began, at most a day ago; default: now.'),
    endtime: Time.optional().describe('When it ended. An event may be reported when it begins, and again with this.'),
    data: z
      .record(z.string(), z.unknown())
      .optional()
      .describe(`Whatever the source adds: an object of at most ${MAX_DATA} characters.`),
  })
  .meta({ id: 'ReportedEvent', description: 'A CloudEvent 1.0.2, JSON format.' });

type Report = z.output<typeof Report>;

const Batch = z.array(Report).min(1, 'expected an event').max(MAX_BATCH, `expected at most ${MAX_BATCH} events`);

const EXAMPLE = {
  camera_id: 'gate',
  id: '1795253100.5-k2x9',
  source: 'frigate',
  type: 'person',
  start_ms: FROM * 1000,
  end_ms: (FROM + 8) * 1000,
  reported_by: 'frigate',
  received_ms: (FROM + 9) * 1000,
  data: { score: 0.87 },
};
const REPORT_EXAMPLE = {
  specversion: '1.0',
  id: EXAMPLE.id,
  source: EXAMPLE.source,
  type: EXAMPLE.type,
  data: EXAMPLE.data,
};

const Search = z.object({
  camera: CameraIds,
  from: EpochSeconds.describe('Start of the interval, seconds since 1970.'),
  to: EpochSeconds.describe('End of the interval, at most 31 days later.'),
  type: z
    .string()
    .max(1_000, 'expected at most 1000 characters')
    .transform((list) => list.split(',').map((one) => one.trim()))
    // Each is compared with each event.
    .refine((list) => list.length <= MAX_TYPES, `expected at most ${MAX_TYPES} types`)
    .optional()
    .describe('Only events of these types, at most 16, separated by commas; * stands for any characters.'),
  scope: Scope.optional().describe('node, the default: what was told to this node. cluster: to any node.'),
  ...PageQuery.shape,
});

/** Newest first: the start is negative. */
const EventPlace = z.tuple([z.literal('events'), z.number(), z.string(), z.string(), z.string()]);
type EventPlace = z.output<typeof EventPlace>;

const placeIn = ({ start_ms, camera_id, source, id }: Happening): EventPlace => [
  'events',
  -start_ms,
  camera_id,
  source,
  id,
];

const isAfter = (event: Happening, place: EventPlace): boolean => {
  const own = placeIn(event);
  const i = own.findIndex((value, k) => value !== place[k]);
  return i >= 0 && (own[i] as number) > (place[i] as number);
};

const validating = (schema: z.ZodType) => validatorCompiler({ schema, method: 'POST', url: '' });
type Validation = ReturnType<typeof validating>;

export const happeningRoutes: ApiRoutes = async (app, { deps }) => {
  const { happenings, clock } = deps;
  const parsesJson = { parseAs: 'string', bodyLimit: MAX_BODY_BYTES } as const;
  app.addContentTypeParser([SINGLE, BATCH], parsesJson, app.getDefaultJsonParser('error', 'error'));

  app.post(
    '/api/cameras/:id/events',
    {
      bodyLimit: MAX_BODY_BYTES,
      // The document has one event: generators of clients cannot read an alternative.
      validatorCompiler({ schema }: { readonly schema: unknown }) {
        const [one, batch] = [schema as z.ZodType, Batch].map(validating) as [Validation, Validation];
        return (value: unknown) => (Array.isArray(value) ? batch : one)(value);
      },
      config: {
        role: 'reporter',
        cameras: { param: 'id' },
        audit: 'report-event',
        examples: { body: REPORT_EXAMPLE, 200: { stored: 1, known: 0 } },
      },
      schema: {
        operationId: 'reportEvents',
        summary: 'Report what happened at a camera',
        description: `A CloudEvent, or with ${BATCH} a list of at most ${MAX_BATCH}. With an error in one of them, none is kept. Reporting an event again does no harm: it is kept once. The answer comes when the events are on the disk; if it does not come, report again.`,
        tags: ['events'],
        params: z.object({ id: z.string() }),
        body: Report,
        response: {
          200: z
            .object({
              stored: z.number().int().describe('New events.'),
              known: z.number().int().describe('Events that were reported before.'),
            })
            .meta({ id: 'ReportedEvents', description: 'All events are on the disk.' }),
          400: problemResponse('A field is missing or wrong; the detail names it.'),
          404: problemResponse('There is no such camera.'),
          429: problemResponse('The camera has had too many events on that day.'),
          503: problemResponse('The disk does not take the events: report them again later.'),
        },
      },
    },
    async (request) => {
      const { id: cameraId } = request.params;
      if (!(await isKnownCamera(deps, cameraId, true))) throw unknownCamera();
      const body = request.body as Report | readonly Report[];
      const nowMs = Math.floor(clock.wallMs());
      const by = callerOf(request).name;
      const events = [body].flat().map((report, i): Happening => {
        const wrong = (field: string, expected: string): ApiError =>
          new ApiError(400, 'invalid-parameter', `${Array.isArray(body) ? `${i}.` : ''}${field}: expected ${expected}`);
        const { id, source, type, time, endtime, data } = report;
        const startMs = time === undefined ? nowMs : Date.parse(time);
        const endMs = endtime === undefined ? null : Date.parse(endtime);
        if (startMs < nowMs - MAX_LATE_MS) throw wrong('time', 'a time that is at most a day ago');
        if (startMs > nowMs + MAX_EARLY_MS) throw wrong('time', 'a time that is not in the future');
        if (endMs !== null && endMs < startMs) throw wrong('endtime', 'a time that is not before time');
        if (endMs !== null && endMs > nowMs + MAX_EARLY_MS) throw wrong('endtime', 'a time that is not in the future');
        if (data && JSON.stringify(data).length > MAX_DATA)
          throw wrong('data', `at most ${MAX_DATA} characters of JSON`);
        const told = { camera_id: cameraId, id, source, type, start_ms: startMs, end_ms: endMs };
        return { ...told, reported_by: by, received_ms: nowMs, ...(data && { data }) };
      });
      const stored = await kept(happenings.add(events));
      return { stored: stored.length, known: events.length - stored.length };
    },
  );

  app.get(
    '/api/events/search',
    {
      config: { role: 'viewer', cameras: 'filtered', examples: { 200: { events: [EXAMPLE], next: null } } },
      schema: {
        operationId: 'searchEvents',
        summary: 'What cameras told, and other systems of them',
        description:
          'Events that began in the interval, newest first, in pages. Events of a camera are kept as long as its footage.',
        tags: ['events'],
        querystring: Search,
        response: {
          200: HappeningList,
          500: problemResponse('The events on the disk cannot be read.'),
        },
      },
    },
    async (request) => {
      const { camera: cameraIds, from, to, type: types, scope, limit = USUAL_ENTRIES, cursor } = request.query;
      requireOrder({ from, to });
      const [fromMs, toMs] = [Math.round(from * 1000), Math.round(to * 1000)];
      if (toMs - fromMs > MAX_DAYS * DAY_MS) {
        throw new ApiError(400, 'interval-too-wide', `to: expected at most ${MAX_DAYS} days after from`);
      }
      const after = placeOf(cursor, EventPlace);
      const query = new URLSearchParams(cameraIds.map((id) => ['camera', id] as [string, string]));
      for (const [name, value] of Object.entries({ from, to, type: types?.join(','), cursor })) {
        if (value !== undefined) query.set(name, String(value));
      }
      const { events, isMore, unlisted } = await happeningsFor(request, deps, {
        cameraIds,
        fromMs,
        toMs,
        limit,
        wants: (event) =>
          (!types || types.some((pattern) => matchesPattern(pattern, event.type))) && (!after || isAfter(event, after)),
        isOfAllNodes: scope === 'cluster',
        query: query.toString(),
      });
      const last = events.at(-1);
      return { events, next: isMore && last ? cursorOf(placeIn(last)) : null, ...unlisted };
    },
  );
};
