// Finds cameras that may be what makes recorders fall silent. A camera that was on two nodes whose recorders fell silent although
// the machines were alive is not given a third node (docs/design/failover.md). Pure.

import type { Assignment, PlannedCamera, PlannedNode } from './snapshot.ts';
import { HOUR_MS } from '../../base/units.ts';

const SUSPECT_FROM = 2;
/** A camera that a live node has recorded for this long is not a suspect. */
const INNOCENT_MS = HOUR_MS;
/** Kubernetes reports a lost machine within a minute of its last sign of life; a later report has another cause. */
const EVIDENCE_MS = 120_000;

/** A suspect camera gets another node only at a person's request. */
export const isSuspect = ({ lostNodes = [] }: Pick<Assignment, 'lostNodes'>): boolean =>
  lostNodes.length >= SUSPECT_FROM;

/** The nodes that count against a camera now. */
export function lostNodesOf(
  camera: PlannedCamera,
  owner: PlannedNode,
  nodes: ReadonlyMap<string, PlannedNode>,
): readonly string[] {
  const { assignment, assignedForMs } = camera;
  const before = assignment?.lostNodes ?? [];
  const { liveForMs } = owner.liveness;
  const isRecorded = owner.cameras.get(camera.name)?.state === 'Recording';
  if (isRecorded && Math.min(liveForMs, assignedForMs) >= INNOCENT_MS) return [];
  // Until a handover ends, both nodes have the camera. A node that never took it up may have hung on it at once and only now be
  // known to be silent.
  const isNew = assignment?.reason === 'NotTakenUp' && assignedForMs < EVIDENCE_MS;
  const hadIt = assignment?.handover === 'Pending' || isNew;
  const previous = hadIt ? nodes.get(assignment?.previousNode ?? '') : undefined;
  const silent =
    camera.failover === 'Never' ? [] : [owner, previous].flatMap((node) => (isSilent(node) ? node.name : []));
  return [...new Set([...before, ...silent])].filter((name) => !isMachineLost(nodes.get(name)));
}

export function withLostNodes(assignment: Assignment, lostNodes: readonly string[]): Assignment {
  const { lostNodes: _, ...rest } = assignment;
  return lostNodes.length > 0 ? { ...rest, lostNodes } : rest;
}

const isSilent = (node: PlannedNode | undefined): node is PlannedNode =>
  node?.hasRecorder === true && node.liveness.state === 'Unavailable' && node.liveness.isReleased !== true;

/** Whether the whole machine was lost, not only its recorder. */
function isMachineLost(node: PlannedNode | undefined): boolean {
  if (!node || node.hasRecorder) return false;
  const { state, silentMs = Infinity } = node.liveness;
  return state !== 'Live' && silentMs < EVIDENCE_MS;
}
