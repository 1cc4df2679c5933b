// Computes the status of a RecordingObjective from what the leader of its pool measured. Pure.

import { MINUTE_MS } from '../../base/units.ts';
import type { ReportedObjective } from '../../crds/recorder-node.ts';
import type { RecordingObjective } from '../../crds/recording-objective.ts';
import { mergeConditions, type StatedCondition } from '../kube/conditions.ts';
import type { Objectives } from '../manifests/objectives.ts';
import type { ShownStatus } from './camera-status.ts';

interface ObjectiveInputs {
  readonly objective: RecordingObjective;
  readonly hasPool: boolean;
  readonly refused: Objectives['refused'];
  /** Of the leader of the pool; undefined: it has measured nothing (yet). */
  readonly report: ReportedObjective | undefined;
  readonly nowMs: number;
}

/** A leader measures every five minutes. */
const FRESH_MS = 15 * MINUTE_MS;

export function statusOfObjective({ objective, hasPool, refused, report, nowMs }: ObjectiveInputs): ShownStatus {
  const { metadata, spec, status: shown } = objective;
  const { conditions: before = [], observedGeneration: _generation, ...last } = shown ?? {};
  // Another leader has measured nothing yet: what the one before it found still holds.
  const { name: _name, ...measured } = report ?? { name: '', ...last };
  const refusal = refused.get(metadata.name);
  const isFresh = nowMs - Date.parse(measured.measuredTime ?? '') < FRESH_MS;
  const condition = (
    type: string,
    status: StatedCondition['status'],
    reason: string,
    message = '',
  ): StatedCondition => ({ type, status, reason, message });
  const ready = !hasPool
    ? condition('Ready', 'False', 'NoPool', `there is no RecorderPool ${spec.poolRef.name}`)
    : refusal
      ? condition('Ready', 'False', refusal.reason, refusal.message)
      : isFresh
        ? condition('Ready', 'True', 'Measured')
        : condition('Ready', 'Unknown', 'NotMeasured', 'no recorder has measured it in the last minutes');
  const { achievedPercent, budgetLeftSeconds = 0 } = measured;
  const tooMuch = `${-budgetLeftSeconds} s more are missing than ${spec.targetPercent} % allow`;
  const met =
    ready.status !== 'True'
      ? condition('Met', 'Unknown', 'NotMeasured')
      : achievedPercent === undefined
        ? condition('Met', 'Unknown', 'NothingToRecord', 'none of its cameras should have been recorded')
        : budgetLeftSeconds >= 0
          ? condition('Met', 'True', 'Met')
          : condition('Met', 'False', 'NotMet', tooMuch);
  const { conditions, transitions } = mergeConditions(before, [ready, met], metadata.generation, new Date(nowMs));
  const { generation: observedGeneration } = metadata;
  return {
    status: { ...(observedGeneration !== undefined && { observedGeneration }), ...measured, conditions },
    isChanged: conditions !== before || JSON.stringify(measured) !== JSON.stringify(last),
    transitions,
  };
}
