// Shared by the routes that submit jobs: their requirements, and the answer 202.

import { z } from 'zod';
import { ApiError } from '../http/problem.ts';
import { JobsUnavailable, TooManyJobs, type Job } from '../jobs/job.ts';
import type { JobKeeper } from './deps.ts';

export const Submitted = z
  .object({ job_id: z.string(), status_url: z.string(), download_url: z.string() })
  .meta({ id: 'SubmittedJob', description: 'The job was accepted.' });

export function toSubmitted({ id }: Job): z.output<typeof Submitted> {
  const url = `/api/archive/jobs/${id}`;
  return { job_id: id, status_url: url, download_url: `${url}/download` };
}

export async function requireFfmpeg(jobs: JobKeeper): Promise<void> {
  if (await jobs.ffmpegIsThere()) return;
  throw new ApiError(503, 'ffmpeg-missing', 'ffmpeg is not installed on this node: install it, or set ffmpeg.path');
}

export async function available<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (err) {
    if (err instanceof TooManyJobs) throw new ApiError(429, 'too-many-jobs', err.message, { cause: err });
    if (err instanceof JobsUnavailable) throw new ApiError(503, 'jobs-unavailable', err.message, { cause: err });
    throw err;
  }
}
