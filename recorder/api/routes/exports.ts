// `/api/archive/{camera_id}/export` and `/timelapse`: jobs that make a movie of a window of one camera.

import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { causesIn } from '../../footage/elsewhere.ts';
import { footageOf } from '../../audit/entry.ts';
import { askerOf, callerOf } from '../../http/access.ts';
import { tell } from '../../http/audit.ts';
import { problemResponse, unknownCamera } from '../../http/problem.ts';
import { EpochSeconds, flag, queryNumber } from '../../http/query.ts';
import { JOB_ERROR_CODES, JobError } from '../../jobs/error.ts';
import type { JobRequest } from '../../jobs/job.ts';
import { withCauses } from '../../jobs/gap-causes.ts';
import { isKnownCamera, type ApiRoutes } from '../deps.ts';
import { Gap, JOB, KnownUntil, toGap, toKnownUntil, toWindow, WINDOW } from '../job-item.ts';
import { checkWindow } from '../job-window.ts';
import { ElsewhereItem, toElsewhere } from '../../footage/elsewhere-item.ts';
import { Submitted, available, requireFfmpeg, toSubmitted } from '../submitted-job.ts';
import { SUBMITTED } from '../examples.ts';

const Window = z.object({
  from: EpochSeconds.describe('Start of the window, seconds since 1970.'),
  to: EpochSeconds.describe('End of the window, at most four hours later.'),
});

const Scope = Window.extend({
  scope: z
    .enum(['node', 'cluster'], 'expected node or cluster')
    .optional()
    .describe('node, the default: the footage of this node. cluster: the footage of all nodes, as one result.'),
  dry_run: flag().optional().describe('1: only estimate how long and how large the result would be; no job is made.'),
});

const ExportQuery = Scope.extend({
  as_part: flag()
    .optional()
    .describe('1: the job is not listed. Nodes of version 0.1.0 ask so for their part of an export of several nodes.'),
});

const SPEED = 'expected a whole number from 2 to 120';
const TimelapseQuery = Scope.extend({
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
    elsewhere: z
      .array(ElsewhereItem)
      .describe('Footage of the window on other nodes, which would not be in the result.'),
    known_until_ms: KnownUntil,
    reason: z.string().optional().describe('Why an export of this window would fail.'),
    reason_code: z.enum(JOB_ERROR_CODES).optional(),
  })
  .meta({
    id: 'Estimate',
    description: 'Duration and size that an export or a time-lapse would have; no job is made.',
  });

const ESTIMATE = { ...WINDOW, duration_seconds: 588.4, size_bytes: 297_400_000, gaps: JOB.gaps, elsewhere: [] };

const refusals = {
  403: problemResponse('This needs the right to export: the role operator, or a viewer with it.'),
  404: problemResponse('There is no such camera and no footage of it.'),
  413: problemResponse('The window is longer than four hours.'),
  503: problemResponse('ffmpeg or Redis is missing on the node; the detail says how to install it.'),
};

export const exportRoutes: ApiRoutes = async (app, { deps }) => {
  const { jobs, cluster, clock } = deps;

  async function submit(request: FastifyRequest, wanted: JobRequest): Promise<z.output<typeof Submitted>> {
    await requireFfmpeg(jobs);
    const job = await available(jobs.submit(wanted));
    tell(request, { job: job.id });
    return toSubmitted(job);
  }

  /** The requested window of a known camera. Throws ApiError. */
  async function windowOf(request: FastifyRequest, cameraId: string, query: z.output<typeof Scope>) {
    tell(request, footageOf({ fromMs: query.from * 1000, toMs: query.to * 1000 }));
    const isOfAllNodes = query.scope === 'cluster';
    if (!(await isKnownCamera(deps, cameraId, isOfAllNodes))) throw unknownCamera();
    return { cameraId, ...checkWindow(query), ...(isOfAllNodes && { isOfAllNodes }) };
  }

  async function estimate(request: FastifyRequest, wanted: JobRequest): Promise<z.output<typeof Estimate>> {
    const { cameraId, fromMs, toMs } = wanted;
    const about = { camera_id: cameraId, ...toWindow({ fromMs, toMs }) };
    try {
      const outcome = await jobs.estimate(wanted);
      const { durationMs, sizeBytes, gaps, elsewhere = [] } = outcome;
      return {
        ...about,
        duration_seconds: Math.round(durationMs) / 1000,
        size_bytes: sizeBytes,
        gaps: gaps.map(toGap),
        elsewhere: elsewhere.map(toElsewhere),
        ...toKnownUntil(outcome),
      };
    } catch (err) {
      if (!(err instanceof JobError)) throw err;
      const overMs = Math.min(toMs, clock.wallMs());
      const isEmpty = err.code === 'no-footage' && fromMs < overMs;
      const known = isEmpty ? await deps.gaps.report(cameraId, fromMs, toMs, askerOf(request)) : undefined;
      const missing = known ? withCauses([{ fromMs, toMs: overMs }], causesIn(known), known.elsewhere) : [];
      return {
        ...about,
        duration_seconds: 0,
        size_bytes: 0,
        gaps: missing.map(toGap),
        elsewhere: (known?.elsewhere ?? []).map(toElsewhere),
        reason: err.message,
        reason_code: err.code,
      };
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
          200: ESTIMATE,
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
      const { as_part: isPart, dry_run: isDry } = query;
      if (isDry) tell(request, { what: 'estimate' });
      const by = callerOf(request).name;
      await cluster?.lookAtNodes();
      const window = await windowOf(request, params.camera_id, query);
      const wanted = { kind: 'export', ...window, by, ...(isPart && { isPart: true }) } as const;
      if (isDry) return reply.code(200).send(await estimate(request, wanted));
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
        examples: { 200: ESTIMATE, 202: SUBMITTED },
      },
      schema: {
        operationId: 'makeTimelapse',
        summary: 'Make a time-lapse of a window of the archive, without sound',
        tags: ['jobs'],
        params: CameraParams,
        querystring: TimelapseQuery,
        response: { 200: Estimate, 202: Submitted, ...refusals },
      },
    },
    async (request, reply) => {
      const { params, query } = request;
      const { speed, dry_run: isDry } = query;
      if (isDry) tell(request, { what: 'estimate' });
      const by = callerOf(request).name;
      await cluster?.lookAtNodes();
      const wanted = { kind: 'timelapse', ...(await windowOf(request, params.camera_id, query)), speed, by } as const;
      if (isDry) return reply.code(200).send(await estimate(request, wanted));
      return reply.code(202).send(await submit(request, wanted));
    },
  );
};
