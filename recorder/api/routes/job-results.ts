// The result of a job: the movie or ZIP file that it made. Also for other recorders, which join results of several nodes.

import { createReadStream } from 'node:fs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { callerOf } from '../../http/access.ts';
import { visit } from '../../http/audit.ts';
import { contentRange } from '../../http/byte-range.ts';
import { disposition } from '../../http/disposition.ts';
import { Bytes } from '../../http/openapi.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import { flag, LinkQuery, queryNumber } from '../../http/query.ts';
import { select } from '../../http/selection.ts';
import type { Job } from '../../jobs/job.ts';
import type { ApiDeps } from '../deps.ts';
import { JobParams, findJob, jobRefusals } from '../found-job.ts';
import { JOB, JobItem, toJobItem, WINDOW } from '../job-item.ts';
import { FROM, JOB_ID } from '../examples.ts';
import { jobManifestRoutes } from './job-manifests.ts';

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

function wantedOf(job: Job, name: string, number: number | undefined, sizeBytes: number): Wanted {
  const { id, outcome } = job;
  const parts = outcome?.parts;
  if (number === undefined) {
    return { name, type: parts ? 'application/zip' : 'video/mp4', tag: id, start: 0, sizeBytes };
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

type ResultDeps = Pick<ApiDeps, 'clock' | 'jobs'>;

/** State and result of a job, for the API and for other recorders, which join results of several nodes. */
export const jobResultRoutes: FastifyPluginAsyncZod<{ deps: ResultDeps }> = async (app, { deps }) => {
  await app.register(jobManifestRoutes, { deps });
  const { jobs, clock } = deps;
  const itemOf = (job: Job, request: FastifyRequest): z.output<typeof JobItem> =>
    toJobItem(job, clock.wallMs(), callerOf(request));

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
    async (request) => itemOf(await findJob(jobs, request.params.job_id, request), request),
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
          410: problemResponse(
            'The result has expired: it is kept for one hour, and that of a kept case until it is removed. The job itself is known for a week.',
          ),
          412: problemResponse('The file does not match If-Match or If-Unmodified-Since.'),
          416: problemResponse('The range begins after the end of the file.'),
          ...jobRefusals,
        },
      },
    },
    async (request, reply) => {
      const job = await findJob(jobs, request.params.job_id, request);
      if (job.state === 'pending' || job.state === 'running') {
        return reply.code(202).header('retry-after', '1').send(itemOf(job, request));
      }
      if (job.state === 'failed') throw new ApiError(409, 'job-failed', job.reason ?? 'the job failed');
      const result = await jobs.result(job);
      if (!result) throw new ApiError(410, 'result-expired', 'the result has expired: ask for the window again');
      const wanted = wantedOf(job, jobs.fileName(job), request.query.part, result.sizeBytes);
      const cameras = job.case?.cameras;
      const about = { camera: job.cameraId, cameras, job: job.id, fromMs: job.fromMs, toMs: job.toMs };
      visit(request, reply, about);
      return sendFile(request, reply, result, wanted, request.query.download ? 'attachment' : 'inline');
    },
  );
};

/** Sends the result, or one range of it (RFC 9110 §14). The result never changes. */
function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  { path, modifiedMs }: { readonly path: string; readonly modifiedMs: number },
  { name, tag, start, sizeBytes, type }: Wanted,
  how: 'inline' | 'attachment',
): FastifyReply {
  const current = { etag: `"${tag}-${sizeBytes.toString(16)}"`, modifiedMs, sizeBytes };
  const selected = select(request, reply, current, { what: 'movie', cacheControl: 'private, no-cache' });
  if (selected === 'not-modified') return reply.code(304).send();
  // A server may answer a request for several ranges with the whole file (§14.2).
  const range = selected !== 'whole' && selected.length === 1 ? selected[0] : undefined;
  const { from, to } = range ?? { from: 0, to: sizeBytes };
  if (range) reply.code(206).header('content-range', contentRange(range, sizeBytes));
  reply.headers({
    'content-disposition': disposition(how, name),
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
