// Names of jobs: a letter for what is made, and a random number of 96 bits.

import { randomBytes } from 'node:crypto';
import type { JobRequest } from './job.ts';

const JOB_ID = /^[etac][0-9a-f]{24}$/;

export function newJobId({ kind, assembly, case: isCase }: JobRequest): string {
  const letter = assembly ? 'a' : isCase ? 'c' : { export: 'e', timelapse: 't' }[kind];
  return `${letter}${randomBytes(12).toString('hex')}`;
}

/** Whether a job could have this name, so that it is worth asking for. */
export const isJobId = (text: string): boolean => JOB_ID.test(text);
