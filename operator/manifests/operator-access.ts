// What the operator itself may do, as rules for the chart. Three parts: in each namespace with pools, in its own
// namespace, and in the cluster, where it only reads Nodes.

import { CAMERAS, GROUP, RECORDER_NODES, RECORDER_POOLS } from '../../crds/names.ts';
import type { PolicyRule } from './recorder-access.ts';

const READ = ['get', 'list', 'watch'];
const KEEP = [...READ, 'create', 'patch', 'delete'];

/**
 * In each namespace with pools. It includes what it hands on to recorders, because the API server lets nobody grant what
 * he does not have.
 */
export function operatorRules(): readonly PolicyRule[] {
  return [
    { apiGroups: [GROUP], resources: [CAMERAS, RECORDER_POOLS, RECORDER_NODES], verbs: READ },
    // Of a Camera's spec only `suspend`, when a recorder was asked to.
    { apiGroups: [GROUP], resources: [CAMERAS], verbs: ['patch'] },
    { apiGroups: [GROUP], resources: [`${CAMERAS}/status`, `${RECORDER_POOLS}/status`], verbs: ['update', 'patch'] },
    { apiGroups: [GROUP], resources: [RECORDER_NODES], verbs: ['create', 'update', 'patch', 'delete'] },
    // Only to hand it on: each node's recorder writes there.
    { apiGroups: [GROUP], resources: [`${RECORDER_NODES}/status`], verbs: ['patch'] },
    // Owner references that block the deletion of a pool.
    { apiGroups: [GROUP], resources: [`${RECORDER_POOLS}/finalizers`], verbs: ['update'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: [...READ, 'create', 'update', 'delete'] },
    { apiGroups: [''], resources: ['serviceaccounts', 'services', 'configmaps'], verbs: KEEP },
    { apiGroups: [''], resources: ['pods'], verbs: [...READ, 'delete'] },
    { apiGroups: ['apps'], resources: ['daemonsets'], verbs: KEEP },
    { apiGroups: ['apps'], resources: ['controllerrevisions'], verbs: READ },
    { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: KEEP },
    { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles', 'rolebindings'], verbs: KEEP },
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
  ];
}

/**
 * In each namespace with pools, and apart so that it is never granted for the whole cluster: an operator that watches
 * all namespaces gets it from each tenant.
 */
export const operatorSecretRules = (): readonly PolicyRule[] => [
  // No list and no watch: who cannot name a Secret cannot read it.
  { apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
];

/** In the operator's own namespace: who leads. */
export const operatorLeaseRules = (): readonly PolicyRule[] => [
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] },
];

/** In the cluster: labels of nodes, and which there are. */
export const operatorClusterRules = (): readonly PolicyRule[] => [
  { apiGroups: [''], resources: ['nodes'], verbs: READ },
];
