// `/api/archive/{camera_id}/gaps`: what was to be recorded and is not, and why.

import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Gap } from '../../archive/gaps/camera-ledger.ts';
import { GAP_CAUSES, type GapCause } from '../../archive/gaps/cause.ts';
import { visibleCamera } from '../../http/access.ts';
import { problemResponse } from '../../http/problem.ts';
import type { ApiDeps } from '../deps.ts';
import { IntervalQuery, readable, toQuery } from '../interval.ts';
import { isoTime } from '../times.ts';

const Cause = z.enum(GAP_CAUSES);

const GapItem = z.object({
  start: z.iso.datetime({ offset: true }),
  end: z.iso.datetime({ offset: true }),
  start_ms: z.number().int().describe('The same in milliseconds since 1970.'),
  end_ms: z.number().int(),
  seconds: z.number(),
  cause: Cause,
  is_open: z.boolean().describe('It lasts until now.'),
});

const Gaps = z.object({
  camera_id: z.string(),
  from: z.iso.datetime({ offset: true }),
  to: z.iso.datetime({ offset: true }),
  known_until: z.iso
    .datetime({ offset: true })
    .describe('What lies behind this, at most some seconds up to now, is being written or not understood yet.'),
  known_until_ms: z.number().int(),
  gaps: z.array(GapItem).describe('Oldest first, without overlap.'),
  wanted_seconds: z.number().describe('Time up to known_until in which the camera was configured on this node.'),
  recorded_seconds: z.number().describe('Of that, time with footage: wanted_seconds without the gaps.'),
  missing_seconds: z.number().describe('All gaps together, also those that a user wanted.'),
  seconds_by_cause: z.partialRecord(Cause, z.number()).describe('Causes that occur.'),
});

const toGap = ({ fromMs, toMs, cause, isOpen }: Gap): z.output<typeof GapItem> => ({
  start: isoTime(fromMs),
  end: isoTime(toMs),
  start_ms: fromMs,
  end_ms: toMs,
  seconds: (toMs - fromMs) / 1000,
  cause,
  is_open: isOpen,
});

function secondsByCause(gaps: readonly Gap[]): Partial<Record<GapCause, number>> {
  const sums = new Map<GapCause, number>();
  for (const { fromMs, toMs, cause } of gaps) sums.set(cause, (sums.get(cause) ?? 0) + toMs - fromMs);
  return Object.fromEntries(Array.from(sums, ([cause, ms]) => [cause, ms / 1000]));
}

export const gapRoutes: FastifyPluginAsyncZod<{ deps: Pick<ApiDeps, 'gaps' | 'clock'> }> = async (
  app,
  { deps: { gaps, clock } },
) => {
  app.get(
    '/api/archive/:camera_id/gaps',
    {
      config: { role: 'viewer', cameras: 'filtered' },
      schema: {
        summary: 'Time without footage of a camera in an interval, and why',
        description:
          'Gaps and footage together are the time in which the camera was configured. What retention has removed was recorded and is no gap. A camera that the node does not know has none. Without from and to: the current day. Only one of them: the day that starts or ends there.',
        tags: ['archive'],
        params: z.object({ camera_id: z.string() }),
        querystring: IntervalQuery,
        response: {
          200: Gaps,
          400: problemResponse(
            'A boundary is no number, from is later than to, or the interval is wider than 25 hours.',
          ),
          401: problemResponse('No token, or a wrong one.'),
          500: problemResponse('The archive on the disk cannot be read.'),
        },
      },
    },
    async (request) => {
      const { camera_id } = request.params;
      const { fromMs, toMs } = toQuery(request.query, clock.wallMs());
      const cameraId = visibleCamera(request, camera_id);
      const report = await readable(gaps.report(cameraId, Math.round(fromMs), Math.round(toMs)));
      return {
        camera_id,
        from: isoTime(report.fromMs),
        to: isoTime(report.toMs),
        known_until: isoTime(report.knownUntilMs),
        known_until_ms: report.knownUntilMs,
        gaps: report.gaps.map(toGap),
        wanted_seconds: report.wantedMs / 1000,
        recorded_seconds: report.recordedMs / 1000,
        missing_seconds: (report.wantedMs - report.recordedMs) / 1000,
        seconds_by_cause: secondsByCause(report.gaps),
      };
    },
  );
};
