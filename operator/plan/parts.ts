// Helpers of the planner: the order of writes, and conditions.

import type { AssignmentWrite, PlannedCondition, PlannedNode } from './snapshot.ts';

const ZONE_LABEL = 'topology.kubernetes.io/zone';

/** Empty for a node without one. */
export const zoneOf = ({ labels }: PlannedNode): string => labels[ZONE_LABEL] ?? '';

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
