// Which cameras may be what makes recorders fall silent: a camera that was on two nodes when their recorders did, although
// the machines lived, is not given a third one (docs/design/failover.md). Values in, values out.

import type { Assignment, PlannedCamera, PlannedNode } from './snapshot.ts';
import { HOUR_MS } from '../../base/units.ts';

const SUSPECT_FROM = 2;
/** A camera that was recorded for so long, by a node that lived all the time, is innocent. */
const INNOCENT_MS = HOUR_MS;
/** Kubernetes says that a machine is lost within a minute of its last sign of life; what it says later is another story. */
const EVIDENCE_MS = 120_000;

/** Only a person gives it another node. */
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
  // Until a handover ends both have it. One that never took it up may have hung over it at once, and is silent only now.
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
  node?.hasRecorder === true && node.liveness.state === 'Unavailable';

/** It was not the recorder alone that fell silent. */
function isMachineLost(node: PlannedNode | undefined): boolean {
  if (!node || node.hasRecorder) return false;
  const { state, silentMs = Infinity } = node.liveness;
  return state !== 'Live' && silentMs < EVIDENCE_MS;
}
