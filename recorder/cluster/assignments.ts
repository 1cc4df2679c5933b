// Decides from the Cameras which of them this node records (docs/design/cluster.md). Pure.

import { isSuspended, type Camera } from '../../crds/camera.ts';

/**
 * `own`: recorded by this node. `handing-over`: recorded until the next node has written its first key frame. `standby`: held in
 * memory while another node records it. `suspended`: no node records it now, and this node was the last.
 */
type AssignmentState = 'own' | 'handing-over' | 'standby' | 'suspended';

export interface Assignment {
  readonly camera: Camera;
  readonly state: AssignmentState;
  /** The epoch under which it is recorded: if two nodes claim a camera, the higher epoch is right. */
  readonly epoch: number;
}

interface Node {
  readonly nodeId: string;
  readonly pool: string;
}

/** What a Camera, or its absence, means for a node. `before`: its assignment to this node so far. */
export function decide(
  { nodeId, pool }: Node,
  camera: Camera | undefined,
  before: Assignment | undefined,
): Assignment | undefined {
  if (!camera || camera.metadata.deletionTimestamp !== undefined || camera.spec.poolRef.name !== pool) return undefined;
  const assignment = camera.status?.assignment;
  if (!assignment) return undefined;
  // A Camera that was deleted and created again starts with low epochs.
  const last = before?.camera.metadata.uid === camera.metadata.uid ? before : undefined;
  const { epoch, node, previousNode, handover } = assignment;
  // Older than what is known: the server lags behind.
  if (last && epoch < last.epoch) return last;
  if (node === nodeId) return { camera, state: 'own', epoch };
  if (node === undefined) {
    return previousNode === nodeId && isSuspended(camera) ? { camera, state: 'suspended', epoch } : undefined;
  }
  // The epoch in the assignment is that of the next node. A camera that was never recorded here is not started just for a
  // handover.
  if (previousNode === nodeId && handover === 'Pending' && last && isRecorded(last)) {
    return { camera, state: 'handing-over', epoch: last.epoch };
  }
  return camera.status?.standby?.node === nodeId ? { camera, state: 'standby', epoch } : undefined;
}

/**
 * Since when no node has recorded a camera that this node takes over from a lost one, in milliseconds since 1970; undefined if
 * that is not the case or was known before.
 */
export function vacantSince(now: Assignment, before: Assignment | undefined): number | undefined {
  if (now.state !== 'own') return undefined;
  const isSame = before?.camera.metadata.uid === now.camera.metadata.uid;
  return isSame && before && before.epoch >= now.epoch
    ? undefined
    : timeOf(now.camera.status?.assignment?.lastSeenTime);
}

/**
 * Whether the recorder of the camera that this node holds was restarted: it continues under the same epoch, and has
 * recorded nothing meanwhile.
 */
export function isOwnerRestarted(now: Assignment, before: Assignment | undefined): boolean {
  if (now.state !== 'standby' || before?.state !== 'standby' || now.epoch !== before.epoch) return false;
  const [is = '', was = ''] = [now, before].map(({ camera }) => camera.status?.standby?.process);
  const node = `${now.camera.status?.assignment?.node}/`;
  return is !== was && is.startsWith(node) && was.startsWith(node);
}

/** Since when another node is responsible for a camera that this one recorded before it was lost; undefined if unknown. */
export function lostSince({ nodeId }: Node, camera: Camera | undefined): number | undefined {
  const { previousNode, lastSeenTime } = camera?.status?.assignment ?? {};
  return previousNode === nodeId ? timeOf(lastSeenTime) : undefined;
}

function timeOf(text: string | undefined): number | undefined {
  const ms = text === undefined ? NaN : Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

interface Changes {
  readonly assignments: ReadonlyMap<string, Assignment>;
  /**
   * Cameras kept in `assignments` because only a read of the Camera itself may stop them: the two watches are not ordered
   * relative to each other, and a watch may show an outdated state.
   */
  readonly doubtful: readonly string[];
}

/**
 * Computes the assignments from the objects of both watches. `mirrored`: Cameras by name; if both watches have one, the newer.
 */
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
    // What a node holds would be lost while the camera is on its way from one watch to the other.
    const isLess = last && (isRecorded(last) ? !(now && isRecorded(now)) : last.state === 'standby' && !now);
    if (isLess) {
      assignments.set(name, last);
      doubtful.push(name);
    }
  }
  return { assignments, doubtful };
}

export const isRecorded = ({ state }: Assignment): boolean => state === 'own' || state === 'handing-over';
