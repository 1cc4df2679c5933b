// The rights of a pool's recorders: a ServiceAccount, a Role and its binding. All nodes of a pool share one account; an admission
// policy limits each node to its own objects (node-identity-policy.ts).

import {
  APP_NAME,
  CAMERAS,
  GRANTS_NAMED_LOGINS,
  GROUP,
  NAME_LABEL,
  nodeLeaseName,
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
  /** Left out: every object. Never use an empty list, which means the same. */
  readonly resourceNames?: readonly string[];
}

interface PoolName {
  readonly namespace: string;
  readonly name: string;
}

const RBAC = 'rbac.authorization.k8s.io';

const metadataOf = ({ namespace, name }: PoolName) => ({
  namespace,
  name: recorderName(name),
  labels: poolLabels(name),
});

export const serviceAccountOf = (pool: PoolName) => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: metadataOf(pool),
  // Pods that need the token mount it explicitly.
  automountServiceAccountToken: false,
});

/** `secrets`: the Secrets with logins of the pool's cameras, in any order. */
export function recorderRules(secrets: readonly string[], nodes: readonly string[] = []): readonly PolicyRule[] {
  return [
    { apiGroups: [GROUP], resources: [CAMERAS], verbs: ['get', 'list', 'watch'] },
    { apiGroups: [GROUP], resources: [RECORDER_POOLS, RECORDER_NODES], verbs: ['list', 'watch'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'list'] },
    ...named({ apiGroups: [GROUP], resources: [`${RECORDER_NODES}/status`], verbs: ['patch'] }, nodes),
    ...named(
      { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['update'] },
      nodes.map(nodeLeaseName),
    ),
    ...named({ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }, secrets),
  ];
}

/** Without names there is no rule at all, because a rule without names would apply to every object. */
function named(rule: PolicyRule, names: readonly string[]): readonly PolicyRule[] {
  return names.length > 0 ? [{ ...rule, resourceNames: [...new Set(names)].sort() }] : [];
}

export const roleOf = (pool: PoolName, secrets: readonly string[], nodes: readonly string[] = []) => ({
  apiVersion: `${RBAC}/v1`,
  kind: 'Role',
  metadata: { ...metadataOf(pool), annotations: { [GRANTS_NAMED_LOGINS]: 'true' } },
  rules: recorderRules(secrets, nodes),
});

export const roleBindingOf = (pool: PoolName) => ({
  apiVersion: `${RBAC}/v1`,
  kind: 'RoleBinding',
  metadata: metadataOf(pool),
  roleRef: { apiGroup: RBAC, kind: 'Role', name: recorderName(pool.name) },
  subjects: [{ kind: 'ServiceAccount', namespace: pool.namespace, name: recorderName(pool.name) }],
});

/** A ClusterRole that every cluster has: it may only review tokens and the rights of their users. */
const AUTH_DELEGATOR = 'system:auth-delegator';

/**
 * Lets the recorders of these pools ask the API server about tokens, for pools with `auth.mode: Kubernetes`. The binding is
 * cluster-scoped, where the operator has no rights, so the chart makes it.
 */
export const tokenReviewBindingOf = (pools: readonly PoolName[]) => ({
  apiVersion: `${RBAC}/v1`,
  kind: 'ClusterRoleBinding',
  metadata: { name: 'kube-nvr-token-reviews', labels: { [NAME_LABEL]: APP_NAME } },
  roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: AUTH_DELEGATOR },
  subjects: pools.map(({ namespace, name }) => ({ kind: 'ServiceAccount', namespace, name: recorderName(name) })),
});
