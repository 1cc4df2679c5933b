// Computes the condition PlacementMet of a Camera: whether its node is one that `spec.placement` allows. Pure.

import type { Camera } from '../../crds/camera.ts';
import type { StatedCondition } from '../kube/conditions.ts';

/** Labels of the nodes of the camera's pool, by the name of the node. */
export type NodeLabels = ReadonlyMap<string, { readonly labels: Readonly<Record<string, string>> }>;

/**
 * A camera may be recorded although its placement is not met: no other node meets it, or the node that it prefers does not exist.
 * So the condition is no part of Ready.
 */
export function placementOf({ spec, status }: Camera, nodes: NodeLabels): StatedCondition {
  const { nodeSelector = {}, preferredNode = '' } = spec.placement;
  const missing = (node: string): readonly string[] =>
    Object.entries(nodeSelector).flatMap(([key, value]) =>
      nodes.get(node)?.labels[key] === value ? [] : [`${key}=${value}`],
    );
  const condition = (isMet: boolean, reason: string, message: string): StatedCondition => ({
    type: 'PlacementMet',
    status: isMet ? 'True' : 'False',
    reason,
    message,
  });
  const node = status?.assignment?.node;
  if (node !== undefined && nodes.has(node) && missing(node).length > 0) {
    const labels = missing(node).join(', ');
    const message = `${node}, which records it, lacks ${labels} of placement.nodeSelector, and no other node has it and free capacity`;
    return condition(false, 'NodeSelectorNotMet', message);
  }
  if (preferredNode !== '' && !nodes.has(preferredNode)) {
    return condition(false, 'PreferredNodeUnknown', `placement.preferredNode: the pool has no node ${preferredNode}`);
  }
  if (preferredNode !== '' && missing(preferredNode).length > 0) {
    const labels = missing(preferredNode).join(', ');
    return condition(
      false,
      'PreferredNodeExcluded',
      `placement.preferredNode: ${preferredNode} lacks ${labels} of placement.nodeSelector`,
    );
  }
  return condition(true, 'Met', '');
}
