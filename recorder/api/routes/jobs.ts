// `/api/archive/jobs`: exports, time-lapses, cases and assemblies of this node, their state and removal.

import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { problemResponse } from '../../http/problem.ts';
import { JobParams, findJob, isSeen, jobRefusals, unknownJob } from '../found-job.ts';
import { JOB, JobItem, toJobItem } from '../job-item.ts';
import { Next, PageQuery, pageOf, placeOf } from '../pages.ts';
import { available } from '../submitted-job.ts';
import { jobResultRoutes, type ResultDeps } from './job-results.ts';

const JobList = z
  .object({ jobs: z.array(JobItem), next: Next })
  .meta({ id: 'JobList', description: 'Jobs of the node, newest first.' });

/** Newest first. */
const JobPlace = z.tuple([z.literal('jobs'), z.number(), z.string()]);

export const jobRoutes: FastifyPluginAsyncZod<{ deps: ResultDeps }> = async (app, { deps }) => {
  const { jobs, clock } = deps;

  app.get(
    '/api/archive/jobs',
    {
      config: { role: 'viewer', cameras: 'filtered', examples: { 200: { jobs: [JOB] } } },
      schema: {
        operationId: 'listJobs',
        summary: 'The jobs of this node, newest first',
        tags: ['jobs'],
        querystring: PageQuery,
        response: {
          200: JobList,
          400: problemResponse('A parameter is missing or wrong; the detail names it.'),
          401: jobRefusals[401],
          503: jobRefusals[503],
        },
      },
    },
    async (request) => {
      const seen = (await available(jobs.list())).filter((job) => isSeen(request, job));
      const { query } = request;
      const after = placeOf(query.cursor, JobPlace);
      const page = pageOf(seen, query, after, ({ createdAtMs, id }) => ['jobs', -createdAtMs, id]);
      return {
        jobs: page.entries.map((job) => toJobItem(job, clock.wallMs())),
        ...(page.next === undefined ? {} : { next: page.next }),
      };
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
        response: {
          204: z.null().describe('The job is removed.'),
          403: problemResponse('This needs the role operator.'),
          ...jobRefusals,
        },
      },
    },
    async (request, reply) => {
      const { id } = await findJob(jobs, request.params.job_id, request);
      if (!(await available(jobs.remove(id)))) throw unknownJob();
      return reply.code(204).send(null);
    },
  );
};
