// Computes the status of an ArchiveTarget from what the recorders that copy to it report. Pure.

import { someOf } from '../../base/some-of.ts';
import type { ArchiveTarget } from '../../crds/archive-target.ts';
import type { RecorderNode } from '../../crds/recorder-node.ts';
import { mergeConditions, type StatedCondition } from '../kube/conditions.ts';
import type { ShownStatus } from './camera-status.ts';

/** A message names this many nodes. */
const MAX_NAMED = 5;

/** `nodes`: of the namespace. What a node that is gone said last does not count. */
export function statusOfTarget(
  { metadata, status }: ArchiveTarget,
  nodes: readonly RecorderNode[],
  nowMs: number,
): ShownStatus {
  const before = status?.conditions ?? [];
  const isGone = ({ status: shown }: RecorderNode): boolean =>
    shown?.conditions?.some(({ type, status: is }) => type === 'Online' && is === 'False') === true;
  const reports = nodes
    .filter((node) => !isGone(node))
    .flatMap(({ metadata: { name: node }, status: told }) =>
      (told?.targets ?? []).filter(({ name }) => name === metadata.name).map((report) => ({ node, ...report })),
    );
  const wrong = reports.filter(({ reason }) => reason !== undefined);
  const [first] = wrong;
  const ready = (is: StatedCondition['status'], reason: string, message: string): StatedCondition => ({
    type: 'Ready',
    status: is,
    reason,
    message,
  });
  const named = someOf(
    wrong.filter(({ reason }) => reason === first?.reason).map(({ node }) => node),
    MAX_NAMED,
  );
  const stated =
    first?.reason !== undefined
      ? ready('False', first.reason, `${named}: ${first.message ?? ''}`)
      : reports.length > 0
        ? ready('True', 'Copying', '')
        : ready('Unknown', 'NotReported', 'no recorder copies footage to it');
  const { conditions, transitions } = mergeConditions(before, [stated], metadata.generation, new Date(nowMs));
  const { generation: observedGeneration } = metadata;
  return {
    status: { ...(observedGeneration !== undefined && { observedGeneration }), conditions },
    isChanged: conditions !== before,
    transitions,
  };
}
