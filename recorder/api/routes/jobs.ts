// `/api/archive/{camera_id}/export` and `/timelapse`, and the jobs that they start: state, result, end.

import { createReadStream } from 'node:fs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { JobError } from '../../jobs/error.ts';
import type { Job, JobGap, JobRequest } from '../../jobs/job.ts';
import { callerOf } from '../../http/access.ts';
import { ApiError, problemResponse, unknownCamera } from '../../http/problem.ts';
import { isKnownCamera, type ApiDeps, type JobKeeper } from '../deps.ts';
import { EpochSeconds } from '../interval.ts';
import { Submitted, available, requireFfmpeg, toSubmitted } from '../submitted-job.ts';
import { singleRange } from '../single-range.ts';
import { epochSeconds, isoTime } from '../times.ts';

const MAX_WINDOW_SECONDS = 4 * 3_600;

const Window = z.object({
  from: EpochSeconds.describe('Start of the window, seconds since 1970.'),
  to: EpochSeconds.describe('End of the window, at most four hours later.'),
});

const ExportQuery = Window.extend({
  dry_run: z.enum(['0', '1']).default('0').describe('1: how long and how large it would be; makes no job.'),
});

const SPEED = 'expected a whole number from 2 to 120';
const TimelapseQuery = Window.extend({
  speed: z
    .string({ error: SPEED })
    .regex(/^\d+$/, SPEED)
    .transform(Number)
    .refine((speed) => speed >= 2 && speed <= 120, SPEED)
    .describe('How many times faster, 2 to 120.'),
});

const CameraParams = z.object({ camera_id: z.string() });
const JobParams = z.object({ job_id: z.string() });

const Gap = z.object({
  start: z.iso.datetime({ offset: true }),
  end: z.iso.datetime({ offset: true }),
  cause: z.string().optional().describe('As in the list of gaps, as far as it is known.'),
});

const JobItem = z.object({
  job_id: z.string(),
  camera_id: z.string(),
  from: z.number().describe('Seconds since 1970. Of an assembly: 0 until the other nodes have said it.'),
  to: z.number(),
  created_at: z.number().int(),
  completed_at: z.number().int().optional().describe('When it is done or failed.'),
  kind: z.enum(['export', 'timelapse']),
  speed: z.number().int().optional(),
  state: z.enum(['pending', 'running', 'done', 'failed']),
  progress: z.number().int().describe('0 to 100.'),
  size_bytes: z.number().int().optional().describe('When it is done.'),
  duration_seconds: z.number().optional(),
  gaps: z.array(Gap).optional().describe('Parts of the window without footage; the movie goes on without them.'),
  reason: z.string().optional().describe('When it failed.'),
});

const Estimate = z.object({
  camera_id: z.string(),
  from: z.number(),
  to: z.number(),
  duration_seconds: z.number(),
  size_bytes: z.number().int(),
  gaps: z.array(Gap),
  reason: z.string().optional().describe('Why an export of this window would fail.'),
});

const toGap = ({ fromMs, toMs, cause }: JobGap): z.output<typeof Gap> => ({
  start: isoTime(fromMs),
  end: isoTime(toMs),
  ...(cause === undefined ? {} : { cause }),
});

function toItem(job: Job): z.output<typeof JobItem> {
  const { outcome } = job;
  return {
    job_id: job.id,
    camera_id: job.cameraId,
    from: job.fromMs / 1000,
    to: job.toMs / 1000,
    created_at: epochSeconds(job.createdAtMs),
    ...(job.completedAtMs === undefined ? {} : { completed_at: epochSeconds(job.completedAtMs) }),
    kind: job.kind,
    ...(job.speed === undefined ? {} : { speed: job.speed }),
    state: job.state,
    progress: Math.round(job.progress * 100),
    ...(outcome && {
      size_bytes: outcome.sizeBytes,
      duration_seconds: Math.round(outcome.durationMs) / 1000,
      gaps: outcome.gaps.map(toGap),
    }),
    ...(job.reason === undefined ? {} : { reason: job.reason }),
  };
}

function checkWindow({ from, to }: z.output<typeof Window>): { fromMs: number; toMs: number } {
  if (from >= to) throw new ApiError(400, 'invalid-interval', 'from: expected a time before to');
  if (to - from > MAX_WINDOW_SECONDS) {
    throw new ApiError(413, 'window-too-long', 'to: expected at most 4 hours after from');
  }
  return { fromMs: from * 1000, toMs: to * 1000 };
}

const unknownJob = (): ApiError => new ApiError(404, 'no-such-job', 'this node has no job of this id');

/** A file name that sorts by camera and time: `gate_20261121T100000Z.mp4`. */
function fileNameOf({ cameraId, fromMs, kind, speed }: Job): string {
  const time = new Date(fromMs).toISOString().replace(/[-:]|\.\d+/g, '');
  const camera = cameraId.replace(/[^A-Za-z0-9.-]/g, '-');
  return `${camera}_${time}${kind === 'timelapse' ? `_x${speed}` : ''}.mp4`;
}

const refusals = {
  400: problemResponse('A parameter is missing or wrong; the detail names it.'),
  401: problemResponse('No token, or a wrong one.'),
  403: problemResponse('This needs the role operator.'),
  404: problemResponse('There is no such camera, and no footage of it.'),
  413: problemResponse('The window is longer than four hours.'),
  503: problemResponse('ffmpeg or Redis is missing on the node; the detail says how to install it.'),
};
const questions = {
  401: refusals[401],
  404: problemResponse('This node has no job of this id.'),
  503: problemResponse('The jobs cannot be read: Redis does not answer.'),
};

type Deps = Pick<ApiDeps, 'cameras' | 'protections'> & { readonly jobs: JobKeeper };

export const jobRoutes: FastifyPluginAsyncZod<{ deps: Deps }> = async (app, { deps }) => {
  const { jobs } = deps;

  async function submit(request: JobRequest): Promise<z.output<typeof Submitted>> {
    await requireFfmpeg(jobs);
    return toSubmitted(await available(jobs.submit(request)));
  }

  async function find(id: string, request: FastifyRequest): Promise<Job> {
    const job = await available(jobs.get(id));
    if (!job || !callerOf(request).sees(job.cameraId)) throw unknownJob();
    return job;
  }

  /** The window that a caller asks for, of a camera that there is. */
  function windowOf(cameraId: string, query: z.output<typeof Window>) {
    if (!isKnownCamera(deps, cameraId)) throw unknownCamera();
    return { cameraId, ...checkWindow(query) };
  }

  async function estimate(request: JobRequest): Promise<z.output<typeof Estimate>> {
    const { cameraId, fromMs, toMs } = request;
    const about = { camera_id: cameraId, from: fromMs / 1000, to: toMs / 1000 };
    try {
      const { durationMs, sizeBytes, gaps } = await jobs.estimate(request);
      const duration_seconds = Math.round(durationMs) / 1000;
      return { ...about, duration_seconds, size_bytes: sizeBytes, gaps: gaps.map(toGap) };
    } catch (err) {
      if (!(err instanceof JobError)) throw err;
      const gaps = err.code === 'no-footage' ? [toGap({ fromMs, toMs })] : [];
      return { ...about, duration_seconds: 0, size_bytes: 0, gaps, reason: err.message };
    }
  }

  app.post(
    '/api/archive/:camera_id/export',
    {
      config: { role: 'operator', cameras: { param: 'camera_id' } },
      schema: {
        summary: 'A window of the archive as one MP4, without re-encoding',
        tags: ['jobs'],
        params: CameraParams,
        querystring: ExportQuery,
        response: { 200: Estimate, 202: Submitted, ...refusals },
      },
    },
    async ({ params, query }, reply) => {
      const request = { kind: 'export', ...windowOf(params.camera_id, query) } as const;
      if (query.dry_run === '1') return reply.code(200).send(await estimate(request));
      return reply.code(202).send(await submit(request));
    },
  );

  app.post(
    '/api/archive/:camera_id/timelapse',
    {
      config: { role: 'operator', cameras: { param: 'camera_id' } },
      schema: {
        summary: 'A window of the archive, faster and without sound',
        tags: ['jobs'],
        params: CameraParams,
        querystring: TimelapseQuery,
        response: { 202: Submitted, ...refusals },
      },
    },
    async ({ params, query }, reply) => {
      const { speed } = query;
      const request = { kind: 'timelapse', ...windowOf(params.camera_id, query), speed } as const;
      return reply.code(202).send(await submit(request));
    },
  );

  app.get(
    '/api/archive/jobs',
    {
      config: { role: 'viewer', cameras: 'filtered' },
      schema: {
        summary: 'The jobs of this node, newest first',
        tags: ['jobs'],
        response: { 200: z.object({ jobs: z.array(JobItem) }), 401: questions[401], 503: questions[503] },
      },
    },
    async (request) => {
      const { sees } = callerOf(request);
      const seen = (await available(jobs.list())).filter(({ cameraId }) => sees(cameraId));
      return { jobs: seen.map(toItem) };
    },
  );

  app.get(
    '/api/archive/jobs/:job_id',
    {
      config: { role: 'viewer', cameras: 'filtered' },
      schema: {
        summary: 'State of a job',
        tags: ['jobs'],
        params: JobParams,
        response: { 200: JobItem, ...questions },
      },
    },
    async (request) => toItem(await find(request.params.job_id, request)),
  );

  app.delete(
    '/api/archive/jobs/:job_id',
    {
      config: { role: 'operator', cameras: 'filtered' },
      schema: {
        summary: 'Cancels a job, or removes it and its result',
        tags: ['jobs'],
        params: JobParams,
        response: { 204: z.null().describe('It is gone.'), 403: refusals[403], ...questions },
      },
    },
    async (request, reply) => {
      const { id } = await find(request.params.job_id, request);
      if (!(await available(jobs.remove(id)))) throw unknownJob();
      return reply.code(204).send(null);
    },
  );

  app.get(
    '/api/archive/jobs/:job_id/download',
    {
      config: { role: 'viewer', credentials: 'header-or-query', cameras: 'filtered' },
      schema: {
        summary: 'The movie that a job made',
        description: 'Ranges are answered. 202 with the state of the job while it is not done.',
        tags: ['jobs'],
        params: JobParams,
        querystring: z.object({
          download: z.string().optional().describe('1: as an attachment.'),
          access_token: z.string().optional(),
        }),
        response: {
          202: JobItem,
          409: problemResponse('The job failed; the detail is its reason.'),
          410: problemResponse('The result has expired, one hour after the job was done.'),
          416: problemResponse('The range lies behind the end.'),
          ...questions,
        },
      },
    },
    async (request, reply) => {
      const job = await find(request.params.job_id, request);
      if (job.state === 'pending' || job.state === 'running') {
        return reply.code(202).header('retry-after', '1').send(toItem(job));
      }
      if (job.state === 'failed') throw new ApiError(409, 'job-failed', job.reason ?? 'the job failed');
      const result = await jobs.result(job);
      if (!result) throw new ApiError(410, 'result-expired', 'the result has expired: ask for the window again');
      const disposition = request.query.download === '1' ? 'attachment' : 'inline';
      reply.header('content-disposition', `${disposition}; filename="${fileNameOf(job)}"`);
      reply.header('etag', `"${job.id}-${result.sizeBytes.toString(16)}"`);
      return sendFile(request, reply, result);
    },
  );
};

/** Answers with a file that does not change, or with one range of it (RFC 9110 §14). */
function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  { path, sizeBytes, modifiedMs }: { path: string; sizeBytes: number; modifiedMs: number },
): FastifyReply {
  const ifRange = request.headers['if-range'];
  const applies = ifRange === undefined || ifRange === reply.getHeader('etag');
  const range = request.method === 'GET' && applies ? singleRange(request.headers.range, sizeBytes) : undefined;
  if (range === 'unsatisfiable') {
    reply.header('content-range', `bytes */${sizeBytes}`).removeHeader('content-disposition');
    throw new ApiError(416, 'range-not-satisfiable', `Range: the movie has ${sizeBytes} bytes`);
  }
  const { from, to } = range ?? { from: 0, to: sizeBytes };
  if (range) reply.code(206).header('content-range', `bytes ${from}-${to - 1}/${sizeBytes}`);
  reply.headers({
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-cache',
    'content-length': to - from,
    'content-type': 'video/mp4',
    'last-modified': new Date(modifiedMs).toUTCString(),
    'x-content-type-options': 'nosniff',
  });
  const body = createReadStream(path, { start: from, end: Math.max(from, to - 1), highWaterMark: 256 * 1024 });
  return reply.serializer((payload: unknown) => payload as string).send(body);
}
