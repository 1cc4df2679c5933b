// What the operator itself may do, as rules for the chart. Three parts: in each namespace that was given to it, in its own
// namespace, and in the cluster, where it only reads Nodes; one of all namespaces sees our own kinds there as well.

import { AUTHORITIES_SECRET, CAMERAS, GROUP, RECORDER_NODES, RECORDER_POOLS } from '../../crds/names.ts';
import type { PolicyRule } from './recorder-access.ts';

const FOLLOW = ['list', 'watch'];
const followRule: PolicyRule = {
  apiGroups: [GROUP],
  resources: [CAMERAS, RECORDER_POOLS, RECORDER_NODES],
  verbs: FOLLOW,
};
/** Server-side apply; objects are deleted together with their owner. */
const APPLY = ['get', 'create', 'patch'];

/**
 * In each namespace that was given to it. It includes the rights that it grants to recorders, because the API server lets no
 * account grant rights that it does not have.
 */
export function operatorRules(): readonly PolicyRule[] {
  return [
    followRule,
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: FOLLOW },
    { apiGroups: [''], resources: ['pods'], verbs: FOLLOW },
    { apiGroups: [GROUP], resources: [CAMERAS, RECORDER_NODES], verbs: ['get'] },
    // Of a Camera's spec only `suspend`, when a recorder was asked to.
    { apiGroups: [GROUP], resources: [CAMERAS], verbs: ['patch'] },
    { apiGroups: [GROUP], resources: [`${CAMERAS}/status`, `${RECORDER_POOLS}/status`], verbs: ['patch'] },
    { apiGroups: [GROUP], resources: [RECORDER_NODES], verbs: ['create', 'patch', 'delete'] },
    // One condition; the recorder of the node writes everything else.
    { apiGroups: [GROUP], resources: [`${RECORDER_NODES}/status`], verbs: ['patch'] },
    // Owner references that block the deletion of a pool.
    { apiGroups: [GROUP], resources: [`${RECORDER_POOLS}/finalizers`], verbs: ['update'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create'] },
    // Only to grant it, name by name.
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['update'] },
    { apiGroups: [''], resources: ['serviceaccounts', 'services', 'configmaps'], verbs: APPLY },
    { apiGroups: [''], resources: ['pods'], verbs: ['delete'] },
    { apiGroups: ['apps'], resources: ['daemonsets'], verbs: APPLY },
    { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: APPLY },
    // Also to delete one that the pool no longer needs.
    { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: [...APPLY, 'delete'] },
    { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles', 'rolebindings'], verbs: APPLY },
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
  ];
}

/**
 * In all namespaces, of an operator that looks after all: our own kinds, which hold no secret. Where a namespace was not
 * given to it, it says so: in the pool's status, and in an event, which has to be in the namespace of what it is about.
 */
export const operatorEverywhereRules = (): readonly PolicyRule[] => [
  followRule,
  { apiGroups: [GROUP], resources: [`${RECORDER_POOLS}/status`], verbs: ['patch'] },
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create'] },
];

/**
 * In each namespace that was given to it. Separate, so that it is easy to see how little of Secrets the operator can read.
 */
export const operatorSecretRules = (): readonly PolicyRule[] => [
  // No list and no watch: a Secret can be read only by its name. One Secret of each pool it makes, and changes none; nobody
  // can be let create certain names only.
  { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'create'] },
];

/** In the operator's own namespace: who leads. */
export const operatorLeaseRules = (): readonly PolicyRule[] => [
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] },
];

/** In the operator's own namespace: the keys of the CAs. RBAC cannot limit `create` to one name. */
export const operatorAuthorityRules = (): readonly PolicyRule[] => [
  { apiGroups: [''], resources: ['secrets'], verbs: ['create'] },
  { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'update'], resourceNames: [AUTHORITIES_SECRET] },
];

/** In the cluster: nodes with their labels, and networks where no camera may be. */
export const operatorClusterRules = (): readonly PolicyRule[] => [
  { apiGroups: [''], resources: ['nodes'], verbs: FOLLOW },
  { apiGroups: ['networking.k8s.io'], resources: ['servicecidrs'], verbs: ['list'] },
  // Of the API server: the slice of this name is in the namespace default.
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], resourceNames: ['kubernetes'], verbs: ['get'] },
];
