// What the recorders of a pool measure: the RecordingObjectives of the pool as `objectives` of their configuration. Pure.

import type { Camera } from '../../crds/camera.ts';
import { codeOf } from '../../crds/reasons.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import { MAX_OBJECTIVES, type RecordingObjective } from '../../crds/recording-objective.ts';

/** Why an objective is not measured: the reason of its condition `Ready`. */
interface Refusal {
  readonly reason: 'NoCameras' | 'TooMany';
  readonly message: string;
}

export interface Objectives {
  readonly settings: readonly object[];
  /** By name. */
  readonly refused: ReadonlyMap<string, Refusal>;
}

/** Names of cameras of all selectors of a pool together: a ConfigMap has at most 1 MiB. */
const MAX_SELECTED = 5_000;

/** `all`: the objectives of the namespace. Of too many, the last ones are refused. */
export function objectivesOf(
  pool: RecorderPool,
  cameras: readonly Camera[],
  all: readonly RecordingObjective[],
): Objectives {
  const settings: object[] = [];
  const refused = new Map<string, Refusal>();
  let selected = 0;
  for (const { metadata, spec } of all) {
    if (spec.poolRef.name !== pool.metadata.name) continue;
    const { cameraSelector, targetPercent, windowSeconds, excused } = spec;
    const names = cameraSelector ? namesWith(cameraSelector, cameras) : spec.cameras;
    if (names?.length === 0) {
      refused.set(metadata.name, { reason: 'NoCameras', message: 'no Camera of the pool has the labels' });
    } else if (settings.length >= MAX_OBJECTIVES) {
      const message = `recorders measure ${MAX_OBJECTIVES} objectives of a pool; delete others`;
      refused.set(metadata.name, { reason: 'TooMany', message });
    } else if (cameraSelector && selected + (names?.length ?? 0) > MAX_SELECTED) {
      const message = `the selectors of all objectives of a pool select at most ${MAX_SELECTED} cameras together; use names with *`;
      refused.set(metadata.name, { reason: 'TooMany', message });
    } else {
      if (cameraSelector) selected += names?.length ?? 0;
      settings.push({
        name: metadata.name,
        ...(names && { cameras: names }),
        target: Math.round(targetPercent * 1_000) / 1_000,
        window: `${windowSeconds}s`,
        excused: excused.map(codeOf),
      });
    }
  }
  return { settings, refused };
}

const namesWith = (labels: Readonly<Record<string, string>>, cameras: readonly Camera[]): readonly string[] =>
  cameras
    .filter(({ metadata }) => Object.entries(labels).every(([key, value]) => metadata.labels?.[key] === value))
    .map(({ metadata }) => metadata.name)
    .sort();
