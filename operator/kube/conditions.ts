// Merges the conditions that a controller states into those in a status (sig-architecture, api-conventions.md).

import type { Condition } from '../../crds/schema-parts.ts';
import { secondTime } from './time.ts';

/** A condition as a controller states it; `mergeConditions` adds the times. */
export interface StatedCondition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  /** One CamelCase word. */
  readonly reason: string;
  readonly message: string;
}

interface MergedConditions {
  /** Sorted by type. The same array as before if nothing changed. */
  readonly conditions: readonly Condition[];
  /** Conditions that are new or whose status changed: candidates for an event. */
  readonly transitions: readonly Transition[];
}

export interface Transition {
  readonly from: Condition | undefined;
  readonly to: Condition;
}

/** The API server rejects longer messages; a truncated one is still useful. */
const MAX_MESSAGE = 4096;

/**
 * `lastTransitionTime` changes only with the status, not with the reason or message. Conditions that are no longer stated are
 * dropped. `generation` is that of the object that was examined.
 */
export function mergeConditions(
  before: readonly Condition[],
  stated: readonly StatedCondition[],
  generation: number | undefined,
  now: Date,
): MergedConditions {
  const known = new Map(before.map((condition) => [condition.type, condition]));
  const transitions: Transition[] = [];
  const conditions = stated
    .toSorted((a, b) => (a.type < b.type ? -1 : 1))
    .map(({ type, status, reason, message }) => {
      const from = known.get(type);
      const isTransition = from?.status !== status;
      const to: Condition = {
        type,
        status,
        reason,
        message: message.slice(0, MAX_MESSAGE),
        lastTransitionTime: isTransition ? secondTime(now.getTime()) : from.lastTransitionTime,
        ...(generation !== undefined && { observedGeneration: generation }),
      };
      if (isTransition) transitions.push({ from, to });
      return from && isSame(from, to) ? from : to;
    });
  const isUnchanged =
    conditions.length === before.length && conditions.every((condition, i) => condition === before[i]);
  return { conditions: isUnchanged ? before : conditions, transitions };
}

/** The conditions of a resource that no controller has examined yet: all of them Unknown. */
export function unknownConditions(types: readonly string[]): readonly StatedCondition[] {
  return types.map((type) => ({ type, status: 'Unknown', reason: 'Pending', message: 'not examined yet' }));
}

function isSame(a: Condition, b: Condition): boolean {
  return (
    a.status === b.status &&
    a.reason === b.reason &&
    a.message === b.message &&
    a.observedGeneration === b.observedGeneration
  );
}
