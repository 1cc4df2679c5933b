// `/api/alarms`: what a person has to know about, who has taken note of it, and the log of the shift.

import { z } from 'zod';
import type { Alarm as KeptAlarm, Note } from '../../alarms/alarm.ts';
import { HappeningError } from '../../happenings/happening.ts';
import { callerOf } from '../../http/access.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import { AlarmItem, AlarmList, LogEntry, MAX_LISTED } from '../alarm-item.ts';
import type { ApiRoutes } from '../deps.ts';
import { FROM } from '../examples.ts';
import { askOthers } from '../pass-on.ts';
import { Scope } from '../scope.ts';

const MAX_NOTE = 1_000;

const text = z.string().max(MAX_NOTE, `expected at most ${MAX_NOTE} characters`).trim();

const ALARM = {
  id: '1795253100000000',
  node_id: 'rack-1',
  camera_id: 'gate',
  code: 'camera-unreachable',
  message: null,
  start_ms: FROM * 1000,
  end_ms: (FROM + 90) * 1000,
  count: 2,
  acknowledged: { by: 'anna', at_ms: (FROM + 60) * 1000, note: 'the cable was cut; electrician called' },
};
const ENTRY = {
  id: 'note-1',
  node_id: 'rack-1',
  by: 'anna',
  at_ms: (FROM + 120) * 1000,
  text: 'round made, all quiet',
};

const problems = {
  403: problemResponse('The role does not allow this.'),
  503: problemResponse('The disk does not take it: nothing has changed.'),
};

export const alarmRoutes: ApiRoutes = async (app, { deps }) => {
  const { alarms } = deps;
  const nodeId = deps.cluster?.nodeId ?? deps.nodeName;

  const toAlarm = ({ id, cameraId, code, message, startMs, endMs, count, acknowledged }: KeptAlarm) => ({
    id,
    node_id: nodeId,
    camera_id: cameraId ?? null,
    code,
    message: message ?? null,
    start_ms: startMs,
    end_ms: endMs ?? null,
    count,
    acknowledged: acknowledged
      ? { by: acknowledged.by, at_ms: acknowledged.atMs, note: acknowledged.note ?? null }
      : null,
  });
  const toEntry = ({ id, by, atMs, note }: Note) => ({ id, node_id: nodeId, by, at_ms: atMs, text: note });

  app.get(
    '/api/alarms',
    {
      config: { role: 'viewer', cameras: 'filtered', examples: { 200: { alarms: [ALARM], log: [ENTRY] } } },
      schema: {
        operationId: 'listAlarms',
        summary: 'List alarms, and the log of the shift',
        description:
          'A gap of ten seconds or more that nobody wanted, a warning, or the loss of a node. Alarms of the last 31 days, at most 1000.',
        tags: ['events'],
        querystring: z.object({
          scope: Scope.optional().describe('node, the default: the alarms of this node. cluster: those of all nodes.'),
        }),
        response: { 200: AlarmList },
      },
    },
    async (request) => {
      const { sees } = callerOf(request);
      const { answers, unlisted } =
        request.query.scope === 'cluster'
          ? await askOthers(request, deps, '/api/alarms?scope=node', AlarmList)
          : { answers: [], unlisted: {} };
      const own = { alarms: alarms.list.map(toAlarm), log: alarms.notes.map(toEntry) };
      const all = [own, ...answers];
      return {
        alarms: all
          .flatMap((answer) => answer.alarms)
          .filter(({ camera_id: id }) => id === null || sees(id))
          .sort((a, b) => b.start_ms - a.start_ms)
          .slice(0, MAX_LISTED),
        log: all
          .flatMap(({ log }) => log)
          .sort((a, b) => b.at_ms - a.at_ms)
          .slice(0, MAX_LISTED),
        ...unlisted,
      };
    },
  );

  app.post(
    '/api/alarms/:id/acknowledge',
    {
      config: {
        role: 'operator',
        cameras: 'filtered',
        audit: 'acknowledge-alarm',
        examples: { body: { note: 'the cable was cut; electrician called' }, 200: ALARM },
      },
      schema: {
        operationId: 'acknowledgeAlarm',
        summary: 'Acknowledge an alarm',
        description:
          'The alarm says who has taken note of it, when, and with which note. A second one replaces the first.',
        tags: ['events'],
        params: z.object({ id: z.string() }),
        body: z.object({ note: text.optional() }),
        response: {
          200: AlarmItem,
          400: problemResponse('The note is too long.'),
          404: problemResponse('There is no such alarm.'),
          ...problems,
        },
      },
    },
    async (request) => {
      const { sees, name } = callerOf(request);
      const found = alarms.list.find(({ id }) => id === request.params.id);
      const missing = new ApiError(404, 'alarm-not-found', 'there is no alarm with this id');
      if (!found || (found.cameraId !== undefined && !sees(found.cameraId))) throw missing;
      const alarm = await alarms.acknowledge(found.id, name, request.body.note || undefined).catch(refused);
      if (!alarm) throw missing;
      return toAlarm(alarm);
    },
  );

  app.post(
    '/api/alarms/log',
    {
      config: {
        role: 'operator',
        cameras: 'none',
        audit: 'write-note',
        examples: { body: { text: ENTRY.text }, 201: ENTRY },
      },
      schema: {
        operationId: 'writeShiftLog',
        summary: 'Write into the log of the shift',
        tags: ['events'],
        body: z.object({ text: text.min(1, 'expected a text') }),
        response: { 201: LogEntry, 400: problemResponse('The text is missing or too long.'), ...problems },
      },
    },
    async (request, reply) => {
      const entry = await alarms.write(callerOf(request).name, request.body.text).catch(refused);
      return reply.code(201).send(toEntry(entry));
    },
  );

  app.post(
    '/api/mail/test',
    {
      config: { role: 'admin', audit: 'test-mail', examples: { 200: { sent: true } } },
      schema: {
        operationId: 'testMail',
        summary: 'Send a test mail to all who get mails about alarms',
        tags: ['events'],
        response: {
          200: z
            .object({ sent: z.literal(true) })
            .meta({ id: 'SentMail', description: 'The mail server has accepted it.' }),
          403: problems[403],
          409: problemResponse('No mail is configured, or the mail server did not accept it; the detail says why.'),
        },
      },
    },
    async () => {
      const problem = await deps.testMail();
      if (problem !== undefined) throw new ApiError(409, 'mail-failed', problem, { isExpected: true });
      return { sent: true as const };
    },
  );
};

function refused(err: unknown): never {
  if (!(err instanceof HappeningError)) throw err;
  const headers = { 'retry-after': '5' };
  throw new ApiError(503, 'events-not-kept', err.message, { cause: err, headers, isExpected: true });
}
