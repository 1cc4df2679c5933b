// `GET /api/events`: the events of the node, as server-sent events (WHATWG HTML §9.2).

import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { EVENT_TYPES, matchesType, parseEventId } from '../../contract/event.ts';
import type { StreamSink } from '../../events/event-stream.ts';
import { callerOf } from '../../http/access.ts';
import { inScope } from '../../../base/camera-scope.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import { queryNumber, TokenQuery } from '../../http/query.ts';
import type { ApiRoutes } from '../deps.ts';

const SECONDS = 'expected a whole number from 0 to 86400';
const ID = 'expected the id of an event';

/** A list such as `gate,dock-*`. */
const patterns = (what: string) =>
  z
    .string()
    .max(1_000, 'expected at most 1000 characters')
    .transform((text) => text.split(',').map((pattern) => pattern.trim()))
    .refine((all) => all.every((pattern) => pattern !== ''), `expected ${what}, with commas between them`);

const Query = TokenQuery.extend({
  types: patterns('types of events')
    .refine(
      (all) => all.every((pattern) => EVENT_TYPES.some((type) => matchesType([pattern], type))),
      'no event has such a type: docs/events.md lists the types',
    )
    .optional()
    .describe('Only events of these types, separated by commas: job.done, camera.*'),
  cameras: patterns('ids of cameras')
    .optional()
    .describe(
      'Of events about cameras, only those about cameras with these ids, separated by commas; * stands for any characters.',
    ),
  last_event_id: z
    .string()
    .refine((text) => parseEventId(text) !== undefined, ID)
    .optional()
    .describe(
      'Begin after this event; 0: begin with the oldest event that is kept. Without it: only new events. The header Last-Event-ID has the same meaning and takes precedence.',
    ),
  seconds: queryNumber(z.int(SECONDS).min(0, SECONDS).max(86_400, SECONDS))
    .optional()
    .describe(
      'End the answer after this many seconds; 0: after the events that are kept. Without it, the answer does not end.',
    ),
});

/** JSON Schema of the data of each event, for clients generated from the OpenAPI document. */
const ENVELOPE = {
  description: 'CloudEvents 1.0.2, JSON format. docs/events.md has the data of each type.',
  type: 'object',
  properties: {
    specversion: { const: '1.0' },
    id: { type: 'string', description: 'Unique on its node; later events have larger ids.' },
    source: { type: 'string', description: 'The node that sends the event.' },
    type: { type: 'string', description: '`dev.kube-nvr.`, followed by one of the types.' },
    subject: { type: 'string', description: 'The camera, for an event about a camera.' },
    time: { type: 'string', format: 'date-time' },
    datacontenttype: { const: 'application/json' },
    data: { type: 'object' },
  },
  required: ['specversion', 'id', 'source', 'type', 'time', 'datacontenttype', 'data'],
};

export const eventRoutes: ApiRoutes = async (app, { deps: { events, clock } }) => {
  app.get(
    '/api/events',
    {
      config: { role: 'viewer', cameras: 'filtered', credentials: 'header-or-query', isStanding: true },
      schema: {
        operationId: 'streamEvents',
        summary: 'Events as they happen',
        description:
          'Server-sent events; the data of each is a CloudEvent in JSON. A client that reconnects with Last-Event-ID continues after that event: events are kept for an hour, also across restarts of the recorder. If some of them have been removed, it gets the event events.missed. A token for some cameras gets no events about others. docs/events.md has types and data.',
        tags: ['events'],
        'x-events': { types: EVENT_TYPES, data: ENVELOPE },
        querystring: Query,
        response: {
          200: {
            description: 'Events, until the client disconnects or its token expires.',
            content: { 'text/event-stream': { schema: z.string() } },
          },
          400: problemResponse('A parameter or Last-Event-ID is not valid; the detail names it.'),
          503: problemResponse('The maximum number of event streams is open.'),
        },
      },
    },
    (request, reply) => {
      const { types, cameras, seconds, last_event_id: given } = request.query;
      const afterId = positionOf(request) ?? (given === undefined ? undefined : parseEventId(given));
      if (events.streams.isFull) {
        throw new ApiError(503, 'too-many-event-streams', 'the maximum number of event streams is open', {
          headers: { 'retry-after': '10' },
          isExpected: true,
        });
      }
      reply.headers({ 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' });
      if (request.method === 'HEAD') return void reply.send('');
      const { raw } = reply;
      reply.hijack();
      raw.writeHead(200, reply.getHeaders() as Record<string, string>);
      const leave = events.streams.add({
        journal: events.journal,
        sink: sinkOf(reply),
        afterId: afterId ?? events.journal.newestId,
        isBrief: seconds === 0,
        wants: ({ type, cameraIds }) =>
          (types === undefined || matchesType(types, type)) &&
          cameraIds.every((id) => callerOf(request).sees(id)) &&
          (cameras === undefined || cameraIds.length === 0 || cameraIds.some((id) => inScope(cameras, id))),
      });
      const timer = seconds ? clock.after(seconds * 1000, () => raw.end()) : undefined;
      raw.once('close', () => {
        leave();
        timer?.cancel();
      });
      return undefined;
    },
  );
};

function positionOf({ headers }: FastifyRequest): number | undefined {
  const { 'last-event-id': header } = headers;
  // A client that has received no event sends no id, or an empty one.
  if (header === undefined || header === '') return undefined;
  const id = parseEventId(String(header));
  if (id === undefined) throw new ApiError(400, 'invalid-parameter', `Last-Event-ID: ${ID}`);
  return id;
}

const sinkOf = ({ raw }: FastifyReply): StreamSink => ({
  write(bytes, sent) {
    // After the end of the response nothing is sent, and `sent` is not called.
    raw.write(bytes, (err) => (err ? undefined : sent()));
  },
  end: () => void raw.end(),
  destroy: () => void raw.destroy(),
});
