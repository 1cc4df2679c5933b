// `/api/archive/{camera_id}/days`: how much of each day of a month is recorded, for a calendar.

import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Interval } from '../../../base/interval.ts';
import { isHalted } from '../../contract/gap-cause.ts';
import { isTimeZone } from '../../config/values.ts';
import { visibleCamera } from '../../http/access.ts';
import { problemResponse } from '../../http/problem.ts';
import { recordedIn, type RecordedTime } from '../../objectives/days.ts';
import type { ApiDeps, ApiRoutes } from '../deps.ts';
import { readable } from '../interval.ts';
import { Scope } from '../scope.ts';
import { askingOf, Timelines } from '../timelines.ts';
import { daysOfMonth } from '../zone-days.ts';

export const Month = z
  .string()
  .regex(/^(19[7-9]|[2-9][0-9]{2})[0-9]-(0[1-9]|1[0-2])$/, 'expected a month such as 2026-10')
  .describe('Such as 2026-10.');

export const DayZone = z
  .string()
  .refine(isTimeZone, 'expected a time zone such as Europe/Berlin')
  .optional()
  .describe('IANA time zone whose days are counted, such as Europe/Berlin. Without it: that of the site.');

export const zoneOf = (tz: string | undefined, { timeZone }: ApiDeps['site']): string =>
  tz ?? timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;

const Query = z.object({
  month: Month,
  tz: DayZone,
  scope: Scope.optional().describe('node, the default: the footage of this node. cluster: that of all nodes.'),
});

const Days = z
  .object({
    camera_id: z.string(),
    month: z.string(),
    time_zone: z.string(),
    days: z
      .array(
        z.object({
          date: z.string(),
          start_ms: z.number().int(),
          end_ms: z.number().int().describe('Start of the next day: days on which clocks change have 23 or 25 hours.'),
          recorded_seconds: z.number().describe('Footage on this node, or with scope=cluster on all nodes.'),
          missing_seconds: z.number().describe('The sum of the gaps.'),
          stopped_seconds: z
            .number()
            .describe('The part of it in which a user had stopped the camera, or the licence did not allow it.'),
          complete: z.boolean().describe('There is footage and no gap.'),
        }),
      )
      .describe('Days with footage or gaps.'),
  })
  .meta({ id: 'DayList', description: 'How much of each day of a month is recorded.' });

const DAY = {
  date: '2026-10-25',
  start_ms: Date.UTC(2026, 9, 24, 22),
  end_ms: Date.UTC(2026, 9, 25, 23),
  recorded_seconds: 89_988.4,
  missing_seconds: 11.6,
  stopped_seconds: 0,
  complete: false,
};

export const dayRoutes: ApiRoutes = async (app, { deps }) => {
  const { times, site } = deps;
  const timelines = new Timelines(deps);
  const ofThisNode = async (cameraId: string, { fromMs, toMs }: Interval): Promise<RecordedTime> => {
    await readable(times.refresh(fromMs, toMs));
    const { footage, report } = await readable(times.of(cameraId, fromMs, toMs));
    return { recorded: footage, gaps: report.gaps };
  };
  /** Footage that is still there: a calendar shows what can be played. */
  const ofAllNodes = async (request: FastifyRequest, cameraId: string, interval: Interval): Promise<RecordedTime> => {
    const [account] = await timelines.accounts(askingOf(request), [cameraId], interval);
    return { recorded: account?.footage ?? [], gaps: account?.gaps ?? [] };
  };
  app.get(
    '/api/archive/:camera_id/days',
    {
      config: {
        role: 'viewer',
        cameras: 'filtered',
        examples: { 200: { camera_id: 'gate', month: '2026-10', time_zone: 'Europe/Berlin', days: [DAY] } },
      },
      schema: {
        operationId: 'listDays',
        summary: 'How much of each day of a month is recorded',
        description: 'For a camera that the node does not know, the list is empty.',
        tags: ['archive'],
        params: z.object({ camera_id: z.string() }),
        querystring: Query,
        response: {
          200: Days,
          400: problemResponse('month or tz is not valid; the detail names it.'),
          500: problemResponse('The archive on the disk cannot be read.'),
        },
      },
    },
    async (request) => {
      const { camera_id } = request.params;
      const { month, tz, scope } = request.query;
      const timeZone = zoneOf(tz, site);
      const days = daysOfMonth(month, timeZone);
      const interval = { fromMs: days[0]?.fromMs ?? 0, toMs: days.at(-1)?.toMs ?? 0 };
      const account = await (scope === 'cluster'
        ? ofAllNodes(request, camera_id, interval)
        : ofThisNode(visibleCamera(request, camera_id), interval));
      const listed = recordedIn(days, account).map(({ recordedMs, missingMs, byCause }, i) => {
        const { date, fromMs, toMs } = days[i] as (typeof days)[number];
        const stoppedMs = [...byCause].reduce((sum, [cause, ms]) => sum + (isHalted(cause) ? ms : 0), 0);
        return {
          date,
          start_ms: fromMs,
          end_ms: toMs,
          recorded_seconds: recordedMs / 1000,
          missing_seconds: missingMs / 1000,
          stopped_seconds: stoppedMs / 1000,
          complete: recordedMs !== 0 && missingMs === 0,
        };
      });
      const known = listed.filter((day) => day.recorded_seconds > 0 || day.missing_seconds > 0);
      return { camera_id, month, time_zone: timeZone, days: known };
    },
  );
};
