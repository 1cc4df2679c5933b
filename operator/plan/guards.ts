// Decides which nodes `kubectl drain` has to wait for: those with cameras that other nodes could record. Pure.

import { matches } from './node-loads.ts';
import type { PlannedNode, Snapshot } from './snapshot.ts';

/**
 * The nodes with such cameras, and how many each has. The only node of a pool is not among them, nor are nodes that are
 * all being drained: their cameras have nowhere to go, so a drain must not wait for them.
 */
export function camerasThatCanLeave({ nodes, cameras }: Snapshot): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  const known = new Set(nodes.map(({ name }) => name));
  const open = nodes.filter(({ drain, canRecord }) => !drain && canRecord);
  const count = (node: string | undefined): void => {
    if (node !== undefined && known.has(node)) counts.set(node, (counts.get(node) ?? 0) + 1);
  };
  for (const camera of cameras) {
    const { node, previousNode, handover } = camera.assignment ?? {};
    const isElsewhere = (other: PlannedNode): boolean => other.name !== node && matches(camera, other);
    if (open.some(isElsewhere)) count(node);
    // The old node records until the handover ends.
    if (handover === 'Pending' && previousNode !== node) count(previousNode);
  }
  return counts;
}
