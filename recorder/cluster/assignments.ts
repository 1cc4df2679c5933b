// Which cameras are this node's, judged by what the API server says of them (docs/design/cluster.md). Cameras in,
// assignments out; pure.

import type { Camera } from '../../crds/camera.ts';

/**
 * `own`: to be recorded. `handing-over`: recorded on until the next node has written its first key frame. `suspended`:
 * nobody records it now, and this node did last.
 */
export type AssignmentState = 'own' | 'handing-over' | 'suspended';

export interface Assignment {
  readonly camera: Camera;
  readonly state: AssignmentState;
  /** Under which it is recorded: of two claims to a camera the one with the higher epoch is true. */
  readonly epoch: number;
}

export interface Node {
  readonly nodeID: string;
  readonly pool: string;
}

/** What a Camera, or that there is none, means for a node. `before`: what it was to this node until now. */
export function decide(
  { nodeID, pool }: Node,
  camera: Camera | undefined,
  before: Assignment | undefined,
): Assignment | undefined {
  if (!camera || camera.metadata.deletionTimestamp !== undefined || camera.spec.poolRef.name !== pool) return undefined;
  const assignment = camera.status?.assignment;
  if (!assignment) return undefined;
  // One that was deleted and made anew begins with low epochs again.
  const last = before?.camera.metadata.uid === camera.metadata.uid ? before : undefined;
  const { epoch, node, previousNode, handover } = assignment;
  // A word from before what we have heard: a server that lags behind.
  if (last && epoch < last.epoch) return last;
  if (node === nodeID) return { camera, state: 'own', epoch };
  if (previousNode !== nodeID) return undefined;
  if (node === undefined) return camera.spec.suspend ? { camera, state: 'suspended', epoch } : undefined;
  // The epoch of the assignment is the next node's. What was never recorded here is not begun for a handover.
  if (handover === 'Pending' && last && last.state !== 'suspended') {
    return { camera, state: 'handing-over', epoch: last.epoch };
  }
  return undefined;
}

/**
 * Since when nobody has recorded a camera that this node now records in the place of one that was lost, in milliseconds
 * since 1970; undefined when that is not so, or was known before.
 */
export function vacantSince(now: Assignment, before: Assignment | undefined): number | undefined {
  if (now.state !== 'own') return undefined;
  const isSame = before?.camera.metadata.uid === now.camera.metadata.uid;
  return isSame && before && before.epoch >= now.epoch
    ? undefined
    : timeOf(now.camera.status?.assignment?.lastSeenTime);
}

/** Since when another node accounts for a camera that this one recorded and was lost with; undefined: not known. */
export function lostSince({ nodeID }: Node, camera: Camera | undefined): number | undefined {
  const { previousNode, lastSeenTime } = camera?.status?.assignment ?? {};
  return previousNode === nodeID ? timeOf(lastSeenTime) : undefined;
}

function timeOf(text: string | undefined): number | undefined {
  const ms = text === undefined ? NaN : Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

export interface Changes {
  readonly assignments: ReadonlyMap<string, Assignment>;
  /**
   * Cameras that are still in `assignments` because only a read of the Camera itself may stop them: the two watches are
   * not in order with each other, and a watch may show what was true some time ago.
   */
  readonly doubtful: readonly string[];
}

/** What the mirrors of both watches mean. `mirrored`: Cameras by name; of one that is in both, the newer. */
export function changesOf(
  node: Node,
  mirrored: ReadonlyMap<string, Camera>,
  before: ReadonlyMap<string, Assignment>,
): Changes {
  const assignments = new Map<string, Assignment>();
  const doubtful: string[] = [];
  for (const name of new Set([...before.keys(), ...mirrored.keys()])) {
    const last = before.get(name);
    const now = decide(node, mirrored.get(name), last);
    if (now) assignments.set(name, now);
    if (last && isRecorded(last) && !(now && isRecorded(now))) {
      assignments.set(name, last);
      doubtful.push(name);
    }
  }
  return { assignments, doubtful };
}

export const isRecorded = ({ state }: Assignment): boolean => state !== 'suspended';
