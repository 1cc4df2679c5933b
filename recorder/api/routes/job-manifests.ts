// The manifest of a job's result, and the signature of the manifest.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import { Bytes } from '../../http/openapi.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import { LinkQuery } from '../../http/query.ts';
import { Manifest, SIGNATURE_BYTES } from '../../jobs/manifest.ts';
import { disposition } from '../../http/disposition.ts';
import type { ApiDeps } from '../deps.ts';
import { KEY } from '../examples.ts';
import { JobParams, findJob, jobRefusals } from '../found-job.ts';

const ManifestText = Manifest.meta({
  id: 'Manifest',
  description: 'The contents of a result; docs/exports.md explains it.',
});

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

/** Shared by both routes. */
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

export const jobManifestRoutes: FastifyPluginAsyncZod<{ deps: Pick<ApiDeps, 'jobs'> }> = async (
  app,
  { deps: { jobs } },
) => {
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
    reply.header('content-disposition', disposition('attachment', `${jobs.fileName(job)}.${what}`));
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
