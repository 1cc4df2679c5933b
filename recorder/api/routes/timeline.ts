// `/api/archive/timeline`: footage, gaps and protections of several cameras, as a page draws them.

import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Interval } from '../../../base/interval.ts';
import { DAY_MS } from '../../../base/units.ts';
import type { Gap } from '../../archive/gaps/camera-ledger.ts';
import { GAP_CAUSES } from '../../archive/gaps/cause.ts';
import { mergeWithin } from '../../archive/gaps/kept-footage.ts';
import { visibleCamera } from '../../http/access.ts';
import { asFormed } from '../../http/answers.ts';
import { requireOrder } from '../../http/interval.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import { EpochSeconds, queryNumber } from '../../http/query.ts';
import { holdersIn, missingAt } from '../../peers/peer.ts';
import type { ApiDeps, CameraTimes } from '../deps.ts';
import { FROM } from '../examples.ts';
import { readable } from '../interval.ts';

const MAX_CAMERAS = 64;
const MAX_DAYS = 31;
/** A calendar month has an hour more when clocks are set back in it. */
const MAX_MS = MAX_DAYS * DAY_MS + 3_600_000;
/** Of one camera: more do not fit on a screen. */
const MAX_SPANS = 5_000;

const CAMERAS = `expected 1 to ${MAX_CAMERAS} cameras`;
const RESOLUTION = 'expected a whole number of milliseconds, at most a day';

const Query = z.object({
  camera: z
    .preprocess(
      (one) => (typeof one === 'string' ? [one] : one),
      z.array(z.string()).min(1, CAMERAS).max(MAX_CAMERAS, CAMERAS),
    )
    .describe('Id of a camera; once for each.'),
  from: EpochSeconds.describe('Start of the interval, seconds since 1970.'),
  to: EpochSeconds.describe('End of the interval, at most 31 days later.'),
  resolution_ms: queryNumber(z.int(RESOLUTION).min(0, RESOLUTION).max(DAY_MS, RESOLUTION))
    .default(0)
    .describe('Footage that is not further apart is one span, and gaps between that are shorter are only counted.'),
});

const StretchFields = { start_ms: z.number().int(), end_ms: z.number().int() };

const Timeline = z
  .object({
    from_ms: z.number().int(),
    to_ms: z.number().int(),
    server_time_ms: z.number().int(),
    cameras: z.array(
      z.object({
        camera_id: z.string(),
        kept_from_ms: z
          .number()
          .int()
          .nullable()
          .describe('Start of the oldest footage on this node; null without any.'),
        known_until_ms: z.number().int().describe('Later time is still being written.'),
        resolution_ms: z.number().int().describe('The requested one, or a coarser one if there are too many spans.'),
        spans: z.array(z.object({ ...StretchFields, kind: z.enum(['footage']) })),
        gaps: z.array(z.object({ ...StretchFields, cause: z.enum(GAP_CAUSES), is_open: z.boolean() })),
        filled: z
          .array(
            z.object({ ...StretchFields, cause: z.enum(GAP_CAUSES), from: z.enum(['edge']), at_ms: z.number().int() }),
          )
          .describe('Gaps within spans that were filled from the memory of the camera.'),
        hidden_gaps: z.number().int().describe('Gaps within spans that are shorter than the resolution.'),
        protections: z.array(z.object({ id: z.string(), ...StretchFields, note: z.string().nullable() })),
        elsewhere: z
          .array(z.object({ node_id: z.string(), ...StretchFields, online: z.boolean() }))
          .describe('In a cluster: other nodes that may have footage of this time.'),
      }),
    ),
  })
  .meta({ id: 'Timeline', description: 'When cameras have footage on this node, and why there is none.' });

type TimelineCamera = z.output<typeof Timeline>['cameras'][number];

const stretch = ({ fromMs, toMs }: Interval) => ({ start_ms: fromMs, end_ms: toMs });

const isWithin = ({ fromMs, toMs }: Interval, spans: readonly Interval[]): boolean => {
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((spans[middle] as Interval).toMs >= toMs) high = middle;
    else low = middle + 1;
  }
  const span = spans[low];
  return span !== undefined && span.fromMs <= fromMs;
};

/** Spans and gaps that a page can show; with a coarser resolution if there are too many. */
function drawn({ footage, report }: CameraTimes, { fromMs, toMs }: Interval, wantedMs: number) {
  const cut = footage
    .map((span) => ({ fromMs: Math.max(span.fromMs, fromMs), toMs: Math.min(span.toMs, toMs) }))
    .filter((span) => span.fromMs < span.toMs);
  for (let resolutionMs = wantedMs; ; resolutionMs = 2 * resolutionMs || 1_000) {
    const spans = resolutionMs === 0 ? cut : mergeWithin(cut, resolutionMs);
    const gaps = report.gaps.filter((gap) => gap.toMs - gap.fromMs >= resolutionMs || !isWithin(gap, spans));
    if (resolutionMs >= DAY_MS || spans.length + gaps.length <= MAX_SPANS) return { spans, gaps, resolutionMs };
  }
}

const toGap = ({ cause, isOpen, ...interval }: Gap) => ({ ...stretch(interval), cause, is_open: isOpen });

type Deps = Pick<ApiDeps, 'protections' | 'cluster' | 'clock'> & { readonly times: NonNullable<ApiDeps['times']> };

export const timelineRoutes: FastifyPluginAsyncZod<{ deps: Deps }> = async (app, { deps }) => {
  const { times, protections, cluster, clock } = deps;

  /** `cameraId`: empty for a camera that the caller may not see. */
  async function cameraOf(
    asked: string,
    cameraId: string,
    interval: Interval,
    resolutionMs: number,
  ): Promise<TimelineCamera> {
    const { fromMs, toMs } = interval;
    const found = await times.of(cameraId, fromMs, toMs);
    const { spans, gaps, ...used } = drawn(found, interval, resolutionMs);
    const holders = cameraId === '' ? [] : ((await cluster?.footageHolders(cameraId)) ?? []);
    return {
      camera_id: asked,
      kept_from_ms: found.keptFromMs ?? null,
      known_until_ms: found.report.knownUntilMs,
      resolution_ms: used.resolutionMs,
      spans: spans.map((span) => ({ ...stretch(span), kind: 'footage' })),
      gaps: gaps.map(toGap),
      filled: found.report.filled
        .filter((part) => part.toMs - part.fromMs >= used.resolutionMs)
        .slice(-MAX_SPANS)
        .map(({ cause, atMs, ...part }) => ({ ...stretch(part), cause, from: 'edge' as const, at_ms: atMs })),
      hidden_gaps: found.report.gaps.length - gaps.length,
      protections: (cameraId === '' ? [] : (protections?.windows.list(cameraId) ?? []))
        .filter((window) => window.fromMs < toMs && window.toMs > fromMs)
        .map(({ id, note, ...window }) => ({ id, ...stretch(window), note: note ?? null })),
      elsewhere: holdersIn(holders, fromMs, toMs)
        .map((holder) => missingAt(holder, fromMs, toMs))
        .map(({ nodeId, isOnline, ...window }) => ({ node_id: nodeId, ...stretch(window), online: isOnline })),
    };
  }

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
                hidden_gaps: 2,
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
        summary: 'When cameras have footage, and why there is none: of up to 64 cameras and 31 days',
        description:
          'Footage that retention removed is neither a span nor a gap: it is older than kept_from_ms, or missing between spans. A camera that the node does not know has no spans.',
        tags: ['archive'],
        querystring: Query,
        response: {
          200: Timeline,
          400: problemResponse('A parameter is missing or wrong; the detail names it.'),
          401: problemResponse('No token, or a wrong one.'),
          500: problemResponse('The archive on the disk cannot be read.'),
        },
      },
    },
    async (request) => {
      const { camera, from, to, resolution_ms: resolutionMs } = request.query;
      requireOrder({ from, to });
      const interval = { fromMs: Math.round(from * 1000), toMs: Math.round(to * 1000) };
      if (interval.toMs - interval.fromMs > MAX_MS) {
        throw new ApiError(400, 'interval-too-wide', `to: expected at most ${MAX_DAYS} days after from`);
      }
      await readable(times.refresh(interval.fromMs, interval.toMs));
      const cameras: TimelineCamera[] = [];
      for (const asked of camera) {
        cameras.push(await readable(cameraOf(asked, visibleCamera(request, asked), interval, resolutionMs)));
        // A month of many cameras takes a while: packets of cameras are read in between.
        await nextTurn();
      }
      return { from_ms: interval.fromMs, to_ms: interval.toMs, server_time_ms: clock.wallMs(), cameras };
    },
  );
};

const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
