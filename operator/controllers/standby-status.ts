// Computes the condition Standby of a Camera: whether a second node holds its last seconds in memory. Pure.

import type { Camera } from '../../crds/camera.ts';
import type { StatedCondition } from '../kube/conditions.ts';
import type { Reports } from '../observe/views.ts';
import type { PlannedCondition } from '../plan/snapshot.ts';

interface StandbyFacts {
  readonly camera: Camera;
  /** From the plan; undefined: the camera wants none. */
  readonly planned: PlannedCondition | undefined;
  readonly nodes: ReadonlyMap<string, Reports>;
  readonly isLive: (node: string) => boolean;
  /** The camera is recorded now. */
  readonly isRecorded: boolean;
}

/** Empty for a camera that wants no standby. */
export function standbyOf({ camera, planned, nodes, isLive, isRecorded }: StandbyFacts): readonly StatedCondition[] {
  const is = (status: StatedCondition['status'], reason: string, message: string): readonly StatedCondition[] => [
    { type: 'Standby', status, reason, message },
  ];
  if (!planned) return [];
  const { node, epoch } = camera.status?.standby ?? {};
  if (planned.status !== 'True' || node === undefined) return is('False', planned.reason, planned.message);
  if (!isLive(node)) return is('Unknown', 'NodeUnavailable', `${node} has not been heard of lately`);
  const report = nodes.get(node)?.standbys.get(camera.metadata.name);
  if (report?.epoch !== epoch) return is('False', 'NotTakenUp', `${node} has not reported yet that it holds it`);
  if (report?.state === 'Holding') return is('True', 'Holding', `its last seconds are in the memory of ${node}`);
  if (report?.state === 'Connecting' && !report.reason) return is('False', 'Connecting', `${node} connects to it`);
  const { reason = 'Failed', message = '' } = report ?? {};
  const hint =
    isRecorded && MAY_BE_FULL.has(reason) ? '; it may not serve a second client beside the node that records it' : '';
  return is('False', reason, `${node}: ${message}${hint}`);
}

/** Reasons of a camera that cannot serve another client. */
const MAY_BE_FULL: ReadonlySet<string> = new Set([
  'ClosedByCamera',
  'NoAnswer',
  'Protocol',
  'StreamSilent',
  'TooManyStreams',
  'Unreachable',
]);
