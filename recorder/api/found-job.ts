// Shared by the routes of one job: which job a request may see, and what is answered for others.

import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { footageOf } from '../audit/entry.ts';
import { callerOf } from '../http/access.ts';
import { tell } from '../http/audit.ts';
import { ApiError, problemResponse } from '../http/problem.ts';
import { camerasOf, type Job } from '../jobs/job.ts';
import type { JobKeeper } from './deps.ts';
import { available } from './submitted-job.ts';

export const JobParams = z.object({ job_id: z.string() });

/** Answers of every route of one job. */
export const jobRefusals = {
  404: problemResponse('There is no job with this id.'),
  503: problemResponse('The jobs cannot be read: Redis does not answer, or the node that has this job.'),
};

export const unknownJob = (): ApiError => new ApiError(404, 'no-such-job', 'this node has no job with this id');

/** A job of several cameras is visible to callers that may see all of them. */
export const isSeen = (request: FastifyRequest, job: Job): boolean => camerasOf(job).every(callerOf(request).sees);

export async function findJob(jobs: JobKeeper, id: string, request: FastifyRequest): Promise<Job> {
  const job = await available(jobs.get(id));
  if (!job || !isSeen(request, job)) throw unknownJob();
  const about = job.case ? { cameras: job.case.cameras } : { camera: job.cameraId };
  tell(request, { ...about, job: id, ...footageOf(job) });
  return job;
}
