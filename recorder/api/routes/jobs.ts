// `/api/archive/jobs`: exports, time-lapses, cases and assemblies of this node, their state and removal.

import { z } from 'zod';
import { callerOf } from '../../http/access.ts';
import { tell } from '../../http/audit.ts';
import { problemResponse } from '../../http/problem.ts';
import { isRelayed } from '../../http/relayed.ts';
import { JobParams, findJob, isSeen, jobRefusals, unknownJob } from '../found-job.ts';
import { JOB, JobItem, toJobItem } from '../job-item.ts';
import { parseJobName } from '../../jobs/job-id.ts';
import type { ApiRoutes } from '../deps.ts';
import { cursorOf, Next, PageQuery, pageOf, pageQuery, placeOf } from '../pages.ts';
import { UnlistedNodes } from '../../footage/elsewhere-item.ts';
import { askOthers, passOn } from '../pass-on.ts';
import { Scope } from '../scope.ts';
import { available } from '../submitted-job.ts';
import { jobResultRoutes } from './job-results.ts';

const JobList = z
  .object({
    jobs: z.array(JobItem),
    ...UnlistedNodes.shape,
    next: Next,
  })
  .meta({ id: 'JobList', description: 'Jobs, newest first.' });

const ListQuery = PageQuery.extend({
  scope: Scope.optional().describe('node, the default: the jobs of this node. cluster: the jobs of all nodes.'),
});

/** Newest first. */
const JobPlace = z.tuple([z.literal('jobs'), z.number(), z.string()]);
const placeIn = ({ created_at_ms, job_id }: z.output<typeof JobItem>) => ['jobs', -created_at_ms, job_id] as const;

export const jobRoutes: ApiRoutes = async (app, { deps }) => {
  const { jobs, cluster, peers, clock } = deps;

  if (cluster && peers) {
    app.addHook('preHandler', async (request, reply) => {
      const { job_id } = request.params as { readonly job_id?: string };
      const nodeId = job_id === undefined ? undefined : parseJobName(job_id).nodeId;
      if (nodeId === undefined || nodeId === cluster.nodeId || isRelayed(request.raw)) return undefined;
      tell(request, { job: job_id });
      return passOn(request, reply, peers, nodeId, unknownJob);
    });
  }

  app.get(
    '/api/archive/jobs',
    {
      config: { role: 'viewer', cameras: 'filtered', examples: { 200: { jobs: [JOB] } } },
      schema: {
        operationId: 'listJobs',
        summary: 'The jobs of this node or of all nodes, newest first',
        tags: ['jobs'],
        querystring: ListQuery,
        response: {
          200: JobList,
          503: jobRefusals[503],
        },
      },
    },
    async (request) => {
      const { query } = request;
      const after = placeOf(query.cursor, JobPlace);
      const listed = (await available(jobs.list())).filter((job) => !job.isPart && isSeen(request, job));
      const items = listed.map((job) => toJobItem(job, clock.wallMs(), callerOf(request)));
      if (query.scope !== 'cluster') {
        const { entries, next } = pageOf(items, query, after, placeIn);
        return { jobs: [...entries], ...(next === undefined ? {} : { next }) };
      }
      // Each node gives its part of the page, from the same place on.
      const { answers: pages, unlisted } = await askOthers(
        request,
        deps,
        `/api/archive/jobs?scope=node${pageQuery(query)}`,
        JobList,
      );
      const all = [...items, ...pages.flatMap((page) => page.jobs)].sort((a, b) => b.created_at_ms - a.created_at_ms);
      const { entries, next } = pageOf(all, query, after, placeIn);
      const isMore = next === null && pages.some((page) => typeof page.next === 'string');
      const last = entries.at(-1);
      return {
        jobs: [...entries],
        ...unlisted,
        ...(next === undefined ? {} : { next: isMore && last ? cursorOf(placeIn(last)) : next }),
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
