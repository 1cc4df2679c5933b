// RBAC rules of the operator itself, for the chart. They have three parts: for each namespace given to it, for its own namespace,
// and for the cluster, where it only reads Nodes. An operator of all namespaces also sees our own kinds everywhere.

import {
  ARCHIVE_TARGETS,
  AUTHORITIES_SECRET,
  CAMERAS,
  GROUP,
  RECORDER_NODES,
  RECORDER_POOLS,
  RECORDING_OBJECTIVES,
} from '../../crds/names.ts';
import type { PolicyRule } from './recorder-access.ts';

const FOLLOW = ['list', 'watch'];
const followRule: PolicyRule = {
  apiGroups: [GROUP],
  resources: [CAMERAS, RECORDER_POOLS, RECORDER_NODES, ARCHIVE_TARGETS, RECORDING_OBJECTIVES],
  verbs: FOLLOW,
};
/** Verbs for server-side apply, and to notice what others change or delete; objects are deleted together with their owner. */
const APPLY = ['get', 'list', 'watch', 'create', 'patch'];

/**
 * Rules for each namespace given to the operator. They include the rights that it grants to recorders, because the API server
 * lets no account grant rights that it does not have.
 */
export function operatorRules(): readonly PolicyRule[] {
  return [
    followRule,
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: FOLLOW },
    { apiGroups: [''], resources: ['pods'], verbs: FOLLOW },
    { apiGroups: [GROUP], resources: [CAMERAS, RECORDER_NODES], verbs: ['get'] },
    {
      apiGroups: [GROUP],
      resources: [CAMERAS, RECORDER_POOLS, ARCHIVE_TARGETS, RECORDING_OBJECTIVES].map((kind) => `${kind}/status`),
      verbs: ['patch'],
    },
    { apiGroups: [GROUP], resources: [RECORDER_NODES], verbs: ['create', 'patch', 'delete'] },
    // Only one condition; the node's recorder writes all the rest.
    { apiGroups: [GROUP], resources: [`${RECORDER_NODES}/status`], verbs: ['patch'] },
    // Needed for owner references that block the deletion of a pool.
    { apiGroups: [GROUP], resources: [`${RECORDER_POOLS}/finalizers`], verbs: ['update'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create'] },
    // Only to grant this right to recorders, for single names.
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['update'] },
    { apiGroups: [''], resources: ['serviceaccounts', 'services', 'configmaps'], verbs: APPLY },
    // Outdated recorders, and guards of nodes that have cameras.
    { apiGroups: [''], resources: ['pods'], verbs: ['create', 'delete'] },
    // `delete`: DaemonSets of single nodes, in pools with claims.
    { apiGroups: ['apps'], resources: ['daemonsets'], verbs: [...APPLY, 'delete'] },
    // Claims are never deleted, because footage is on them. They have no owner, so no right to read one is needed.
    { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['create', 'patch'] },
    { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: APPLY },
    // `delete` for a policy that the pool no longer needs.
    { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: [...APPLY, 'delete'] },
    { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles', 'rolebindings'], verbs: APPLY },
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
  ];
}

/**
 * Rules for all namespaces, for an operator of all: it sees our own kinds, which contain no secrets. In a namespace where it has
 * no rights it reports this in the pool's status and in an Event, which must be in the namespace of its object.
 */
export const operatorEverywhereRules = (): readonly PolicyRule[] => [
  followRule,
  { apiGroups: [GROUP], resources: [`${RECORDER_POOLS}/status`], verbs: ['patch'] },
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create'] },
];

/** Rules for each namespace given to the operator; separate, to show clearly how little of Secrets it can read. */
export const operatorSecretRules = (): readonly PolicyRule[] => [
  // Neither list nor watch: a Secret can be read only by name. The operator creates Secrets of pools and changes none.
  // RBAC cannot limit `create` to certain names.
  { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'create'] },
];

/**
 * In addition to those, for pools whose cameras are rows of a database: the operator writes Cameras and the Secrets with their
 * addresses, and marks the pool. RBAC cannot limit this to its own ones.
 */
export const operatorRowRules = (): readonly PolicyRule[] => [
  { apiGroups: [GROUP], resources: [CAMERAS], verbs: ['create', 'patch', 'delete'] },
  { apiGroups: [GROUP], resources: [RECORDER_POOLS], verbs: ['patch'] },
  { apiGroups: [''], resources: ['secrets'], verbs: ['patch', 'delete'] },
];

/** In the operator's own namespace: leader election. */
export const operatorLeaseRules = (): readonly PolicyRule[] => [
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] },
];

/** In the operator's own namespace: the CA keys. RBAC cannot limit `create` to one name. */
export const operatorAuthorityRules = (): readonly PolicyRule[] => [
  { apiGroups: [''], resources: ['secrets'], verbs: ['create'] },
  { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'update'], resourceNames: [AUTHORITIES_SECRET] },
];

/** In the cluster: nodes with their labels, and the networks in which no camera may be. */
export const operatorClusterRules = (): readonly PolicyRule[] => [
  { apiGroups: [''], resources: ['nodes'], verbs: FOLLOW },
  { apiGroups: ['networking.k8s.io'], resources: ['servicecidrs'], verbs: ['list'] },
  // The addresses of the API server: the slice of this name is in the namespace `default`.
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], resourceNames: ['kubernetes'], verbs: ['get'] },
];
