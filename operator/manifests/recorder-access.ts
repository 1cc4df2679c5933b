// What the recorders of a pool may do: a ServiceAccount, a Role and its binding. One account for all nodes of a pool;
// that a node writes only what is its own is the admission policy's business (node-identity-policy.ts).

import {
  APP_NAME,
  CAMERAS,
  GROUP,
  NAME_LABEL,
  poolLabels,
  RECORDER_NODES,
  RECORDER_POOLS,
  recorderName,
} from '../../crds/names.ts';

/** A rule of a Role (rbac.authorization.k8s.io/v1). */
export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  /** Left out: every object. Never an empty list, which means the same. */
  readonly resourceNames?: readonly string[];
}

/** Where a pool is. */
export interface PoolName {
  readonly namespace: string;
  readonly name: string;
}

const RBAC = 'rbac.authorization.k8s.io';
const READ = ['get', 'list', 'watch'];

const metadataOf = ({ namespace, name }: PoolName) => ({
  namespace,
  name: recorderName(name),
  labels: poolLabels(name),
});

export const serviceAccountOf = (pool: PoolName) => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: metadataOf(pool),
});

/** `secrets`: the Secrets that the cameras of the pool refer to, in any order. */
export function recorderRules(secrets: readonly string[]): readonly PolicyRule[] {
  const names = [...new Set(secrets)].sort();
  return [
    { apiGroups: [GROUP], resources: [CAMERAS, RECORDER_POOLS, RECORDER_NODES], verbs: READ },
    { apiGroups: [GROUP], resources: [`${RECORDER_NODES}/status`], verbs: ['patch'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: [...READ, 'create', 'update'] },
    ...(names.length > 0 ? [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'], resourceNames: names }] : []),
  ];
}

export const roleOf = (pool: PoolName, secrets: readonly string[]) => ({
  apiVersion: `${RBAC}/v1`,
  kind: 'Role',
  metadata: metadataOf(pool),
  rules: recorderRules(secrets),
});

export const roleBindingOf = (pool: PoolName) => ({
  apiVersion: `${RBAC}/v1`,
  kind: 'RoleBinding',
  metadata: metadataOf(pool),
  roleRef: { apiGroup: RBAC, kind: 'Role', name: recorderName(pool.name) },
  subjects: [{ kind: 'ServiceAccount', namespace: pool.namespace, name: recorderName(pool.name) }],
});

/** In every cluster; it may ask who presents a token and what he may do, and nothing else. */
const AUTH_DELEGATOR = 'system:auth-delegator';

/**
 * Lets the recorders of these pools ask the API server about tokens, which pools with `auth.mode: Kubernetes` need. Of the
 * cluster, so whoever installs makes it: the operator has no rights there.
 */
export const tokenReviewBindingOf = (pools: readonly PoolName[]) => ({
  apiVersion: `${RBAC}/v1`,
  kind: 'ClusterRoleBinding',
  metadata: { name: 'kube-nvr-token-reviews', labels: { [NAME_LABEL]: APP_NAME } },
  roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: AUTH_DELEGATOR },
  subjects: pools.map(({ namespace, name }) => ({ kind: 'ServiceAccount', namespace, name: recorderName(name) })),
});
