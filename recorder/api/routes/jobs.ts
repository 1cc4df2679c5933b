// `/api/archive/{camera_id}/export` and `/timelapse`, and the jobs that they start: state, result, manifest and removal.

import { createReadStream } from 'node:fs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { footageOf } from '../../audit/entry.ts';
import { JOB_ERROR_CODES, JobError } from '../../jobs/error.ts';
import {
  RESULT_KEPT_MS,
  camerasOf,
  isExpired,
  type CameraOutcome,
  type JobOutcome,
  type Job,
  type JobGap,
  type JobPart,
  type JobRequest,
} from '../../jobs/job.ts';
import { Manifest, SIGNATURE_BYTES } from '../../jobs/manifest.ts';
import { codecName, movieName } from '../../jobs/movie-name.ts';
import { callerOf } from '../../http/access.ts';
import { tell, visit } from '../../http/audit.ts';
import { contentRange } from '../../http/byte-range.ts';
import { Bytes } from '../../http/openapi.ts';
import { ApiError, problemResponse, unknownCamera } from '../../http/problem.ts';
import { select } from '../../http/selection.ts';
import { isKnownCamera, type ApiDeps, type JobKeeper } from '../deps.ts';
import { EpochSeconds, flag, queryNumber } from '../../http/query.ts';
import { checkWindow } from '../job-window.ts';
import { Next, PageQuery, pageOf, placeOf } from '../pages.ts';
import { Submitted, available, requireFfmpeg, toSubmitted } from '../submitted-job.ts';
import { epochSeconds, isoTime } from '../times.ts';

const Window = z.object({
  from: EpochSeconds.describe('Start of the window, seconds since 1970.'),
  to: EpochSeconds.describe('End of the window, at most four hours later.'),
});

const ExportQuery = Window.extend({
  dry_run: flag().optional().describe('1: only estimate how long and how large the result would be; no job is made.'),
});

const PART = 'expected the number of a part, from 1';
const SPEED = 'expected a whole number from 2 to 120';
const TimelapseQuery = Window.extend({
  speed: queryNumber(z.int(SPEED).min(2, SPEED).max(120, SPEED)).describe('How many times faster.'),
});

const CameraParams = z.object({ camera_id: z.string() });
const JobParams = z.object({ job_id: z.string() });

const Gap = z
  .object({
    start: z.iso.datetime({ offset: true }),
    end: z.iso.datetime({ offset: true }),
    cause: z.string().optional().describe('The cause as in the list of gaps, as far as it is known.'),
  })
  .meta({ id: 'JobGap', description: 'A part of a window without footage.' });

const KnownUntil = z
  .number()
  .int()
  .optional()
  .describe(
    'For a window that was not over: the end of its known part. Later footage is neither in the movie nor listed as a gap.',
  );

const JobPartItem = z
  .object({
    part: z.number().int().describe('Number of the part, from 1.'),
    camera_id: z.string().optional().describe('Of a part of a case: its camera.'),
    name: z.string().describe('Name of the file in the ZIP file.'),
    codec: z.string().describe('h264, h265, av1, mjpeg, aac …'),
    from_ms: z.number().int().describe('Start of the time that the part covers, milliseconds since 1970.'),
    to_ms: z.number().int(),
    duration_seconds: z.number(),
    size_bytes: z.number().int(),
    offset: z
      .number()
      .int()
      .describe('Where the bytes of the part begin in the ZIP file, which stores them uncompressed.'),
    download_url: z.string(),
  })
  .meta({ id: 'JobPart', description: 'One of the movies of a result that has several.' });

const CaseCamera = z
  .object({
    camera_id: z.string(),
    duration_seconds: z
      .number()
      .optional()
      .describe('When the job is done: duration of the movies of this camera together.'),
    gaps: z.array(Gap).optional().describe('When the job is done.'),
    reason: z.string().optional().describe('When the job is done: why there is no movie of this camera.'),
    reason_code: z.enum(JOB_ERROR_CODES).optional(),
  })
  .meta({ id: 'CaseCamera', description: 'A camera of a case.' });

const JobItem = z
  .object({
    job_id: z.string(),
    camera_id: z.string().describe('The camera; of a case, the first of its cameras.'),
    cameras: z.array(CaseCamera).optional().describe('Of a case: all its cameras.'),
    name: z.string().optional().describe('Of a case: its name, as it was given.'),
    from: z
      .number()
      .int()
      .optional()
      .describe(
        'The window in whole seconds since 1970: rounded down. Of an assembly: only once the other nodes have reported it.',
      ),
    to: z.number().int().optional().describe('End of the window, rounded up to whole seconds.'),
    from_ms: z.number().int().optional().describe('Start of the requested window, milliseconds since 1970.'),
    to_ms: z.number().int().optional(),
    created_at: z.number().int(),
    completed_at: z.number().int().optional().describe('When the job was done or failed, seconds since 1970.'),
    expires_at: z
      .number()
      .int()
      .optional()
      .describe('Of a job that is done: until when its result can be downloaded, seconds since 1970.'),
    is_expired: z
      .boolean()
      .optional()
      .describe('Of a job that is done: whether its result can no longer be downloaded.'),
    kind: z.enum(['export', 'timelapse']),
    speed: z.number().int().optional(),
    state: z.enum(['pending', 'running', 'done', 'failed']),
    progress: z.number().int().describe('0 to 100.'),
    size_bytes: z.number().int().optional().describe('Of a job that is done: size of its result.'),
    duration_seconds: z.number().optional(),
    gaps: z.array(Gap).optional().describe('Parts of the window without footage; the movie skips them.'),
    known_until_ms: KnownUntil,
    parts: z
      .array(JobPartItem)
      .optional()
      .describe('Of a case, and where the codec changed in the window: the movies in the ZIP file that is the result.'),
    manifest_url: z.string().optional().describe('Of a job that is done: where its manifest is.'),
    signature_url: z.string().optional(),
    reason: z.string().optional().describe('Of a job that failed: why.'),
    reason_code: z.enum(JOB_ERROR_CODES).optional().describe('The reason as a stable code for programs.'),
  })
  .meta({ id: 'Job', description: 'An export, time-lapse, case or assembly, and its progress.' });

const JobList = z
  .object({ jobs: z.array(JobItem), next: Next })
  .meta({ id: 'JobList', description: 'Jobs of the node, newest first.' });

/** Newest first. */
const JobPlace = z.tuple([z.literal('jobs'), z.number(), z.string()]);

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

const toGap = ({ fromMs, toMs, cause }: JobGap): z.output<typeof Gap> => ({
  start: isoTime(fromMs),
  end: isoTime(toMs),
  ...(cause === undefined ? {} : { cause }),
});

const toPart = (id: string, part: JobPart, number: number): z.output<typeof JobPartItem> => ({
  part: number,
  ...(part.cameraId === undefined ? {} : { camera_id: part.cameraId }),
  name: part.name,
  codec: codecName(part.codec),
  from_ms: Math.round(part.fromMs),
  to_ms: Math.round(part.toMs),
  duration_seconds: Math.round(part.durationMs) / 1000,
  size_bytes: part.sizeBytes,
  offset: part.offset,
  download_url: `/api/archive/jobs/${id}/download?part=${number}`,
});

/** Whole seconds around the window, and its milliseconds. */
const toWindow = ({ fromMs, toMs }: Pick<Job, 'fromMs' | 'toMs'>) => ({
  from: Math.floor(fromMs / 1000),
  to: Math.ceil(toMs / 1000),
  from_ms: fromMs,
  to_ms: toMs,
});

function toItem(job: Job, nowMs: number): z.output<typeof JobItem> {
  const { outcome } = job;
  return {
    job_id: job.id,
    camera_id: job.cameraId,
    ...(job.case && { cameras: toCameras(job) }),
    ...(job.case?.name === undefined ? {} : { name: job.case.name }),
    ...(isWindowKnown(job) && toWindow(job)),
    created_at: epochSeconds(job.createdAtMs),
    ...(job.completedAtMs === undefined ? {} : { completed_at: epochSeconds(job.completedAtMs) }),
    ...(job.state === 'done' && {
      expires_at: epochSeconds((job.completedAtMs ?? 0) + RESULT_KEPT_MS),
      is_expired: isExpired(job, nowMs),
    }),
    kind: job.kind,
    ...(job.speed === undefined ? {} : { speed: job.speed }),
    state: job.state,
    progress: Math.round(job.progress * 100),
    ...(outcome && {
      size_bytes: outcome.sizeBytes,
      duration_seconds: Math.round(outcome.durationMs) / 1000,
      ...(job.case ? {} : { gaps: outcome.gaps.map(toGap) }),
      ...toKnownUntil(outcome),
      ...(outcome.parts && { parts: outcome.parts.map((part, i) => toPart(job.id, part, i + 1)) }),
      manifest_url: `/api/archive/jobs/${job.id}/manifest`,
      signature_url: `/api/archive/jobs/${job.id}/signature`,
    }),
    ...(job.reason === undefined ? {} : { reason: job.reason, reason_code: job.reasonCode }),
  };
}

const toKnownUntil = ({ untilMs }: JobOutcome): { known_until_ms?: number } =>
  untilMs === undefined ? {} : { known_until_ms: untilMs };

function toCameras({ outcome, ...job }: Job): z.output<typeof CaseCamera>[] {
  if (!outcome?.cameras) return camerasOf(job).map((camera_id) => ({ camera_id }));
  return outcome.cameras.map(({ cameraId, durationMs, gaps, reason, reasonCode }: CameraOutcome) => ({
    camera_id: cameraId,
    duration_seconds: Math.round(durationMs) / 1000,
    gaps: gaps.map(toGap),
    ...(reason === undefined ? {} : { reason, reason_code: reasonCode }),
  }));
}

/** The window of an assembly is known when the windows of its parts are. */
const isWindowKnown = ({ fromMs, toMs }: Job): boolean => fromMs < toMs;

const unknownJob = (): ApiError => new ApiError(404, 'no-such-job', 'this node has no job with this id');

/** The part of a result that is sent. */
interface Wanted {
  readonly name: string;
  readonly type: string;
  /** For the entity tag: unique among the parts of all jobs. */
  readonly tag: string;
  readonly start: number;
  readonly sizeBytes: number;
}

/** The file name under which a browser saves the result of a job. */
function resultName({ cameraId, fromMs, speed, outcome, case: ofCameras }: Job): string {
  if (ofCameras) return movieName('case', fromMs, { extension: 'zip' });
  return movieName(cameraId, fromMs, { speed, extension: outcome?.parts ? 'zip' : 'mp4' });
}

function wantedOf(job: Job, number: number | undefined, sizeBytes: number): Wanted {
  const { id, outcome } = job;
  const parts = outcome?.parts;
  if (number === undefined) {
    return { name: resultName(job), type: parts ? 'application/zip' : 'video/mp4', tag: id, start: 0, sizeBytes };
  }
  const part = parts?.[number - 1];
  if (!part) {
    throw new ApiError(
      404,
      'no-such-part',
      `part: the result has ${parts ? `parts 1 to ${parts.length}` : 'no parts'}`,
    );
  }
  return { name: part.name, type: 'video/mp4', tag: `${id}.${number}`, start: part.offset, sizeBytes: part.sizeBytes };
}

const movies = (description: string) => ({
  description,
  content: { 'video/mp4': { schema: Bytes }, 'application/zip': { schema: Bytes } },
});

const ManifestText = Manifest.meta({
  id: 'Manifest',
  description: 'The contents of a result; docs/exports.md explains it.',
});

const refusals = {
  400: problemResponse('A parameter is missing or wrong; the detail names it.'),
  401: problemResponse('No token, or a wrong one.'),
  403: problemResponse('This needs the role operator.'),
  404: problemResponse('There is no such camera and no footage of it.'),
  413: problemResponse('The window is longer than four hours.'),
  503: problemResponse('ffmpeg or Redis is missing on the node; the detail says how to install it.'),
};
const questions = {
  401: refusals[401],
  404: problemResponse('This node has no job with this id.'),
  503: problemResponse('The jobs cannot be read: Redis does not answer.'),
};

/** A job of several cameras is visible to callers that may see all of them. */
const isSeen = (request: FastifyRequest, job: Job): boolean => camerasOf(job).every(callerOf(request).sees);

async function findJob(jobs: JobKeeper, id: string, request: FastifyRequest): Promise<Job> {
  const job = await available(jobs.get(id));
  if (!job || !isSeen(request, job)) throw unknownJob();
  const about = job.case ? { cameras: job.case.cameras } : { camera: job.cameraId };
  tell(request, { ...about, job: id, ...footageOf(job) });
  return job;
}

type Deps = Pick<ApiDeps, 'cameras' | 'archive' | 'clock'> & { readonly jobs: JobKeeper };

/** State and result of a job, for the API and for other recorders, which join results of several nodes. */
export const jobResultRoutes: FastifyPluginAsyncZod<{ deps: Pick<Deps, 'jobs' | 'clock'> }> = async (app, { deps }) => {
  const { jobs, clock } = deps;
  const itemOf = (job: Job): z.output<typeof JobItem> => toItem(job, clock.wallMs());

  app.get(
    '/api/archive/jobs/:job_id',
    {
      config: { role: 'viewer', cameras: 'filtered' },
      schema: {
        operationId: 'getJob',
        summary: 'State of a job',
        tags: ['jobs'],
        params: JobParams,
        response: { 200: JobItem, ...questions },
      },
    },
    async (request) => itemOf(await findJob(jobs, request.params.job_id, request)),
  );

  app.get(
    '/api/archive/jobs/:job_id/download',
    {
      config: { role: 'viewer', credentials: 'header-or-query', cameras: 'filtered', audit: 'download' },
      schema: {
        operationId: 'downloadJob',
        summary: 'The movie that a job made',
        description:
          'Supports ranges. Answers 202 with the state of the job until it is done. Where the codec changed in the window, the result is a ZIP file with all movies (application/zip), or, with part, one of them.',
        tags: ['jobs'],
        params: JobParams,
        querystring: z.object({
          download: flag().optional().describe('1: send it as an attachment.'),
          part: queryNumber(z.int(PART).min(1, PART).max(9_999, PART))
            .optional()
            .describe('Number of a movie of a result that has several.'),
          access_token: z.string().optional(),
        }),
        response: {
          200: movies('The movie, or a ZIP file with several.'),
          202: JobItem,
          206: movies('A range of the file.'),
          304: z.null().describe('The caller already has this file.'),
          400: problemResponse('A parameter is wrong; the detail names it.'),
          409: problemResponse('The job failed; the detail is its reason.'),
          410: problemResponse('The result has expired: it is kept for one hour. The job itself is known for a week.'),
          412: problemResponse('The file does not match If-Match or If-Unmodified-Since.'),
          416: problemResponse('The range begins after the end of the file.'),
          ...questions,
        },
      },
    },
    async (request, reply) => {
      const job = await findJob(jobs, request.params.job_id, request);
      if (job.state === 'pending' || job.state === 'running') {
        return reply.code(202).header('retry-after', '1').send(itemOf(job));
      }
      if (job.state === 'failed') throw new ApiError(409, 'job-failed', job.reason ?? 'the job failed');
      const result = await jobs.result(job);
      if (!result) throw new ApiError(410, 'result-expired', 'the result has expired: ask for the window again');
      const wanted = wantedOf(job, request.query.part, result.sizeBytes);
      const cameras = job.case?.cameras;
      const about = { camera: job.cameraId, cameras, job: job.id, fromMs: job.fromMs, toMs: job.toMs };
      visit(request, reply, about);
      return sendFile(request, reply, result, wanted, request.query.download ? 'attachment' : 'inline');
    },
  );

  /** Shared by the routes of the manifest and its signature. */
  const about = {
    config: { role: 'viewer', credentials: 'header-or-query', cameras: 'filtered' },
    schema: {
      tags: ['jobs'],
      params: JobParams,
      querystring: z.object({ access_token: z.string().optional() }),
      response: {
        409: problemResponse('The job is not done.'),
        410: problemResponse('The result has expired, one hour after the job was done.'),
        ...questions,
      },
    },
  } as const;
  async function manifestOf(
    request: FastifyRequest<{ Params: { job_id: string } }>,
    reply: FastifyReply,
    what: string,
  ) {
    const job = await findJob(jobs, request.params.job_id, request);
    if (job.state === 'failed') throw new ApiError(409, 'job-failed', job.reason ?? 'the job failed');
    if (job.state !== 'done') throw new ApiError(409, 'job-not-done', 'the job is not done yet');
    const manifest = await jobs.manifest(job);
    if (!manifest) throw new ApiError(410, 'result-expired', 'the result has expired: ask for the window again');
    reply.header('content-disposition', `attachment; filename="${resultName(job)}.${what}"`);
    return manifest;
  }

  app.get(
    '/api/archive/jobs/:job_id/manifest',
    {
      ...about,
      schema: {
        ...about.schema,
        operationId: 'getManifest',
        summary: 'The contents of a result: files with SHA-256, footage, gaps, and the node that made it',
        description: 'Exactly the bytes that were signed; docs/exports.md describes them.',
        response: { 200: sent('The manifest.', 'application/json', ManifestText), ...about.schema.response },
      },
    },
    async (request, reply) => {
      const { text } = await manifestOf(request, reply, 'manifest.json');
      return reply.type('application/json').serializer(asItIs).send(text);
    },
  );

  app.get(
    '/api/archive/jobs/:job_id/signature',
    {
      ...about,
      schema: {
        ...about.schema,
        operationId: 'getSignature',
        summary: 'The signature of the manifest of a job',
        description: `Ed25519, ${SIGNATURE_BYTES} bytes, by the key of this node (\`GET /api/keys\`).`,
        response: { 200: sent('The signature.', 'application/octet-stream', Bytes), ...about.schema.response },
      },
    },
    async (request, reply) => {
      const { signature } = await manifestOf(request, reply, 'manifest.json.sig');
      return reply.type('application/octet-stream').serializer(asItIs).send(signature);
    },
  );
};

const sent = (description: string, type: string, schema: z.ZodType) => ({
  description,
  content: { [type]: { schema } },
});

/** Sends the bytes unchanged: the serializer of the schema would alter what was signed. */
const asItIs = (payload: unknown): string => payload as string;

export const jobRoutes: FastifyPluginAsyncZod<{ deps: Deps }> = async (app, { deps }) => {
  const { jobs, clock } = deps;
  const itemOf = (job: Job): z.output<typeof JobItem> => toItem(job, clock.wallMs());

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
      config: { role: 'operator', cameras: { param: 'camera_id' }, audit: 'export' },
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
      config: { role: 'operator', cameras: { param: 'camera_id' }, audit: 'timelapse' },
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

  app.get(
    '/api/archive/jobs',
    {
      config: { role: 'viewer', cameras: 'filtered' },
      schema: {
        operationId: 'listJobs',
        summary: 'The jobs of this node, newest first',
        tags: ['jobs'],
        querystring: PageQuery,
        response: { 200: JobList, 400: refusals[400], 401: questions[401], 503: questions[503] },
      },
    },
    async (request) => {
      const seen = (await available(jobs.list())).filter((job) => isSeen(request, job));
      const { query } = request;
      const after = placeOf(query.cursor, JobPlace);
      const page = pageOf(seen, query, after, ({ createdAtMs, id }) => ['jobs', -createdAtMs, id]);
      return { jobs: page.entries.map(itemOf), ...(page.next === undefined ? {} : { next: page.next }) };
    },
  );

  await app.register(jobResultRoutes, { deps });

  app.delete(
    '/api/archive/jobs/:job_id',
    {
      config: { role: 'operator', cameras: 'filtered', audit: 'remove-job' },
      schema: {
        operationId: 'removeJob',
        summary: 'Cancel a job, or remove it and its result; jobs of other callers stay',
        tags: ['jobs'],
        params: JobParams,
        response: { 204: z.null().describe('The job is removed.'), 403: refusals[403], ...questions },
      },
    },
    async (request, reply) => {
      const { id } = await findJob(jobs, request.params.job_id, request);
      if (!(await available(jobs.remove(id)))) throw unknownJob();
      return reply.code(204).send(null);
    },
  );
};

/** Sends the result, or one range of it (RFC 9110 §14). The result never changes. */
function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  { path, modifiedMs }: { readonly path: string; readonly modifiedMs: number },
  { name, tag, start, sizeBytes, type }: Wanted,
  disposition: 'inline' | 'attachment',
): FastifyReply {
  const current = { etag: `"${tag}-${sizeBytes.toString(16)}"`, modifiedMs, sizeBytes };
  const selected = select(request, reply, current, { what: 'movie', cacheControl: 'private, no-cache' });
  if (selected === 'not-modified') return reply.code(304).send();
  // A server may answer a request for several ranges with the whole file (§14.2).
  const range = selected !== 'whole' && selected.length === 1 ? selected[0] : undefined;
  const { from, to } = range ?? { from: 0, to: sizeBytes };
  if (range) reply.code(206).header('content-range', contentRange(range, sizeBytes));
  reply.headers({
    'content-disposition': `${disposition}; filename="${name}"`,
    'content-length': to - from,
    'content-type': type,
  });
  const body = createReadStream(path, {
    start: start + from,
    end: start + Math.max(from, to - 1),
    highWaterMark: 256 * 1024,
  });
  return reply.serializer((payload: unknown) => payload as string).send(body);
}
