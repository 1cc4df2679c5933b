// `/api/archive/timeline`: footage, gaps and protections of several cameras, as a page draws them.

import { z } from 'zod';
import { DAY_MS } from '../../../base/units.ts';
import { requireOrder } from '../../http/interval.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import { CameraIds, EpochSeconds, flag, queryNumber } from '../../http/query.ts';
import { asFormed } from '../../http/answers.ts';
import type { ApiRoutes } from '../deps.ts';
import { happeningsFor } from '../happening-list.ts';
import { FROM } from '../examples.ts';
import { Scope } from '../scope.ts';
import { Timeline } from '../../footage/timeline-item.ts';
import { Timelines } from '../timelines.ts';

const MAX_DAYS = 31;
/** A calendar month has an hour more when clocks are set back in it. */
const MAX_MS = MAX_DAYS * DAY_MS + 3_600_000;

const RESOLUTION = 'expected a whole number of milliseconds, at most a day';

const Query = z.object({
  camera: CameraIds,
  from: EpochSeconds.describe('Start of the interval, seconds since 1970.'),
  to: EpochSeconds.describe('End of the interval, at most 31 days later.'),
  resolution_ms: queryNumber(z.int(RESOLUTION).min(0, RESOLUTION).max(DAY_MS, RESOLUTION))
    .default(0)
    .describe(
      'Footage that is not further apart is one span, and gaps within this time are one entry with their number and sum (count, missing_ms).',
    ),
  events: flag().optional().describe('1: also the events of the cameras that other systems reported.'),
  activity: flag().optional().describe('1: also what the pictures of the cameras show, where they were looked at.'),
  preview: flag().optional().describe('1: also when the previews of the cameras were recorded.'),
  whole: flag()
    .optional()
    .describe('1, with scope=node: each gap and span to the millisecond, whatever their number, and written.'),
  scope: Scope.optional().describe('node, the default: what this node has. cluster: what all nodes have together.'),
});

/** The newest events of all cameras that an answer has: one page of another node. */
const MAX_MARKS = 1_000;

export const timelineRoutes: ApiRoutes = async (app, { deps }) => {
  const { clock } = deps;
  const timelines = new Timelines(deps);
  app.get(
    '/api/archive/timeline',
    {
      config: {
        role: 'viewer',
        cameras: 'filtered',
        changesAlways: true,
        examples: {
          200: {
            from_ms: FROM * 1000,
            to_ms: (FROM + 600) * 1000,
            server_time_ms: (FROM + 700) * 1000,
            cameras: [
              {
                camera_id: 'gate',
                kept_from_ms: (FROM - 86_400) * 1000,
                known_until_ms: (FROM + 600) * 1000,
                resolution_ms: 1_000,
                spans: [
                  { start_ms: FROM * 1000, end_ms: (FROM + 180) * 1000, kind: 'footage' },
                  { start_ms: (FROM + 192) * 1000, end_ms: (FROM + 600) * 1000, kind: 'footage' },
                ],
                gaps: [
                  {
                    start_ms: (FROM + 180) * 1000,
                    end_ms: (FROM + 192) * 1000,
                    cause: 'camera-unreachable',
                    is_open: false,
                  },
                ],
                filled: [],
                hidden_gaps: 0,
                protections: [],
                elsewhere: [],
              },
            ],
          },
        },
      },
      serializerCompiler: asFormed,
      schema: {
        operationId: 'getTimeline',
        summary: 'Footage and gaps of up to 64 cameras, in up to 31 days',
        description:
          'Footage that retention removed is neither a span nor a gap: it is older than kept_from_ms, or missing between spans. A camera that the node does not know has no spans. With scope=cluster, spans are those of this node, elsewhere has the footage of the others, and gaps are those that no node fills.',
        tags: ['archive'],
        querystring: Query,
        response: {
          200: Timeline,
          500: problemResponse('The archive on the disk cannot be read.'),
        },
      },
    },
    async (request) => {
      const {
        camera,
        from,
        to,
        scope,
        resolution_ms: resolutionMs,
        preview = false,
        activity = false,
        whole = false,
        events,
      } = request.query;
      requireOrder({ from, to });
      const interval = { fromMs: Math.round(from * 1000), toMs: Math.round(to * 1000) };
      if (interval.toMs - interval.fromMs > MAX_MS) {
        throw new ApiError(400, 'interval-too-wide', `to: expected at most ${MAX_DAYS} days after from`);
      }
      const asked = { cameraIds: camera, interval, resolutionMs, preview, activity, isWhole: whole };
      const cameras = await (scope === 'cluster'
        ? timelines.ofAllNodes(request, asked)
        : timelines.ofThisNode(request, asked));
      let more_events: boolean | undefined;
      if (events === true) {
        const query = new URLSearchParams(camera.map((id) => ['camera', id] as [string, string]));
        query.set('from', String(interval.fromMs / 1000));
        query.set('to', String(interval.toMs / 1000));
        const found = await happeningsFor(request, deps, {
          cameraIds: camera,
          ...interval,
          wants: () => true,
          limit: MAX_MARKS,
          isOfAllNodes: scope === 'cluster',
          query: query.toString(),
        });
        more_events = found.isMore;
        const marks = Map.groupBy(found.events, ({ camera_id }) => camera_id);
        for (const one of cameras) one.events = marks.get(one.camera_id) ?? [];
      }
      const at = { from_ms: interval.fromMs, to_ms: interval.toMs, server_time_ms: clock.wallMs() };
      return { ...at, ...(more_events !== undefined && { more_events }), cameras };
    },
  );
};
