// Turns a write that the API server refuses into a condition of the pool: a person has to change something, and the
// rest of the pool continues.

import { ApiError } from '../kube/api.ts';
import { ForeignObjectError } from '../kube/owned.ts';
import type { PlannedCondition } from '../plan/snapshot.ts';

/** Answers that may be different in a moment: a timeout, a conflict, too many requests. */
const PASSING = [408, 409, 429];

/** Runs `work`. Returns the condition if the API server refused a write, and throws all other errors. */
export async function refusalOf(work: () => Promise<unknown>, what: string): Promise<PlannedCondition | undefined> {
  try {
    await work();
    return undefined;
  } catch (err) {
    if (err instanceof ForeignObjectError) {
      return { type: 'ResourcesApplied', status: 'False', reason: 'ForeignObject', message: err.message };
    }
    if (!(err instanceof ApiError) || !isRefusal(err)) throw err;
    const message = `the API server refuses ${what}: ${err.message}`;
    return { type: 'ResourcesApplied', status: 'False', reason: 'Rejected', message };
  }
}

const isRefusal = ({ status }: ApiError): boolean =>
  status !== undefined && status >= 400 && status < 500 && !PASSING.includes(status);
