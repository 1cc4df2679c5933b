// Helpers of the planner: the order of writes, and conditions.

import type { AssignmentWrite, PlannedCondition } from './snapshot.ts';

/** Puts cameras without a recorder first, so that they do not wait for hundreds of new ones. */
export const urgentFirst = (writes: readonly AssignmentWrite[]): AssignmentWrite[] => [
  ...writes.filter(({ urgent }) => urgent),
  ...writes.filter(({ urgent }) => !urgent),
];

export const condition = (
  type: string,
  status: PlannedCondition['status'],
  reason: string,
  message: string,
): PlannedCondition => ({ type, status, reason, message });
