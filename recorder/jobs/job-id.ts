// Ids of jobs: a letter for the kind, and a random number of 96 bits.

import { randomBytes } from 'node:crypto';
import type { JobRequest } from './job.ts';

const JOB_ID = /^[etac][0-9a-f]{24}$/;

export function newJobId({ kind, assembly, case: isCase }: JobRequest): string {
  const letter = assembly ? 'a' : isCase ? 'c' : { export: 'e', timelapse: 't' }[kind];
  return `${letter}${randomBytes(12).toString('hex')}`;
}

/** Whether the text has the form of a job id, so that a lookup makes sense. */
export const isJobId = (text: string): boolean => JOB_ID.test(text);
