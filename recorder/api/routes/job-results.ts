// The result of a job: the movie or ZIP file that it made, its manifest and the signature of that. Also for other recorders,
// which join results of several nodes.

import { createReadStream } from 'node:fs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { visit } from '../../http/audit.ts';
import { contentRange } from '../../http/byte-range.ts';
import { Bytes } from '../../http/openapi.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import { flag, LinkQuery, queryNumber } from '../../http/query.ts';
import { select } from '../../http/selection.ts';
import type { Job } from '../../jobs/job.ts';
import { Manifest, SIGNATURE_BYTES } from '../../jobs/manifest.ts';
import { movieName } from '../../jobs/movie-name.ts';
import type { ApiDeps, JobKeeper } from '../deps.ts';
import { JobParams, findJob, jobRefusals } from '../found-job.ts';
import { JOB, JobItem, toJobItem, WINDOW } from '../job-item.ts';
import { FROM, JOB_ID, KEY } from '../examples.ts';

const PART = 'expected the number of a part, from 1';

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

export type ResultDeps = Pick<ApiDeps, 'clock'> & { readonly jobs: JobKeeper };

/** Examples for the OpenAPI document. */
const MANIFEST = {
  format: 'kube-nvr-manifest-1',
  kind: 'export',
  from: '2026-11-21T09:25:00.000Z',
  to: '2026-11-21T09:35:00.000Z',
  made_at: '2026-11-21T09:40:03.512Z',
  software: 'kube-nvr 0.1.0',
  node: 'rack-1',
  key: KEY,
  cameras: [
    {
      camera_id: 'gate',
      files: [
        {
          from: '2026-11-21T09:25:00.000Z',
          to: '2026-11-21T09:35:00.000Z',
          name: 'gate_20261121T092500Z.mp4',
          size_bytes: 297_411_002,
          sha256: '0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff0',
          duration_seconds: 588.4,
          footage: [
            {
              from: '2026-11-21T09:25:00.000Z',
              to: '2026-11-21T09:28:00.000Z',
              movie_from_seconds: 0,
              movie_to_seconds: 180,
            },
            {
              from: '2026-11-21T09:28:11.600Z',
              to: '2026-11-21T09:35:00.000Z',
              movie_from_seconds: 180,
              movie_to_seconds: 588.4,
            },
          ],
        },
      ],
      gaps: [{ from: '2026-11-21T09:28:00.000Z', to: '2026-11-21T09:28:11.600Z', cause: 'camera-unreachable' }],
    },
  ],
};

/** State and result of a job, for the API and for other recorders, which join results of several nodes. */
export const jobResultRoutes: FastifyPluginAsyncZod<{ deps: ResultDeps }> = async (app, { deps }) => {
  const { jobs, clock } = deps;
  const itemOf = (job: Job): z.output<typeof JobItem> => toJobItem(job, clock.wallMs());

  app.get(
    '/api/archive/jobs/:job_id',
    {
      config: { role: 'viewer', cameras: 'filtered', examples: { 200: JOB } },
      schema: {
        operationId: 'getJob',
        summary: 'State of a job',
        tags: ['jobs'],
        params: JobParams,
        response: { 200: JobItem, ...jobRefusals },
      },
    },
    async (request) => itemOf(await findJob(jobs, request.params.job_id, request)),
  );

  app.get(
    '/api/archive/jobs/:job_id/download',
    {
      config: {
        role: 'viewer',
        credentials: 'anywhere',
        cameras: 'filtered',
        audit: 'download',
        examples: {
          202: {
            job_id: JOB_ID,
            ...WINDOW,
            created_at: FROM + 900,
            created_at_ms: (FROM + 900) * 1000,
            kind: 'export',
            state: 'running',
            progress: 42,
          },
        },
      },
      schema: {
        operationId: 'downloadJob',
        summary: 'The movie that a job made',
        description:
          'Supports ranges. Answers 202 with the state of the job until it is done. Where the codec changed in the window, the result is a ZIP file with all movies (application/zip), or, with part, one of them.',
        tags: ['jobs'],
        params: JobParams,
        querystring: LinkQuery.extend({
          download: flag().optional().describe('1: send it as an attachment.'),
          part: queryNumber(z.int(PART).min(1, PART).max(9_999, PART))
            .optional()
            .describe('Number of a movie of a result that has several.'),
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
          ...jobRefusals,
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
    config: { role: 'viewer', credentials: 'anywhere', cameras: 'filtered' },
    schema: {
      tags: ['jobs'],
      params: JobParams,
      querystring: LinkQuery,
      response: {
        409: problemResponse('The job is not done.'),
        410: problemResponse('The result has expired, one hour after the job was done.'),
        ...jobRefusals,
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
      config: { ...about.config, examples: { 200: MANIFEST } },
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
