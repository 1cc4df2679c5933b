// `/api/archive/{camera_id}/gaps`: the gaps in the footage of a camera, and their causes.

import { z } from 'zod';
import type { Gap } from '../../contract/gap-report.ts';
import { GAP_CAUSES, type GapCause } from '../../contract/gap-cause.ts';
import type { Degraded } from '../../contract/degraded.ts';
import { NOT_FILLED_REASONS, type Filled } from '../../contract/gap-fill.ts';
import { askerOf, visibleCamera } from '../../http/access.ts';
import { problemResponse } from '../../http/problem.ts';
import { EpochNumber, flag } from '../../http/query.ts';
import type { NodeReport, ReportWithElsewhere } from '../../footage/accounts.ts';
import type { ApiRoutes } from '../deps.ts';
import { IntervalQuery, intervalOf, readable, toQuery } from '../interval.ts';
import { Next, PageQuery, pageOf, placeOf } from '../pages.ts';
import { ElsewhereItem, toElsewhere } from '../../footage/elsewhere-item.ts';
import { isoTime } from '../times.ts';
import { START, TIME } from '../examples.ts';

const Cause = z
  .enum(GAP_CAUSES)
  .meta({ id: 'GapCause', description: 'docs/gaps.md explains each cause. Later versions may add more.' });

const GapItem = z
  .object({
    start: z.iso.datetime({ offset: true }),
    end: z.iso.datetime({ offset: true }),
    start_ms: z.number().int().describe('The same in milliseconds since 1970.'),
    end_ms: z.number().int(),
    seconds: z.number(),
    cause: Cause,
    is_open: z.boolean().describe('The gap has not ended yet.'),
    filled_from: z
      .enum(['edge'])
      .optional()
      .describe(
        'Set if the gap was filled from the memory of the camera. Its time is no longer part of missing_seconds.',
      ),
    filled_at: z.iso.datetime({ offset: true }).optional().describe('When the last part of it was filled.'),
    seam: z
      .enum(['bytes', 'time'])
      .optional()
      .describe(
        'How the place of the filled footage was found. bytes: pictures beside the gap are in the memory, byte for byte; time: by clocks.',
      ),
    not_filled: z
      .object({
        reason: z
          .enum(NOT_FILLED_REASONS)
          .describe('docs/edge-recovery.md explains each. Later versions may add more.'),
        at: z.iso.datetime({ offset: true }).describe('When the recorder last tried to fill it.'),
      })
      .optional()
      .describe('Why it could not be filled from the memory of the camera.'),
    detail: z
      .string()
      .optional()
      .describe('Of a gap with the cause stopped: who stopped the camera, and the reason that was given.'),
  })
  .meta({ id: 'Gap', description: 'Time without live footage, and why.' });

const StretchItem = z.object({
  start_ms: z.number().int().describe('Milliseconds since 1970.'),
  end_ms: z.number().int(),
});

const DegradedItem = z
  .object({
    start: z.iso.datetime({ offset: true }),
    end: z.iso.datetime({ offset: true }),
    start_ms: z.number().int().describe('The same in milliseconds since 1970.'),
    end_ms: z.number().int(),
    lost_frames: z.number().int().describe('Pictures that did not arrive completely.'),
    undecodable_frames: z
      .number()
      .int()
      .describe(
        'Recorded pictures that refer to a lost one: those up to the next key frame. A player shows them damaged.',
      ),
    expected_frames: z.number().int().describe('All pictures of that time: the recorded ones and lost_frames.'),
    lost_share: z.number().describe('lost_frames divided by expected_frames: from 0 to 1.'),
  })
  .meta({ id: 'Degraded', description: 'Footage in which pictures are missing.' });

const Gaps = z
  .object({
    camera_id: z.string(),
    from: z.iso.datetime({ offset: true }),
    to: z.iso.datetime({ offset: true }),
    from_ms: z.number().int().describe('The same in milliseconds since 1970, as in jobs.'),
    to_ms: z.number().int(),
    known_until: z.iso
      .datetime({ offset: true })
      .describe('The account is complete up to this time. The few seconds between it and now are still being written.'),
    known_until_ms: z.number().int(),
    next: Next,
    gaps: z
      .array(GapItem)
      .describe('Oldest first, without overlap. A gap that was filled in part has one entry for each part.'),
    wanted_seconds: z.number().describe('Time up to known_until in which the camera was configured on this node.'),
    recorded_seconds: z.number().describe('Time with footage: wanted_seconds minus missing_seconds.'),
    missing_seconds: z
      .number()
      .describe(
        'The sum of all gaps that are not filled, including those of a camera that a user stopped. Together with filled_seconds, it is what was missing before gaps were filled.',
      ),
    filled_seconds: z.number().describe('The sum of all gaps that are filled; they are in recorded_seconds.'),
    seconds_by_cause: z
      .partialRecord(Cause, z.number())
      .describe('The sum of the gaps of each cause that occurs, as in missing_seconds.'),
    elsewhere: z
      .array(ElsewhereItem)
      .optional()
      .describe('Footage of the interval on other nodes that this node does not have; not with local=1.'),
    footage: z
      .array(StretchItem)
      .optional()
      .describe('With footage=1: the time with footage in files of this node, oldest first, without overlap.'),
    degraded: z
      .array(DegradedItem)
      .describe(
        'Footage in which pictures are missing, each time for less than a second. Listed by the minute; consecutive minutes are joined, up to an hour. Oldest first; an entry is not cut where it reaches beyond the interval.',
      ),
  })
  .meta({ id: 'GapList', description: 'Time without footage of a camera in an interval.' });

/** Includes the interval, as for segments. Of two entries with the same start, the gap is first. */
const GapPlace = z.tuple([z.literal('gaps'), EpochNumber, EpochNumber, z.number(), z.number()]);
interface GapEntry {
  readonly startMs: number;
  readonly rank: number;
  readonly gap?: z.output<typeof GapItem>;
  readonly degraded?: Degraded;
}

const toGap = ({
  fromMs,
  toMs,
  cause,
  isOpen,
  notFilled,
  detail,
}: Pick<Gap, 'fromMs' | 'toMs' | 'cause' | 'isOpen' | 'notFilled' | 'detail'>): z.output<typeof GapItem> => ({
  start: isoTime(fromMs),
  end: isoTime(toMs),
  start_ms: fromMs,
  end_ms: toMs,
  seconds: (toMs - fromMs) / 1000,
  cause,
  is_open: isOpen,
  ...(notFilled && { not_filled: { reason: notFilled.reason, at: isoTime(notFilled.atMs) } }),
  ...(detail !== undefined && { detail }),
});

const toFilled = ({ atMs, seam, ...gap }: Filled): z.output<typeof GapItem> => ({
  ...toGap({ ...gap, isOpen: false }),
  filled_from: 'edge',
  filled_at: isoTime(atMs),
  seam,
});

const toDegraded = ({ fromMs, toMs, lost, undecodable = 0, expected }: Degraded): z.output<typeof DegradedItem> => ({
  start: isoTime(fromMs),
  end: isoTime(toMs),
  start_ms: fromMs,
  end_ms: toMs,
  lost_frames: lost,
  undecodable_frames: undecodable,
  expected_frames: expected,
  lost_share: Math.round((lost / expected) * 10_000) / 10_000,
});

function secondsByCause(gaps: readonly Gap[]): Partial<Record<GapCause, number>> {
  const sums = new Map<GapCause, number>();
  for (const { fromMs, toMs, cause } of gaps) sums.set(cause, (sums.get(cause) ?? 0) + toMs - fromMs);
  return Object.fromEntries(Array.from(sums, ([cause, ms]) => [cause, ms / 1000]));
}

export const gapRoutes: ApiRoutes = async (app, { deps: { gaps, clock } }) => {
  app.get(
    '/api/archive/:camera_id/gaps',
    {
      config: {
        role: 'viewer',
        cameras: 'filtered',
        examples: {
          200: {
            camera_id: 'gate',
            from: START,
            to: TIME,
            from_ms: Date.parse(START),
            to_ms: Date.parse(TIME),
            known_until: TIME,
            known_until_ms: Date.parse(TIME),
            gaps: [
              {
                start: '2026-11-21T09:28:00.000+00:00',
                end: '2026-11-21T09:28:11.600+00:00',
                start_ms: Date.parse('2026-11-21T09:28:00.000+00:00'),
                end_ms: Date.parse('2026-11-21T09:28:11.600+00:00'),
                seconds: 11.6,
                cause: 'camera-unreachable',
                is_open: false,
              },
            ],
            wanted_seconds: 299.877,
            recorded_seconds: 288.277,
            missing_seconds: 11.6,
            filled_seconds: 0,
            seconds_by_cause: { 'camera-unreachable': 11.6 },
            degraded: [
              {
                start: '2026-11-21T09:29:00.012+00:00',
                end: '2026-11-21T09:30:00.011+00:00',
                start_ms: Date.parse('2026-11-21T09:29:00.012+00:00'),
                end_ms: Date.parse('2026-11-21T09:30:00.011+00:00'),
                lost_frames: 30,
                undecodable_frames: 410,
                expected_frames: 1_500,
                lost_share: 0.02,
              },
            ],
          },
        },
      },
      schema: {
        operationId: 'listGaps',
        summary: 'Time without footage of a camera in an interval, and why',
        description:
          'Gaps and footage together cover the time in which the camera was configured. Footage that retention removed is no gap. For a camera that the node does not know, the list is empty. Without from and to: the current day. With only one of them: the day that starts or ends at that time. A page has at most limit entries, gaps and degraded footage counted together, oldest first; the sums always cover the whole interval.',
        tags: ['archive'],
        params: z.object({ camera_id: z.string() }),
        querystring: IntervalQuery.extend(PageQuery.shape).extend({
          local: flag().optional().describe('1: ask no other node.'),
          // Nodes of version 0.1.0 ask each other for it.
          footage: flag().optional().describe('1: list the time with footage, too.'),
        }),
        response: {
          200: Gaps,
          400: problemResponse(
            'from or to is not a number, from is later than to, or the interval is longer than 25 hours.',
          ),
          500: problemResponse('The archive on the disk cannot be read.'),
        },
      },
    },
    async (request) => {
      const { camera_id } = request.params;
      const { query } = request;
      const seen = placeOf(query.cursor, GapPlace);
      const interval = intervalOf(query, seen && { from: seen[1], to: seen[2] }, clock.wallMs());
      const { fromMs, toMs } = toQuery(interval);
      const cameraId = visibleCamera(request, camera_id);
      const asked = [cameraId, Math.round(fromMs), Math.round(toMs)] as const;
      const report: NodeReport & Partial<ReportWithElsewhere> = await readable(
        query.local ? gaps.ofThisNode(...asked) : gaps.report(...asked, askerOf(request)),
      );
      const { from, to } = interval;
      const gapEntries = [...report.gaps.map(toGap), ...report.filled.map(toFilled)]
        .sort((a, b) => a.start_ms - b.start_ms)
        .map((gap) => ({ startMs: gap.start_ms, rank: 0, gap }));
      const degradedEntries = report.degraded.map((degraded) => ({ startMs: degraded.fromMs, rank: 1, degraded }));
      const page = pageOf<GapEntry>([...gapEntries, ...degradedEntries], query, seen, ({ startMs, rank }) => [
        'gaps',
        from,
        to,
        startMs,
        rank,
      ]);
      return {
        camera_id,
        ...(page.next === undefined ? {} : { next: page.next }),
        from: isoTime(report.fromMs),
        to: isoTime(report.toMs),
        from_ms: report.fromMs,
        to_ms: report.toMs,
        known_until: isoTime(report.knownUntilMs),
        known_until_ms: report.knownUntilMs,
        gaps: page.entries.flatMap(({ gap }) => (gap ? [gap] : [])),
        wanted_seconds: report.wantedMs / 1000,
        recorded_seconds: report.recordedMs / 1000,
        missing_seconds: (report.wantedMs - report.recordedMs) / 1000,
        filled_seconds: report.filled.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0) / 1000,
        seconds_by_cause: secondsByCause(report.gaps),
        ...(report.elsewhere && { elsewhere: report.elsewhere.map(toElsewhere) }),
        ...(query.footage && {
          footage: report.footage.map((part) => ({ start_ms: part.fromMs, end_ms: part.toMs })),
        }),
        degraded: page.entries.flatMap(({ degraded }) => (degraded ? [toDegraded(degraded)] : [])),
      };
    },
  );
};
