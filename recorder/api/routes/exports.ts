// `/api/archive/{camera_id}/export` and `/timelapse`: jobs that make a movie of a window of one camera.

import type { FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { footageOf } from '../../audit/entry.ts';
import { callerOf } from '../../http/access.ts';
import { tell } from '../../http/audit.ts';
import { problemResponse, unknownCamera } from '../../http/problem.ts';
import { EpochSeconds, flag, queryNumber } from '../../http/query.ts';
import { JOB_ERROR_CODES, JobError } from '../../jobs/error.ts';
import type { JobRequest } from '../../jobs/job.ts';
import { isKnownCamera, type ApiDeps, type JobKeeper } from '../deps.ts';
import { Gap, JOB, KnownUntil, toGap, toKnownUntil, toWindow, WINDOW } from '../job-item.ts';
import { checkWindow } from '../job-window.ts';
import { Submitted, available, requireFfmpeg, toSubmitted } from '../submitted-job.ts';
import { SUBMITTED } from '../examples.ts';

const Window = z.object({
  from: EpochSeconds.describe('Start of the window, seconds since 1970.'),
  to: EpochSeconds.describe('End of the window, at most four hours later.'),
});

const ExportQuery = Window.extend({
  dry_run: flag().optional().describe('1: only estimate how long and how large the result would be; no job is made.'),
});

const SPEED = 'expected a whole number from 2 to 120';
const TimelapseQuery = Window.extend({
  speed: queryNumber(z.int(SPEED).min(2, SPEED).max(120, SPEED)).describe('How many times faster.'),
});

const CameraParams = z.object({ camera_id: z.string() });

const Estimate = z
  .object({
    camera_id: z.string(),
    from: z.number().int(),
    to: z.number().int(),
    from_ms: z.number().int(),
    to_ms: z.number().int(),
    duration_seconds: z.number(),
    size_bytes: z.number().int(),
    gaps: z.array(Gap),
    known_until_ms: KnownUntil,
    reason: z.string().optional().describe('Why an export of this window would fail.'),
    reason_code: z.enum(JOB_ERROR_CODES).optional(),
  })
  .meta({ id: 'Estimate', description: 'Duration and size that an export would have; no job is made.' });

const refusals = {
  400: problemResponse('A parameter is missing or wrong; the detail names it.'),
  401: problemResponse('No token, or a wrong one.'),
  403: problemResponse('This needs the right to export: the role operator, or a viewer with it.'),
  404: problemResponse('There is no such camera and no footage of it.'),
  413: problemResponse('The window is longer than four hours.'),
  503: problemResponse('ffmpeg or Redis is missing on the node; the detail says how to install it.'),
};

type ExportDeps = Pick<ApiDeps, 'cameras' | 'archive' | 'clock'> & { readonly jobs: JobKeeper };

export const exportRoutes: FastifyPluginAsyncZod<{ deps: ExportDeps }> = async (app, { deps }) => {
  const { jobs, clock } = deps;

  async function submit(request: FastifyRequest, wanted: JobRequest): Promise<z.output<typeof Submitted>> {
    await requireFfmpeg(jobs);
    const job = await available(jobs.submit(wanted));
    tell(request, { job: job.id });
    return toSubmitted(job);
  }

  /** The requested window of a known camera. Throws ApiError. */
  function windowOf(request: FastifyRequest, cameraId: string, query: z.output<typeof Window>) {
    tell(request, footageOf({ fromMs: query.from * 1000, toMs: query.to * 1000 }));
    if (!isKnownCamera(deps, cameraId)) throw unknownCamera();
    return { cameraId, ...checkWindow(query) };
  }

  async function estimate(request: JobRequest): Promise<z.output<typeof Estimate>> {
    const { cameraId, fromMs, toMs } = request;
    const about = { camera_id: cameraId, ...toWindow({ fromMs, toMs }) };
    try {
      const outcome = await jobs.estimate(request);
      const { durationMs, sizeBytes, gaps } = outcome;
      const duration_seconds = Math.round(durationMs) / 1000;
      return { ...about, duration_seconds, size_bytes: sizeBytes, gaps: gaps.map(toGap), ...toKnownUntil(outcome) };
    } catch (err) {
      if (!(err instanceof JobError)) throw err;
      const overMs = Math.min(toMs, clock.wallMs());
      const gaps = err.code === 'no-footage' && fromMs < overMs ? [toGap({ fromMs, toMs: overMs })] : [];
      return { ...about, duration_seconds: 0, size_bytes: 0, gaps, reason: err.message, reason_code: err.code };
    }
  }

  app.post(
    '/api/archive/:camera_id/export',
    {
      config: {
        role: 'viewer',
        right: 'export',
        cameras: { param: 'camera_id' },
        audit: 'export',
        examples: {
          200: {
            ...WINDOW,
            duration_seconds: 588.4,
            size_bytes: 297_400_000,
            gaps: JOB.gaps,
          },
          202: SUBMITTED,
        },
      },
      schema: {
        operationId: 'exportFootage',
        summary: 'Export a window of the archive as one MP4 file, without re-encoding',
        tags: ['jobs'],
        params: CameraParams,
        querystring: ExportQuery,
        response: { 200: Estimate, 202: Submitted, ...refusals },
      },
    },
    async (request, reply) => {
      const { params, query } = request;
      if (query.dry_run) tell(request, { what: 'estimate' });
      const by = callerOf(request).name;
      const wanted = { kind: 'export', ...windowOf(request, params.camera_id, query), by } as const;
      if (query.dry_run) return reply.code(200).send(await estimate(wanted));
      return reply.code(202).send(await submit(request, wanted));
    },
  );

  app.post(
    '/api/archive/:camera_id/timelapse',
    {
      config: {
        role: 'viewer',
        right: 'export',
        cameras: { param: 'camera_id' },
        audit: 'timelapse',
        examples: { 202: SUBMITTED },
      },
      schema: {
        operationId: 'makeTimelapse',
        summary: 'Make a time-lapse of a window of the archive, without sound',
        tags: ['jobs'],
        params: CameraParams,
        querystring: TimelapseQuery,
        response: { 202: Submitted, ...refusals },
      },
    },
    async (request, reply) => {
      const { params, query } = request;
      const { speed } = query;
      const by = callerOf(request).name;
      const wanted = { kind: 'timelapse', ...windowOf(request, params.camera_id, query), speed, by } as const;
      return reply.code(202).send(await submit(request, wanted));
    },
  );
};
