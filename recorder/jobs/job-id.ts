// Ids of jobs: a letter for the kind, and a random number of 96 bits. In a cluster clients get them with the name of the node
// in front, so that every node knows where a job is.

import { randomBytes } from 'node:crypto';
import type { JobRequest } from './job.ts';

const JOB_ID = /^[etac][0-9a-f]{24}$/;

export function newJobId({ kind, assembly, case: isCase }: JobRequest): string {
  const letter = assembly ? 'a' : isCase ? 'c' : { export: 'e', timelapse: 't' }[kind];
  return `${letter}${randomBytes(12).toString('hex')}`;
}

/** Whether the text has the form of a job id, so that a lookup makes sense. */
export const isJobId = (text: string): boolean => JOB_ID.test(text);

/** The id that clients get. `nodeId`: undefined outside of a cluster. */
export const jobName = (nodeId: string | undefined, id: string): string =>
  nodeId === undefined ? id : `${nodeId}.${id}`;

/** The node in the id of a client, undefined without one, and the id there. Names of nodes may contain points. */
export function parseJobName(name: string): { readonly nodeId: string | undefined; readonly id: string } {
  const point = name.lastIndexOf('.');
  return point < 0 ? { nodeId: undefined, id: name } : { nodeId: name.slice(0, point), id: name.slice(point + 1) };
}
