// Makes the guard of a node, a pod that cannot be evicted, and the PodDisruptionBudget for that. `kubectl drain` leaves recorders
// alone, because they belong to a DaemonSet, and waits for the guard. Pure.

import { API_VERSION, guardLabels, guardName, poolLabels, recorderName } from '../../crds/names.ts';
import type { RecorderNode } from '../../crds/recorder-node.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import type { KubeObject } from '../kube/api.ts';
import { guardTemplateOf } from './pod-template.ts';

/** The grace period of `recorder wait`, which has nothing to finish. */
const GRACE_SECONDS = 1;

/** `image`, `priorityClass`: defaults for pools that name none. */
export function guardOf(
  { metadata: { namespace, name: poolName }, spec }: RecorderPool,
  { metadata: { name: node, uid = '' } }: RecorderNode,
  image: string,
  priorityClass = '',
): KubeObject {
  const priorityClassName = spec.priorityClassName ?? priorityClass;
  const template = guardTemplateOf(spec.podTemplate);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: guardName(node),
      namespace,
      labels: { ...template.labels, ...guardLabels(poolName) },
      // `kubectl drain` refuses to evict pods without a controller.
      ownerReferences: [{ apiVersion: API_VERSION, kind: 'RecorderNode', name: node, uid, controller: true }],
    },
    spec: {
      ...template.spec,
      // Without the scheduler, which puts no pod on a node that is cordoned; and without a node selector, because cameras may
      // still be on a node that has lost its label.
      nodeName: node,
      tolerations: [{ operator: 'Exists' }],
      terminationGracePeriodSeconds: GRACE_SECONDS,
      enableServiceLinks: false,
      automountServiceAccountToken: false,
      ...(priorityClassName !== '' && { priorityClassName }),
      ...(spec.imagePullSecretRefs && { imagePullSecrets: spec.imagePullSecretRefs }),
      securityContext: {
        runAsUser: 65_532,
        runAsGroup: 65_532,
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
        ...template.securityContext,
      },
      containers: [
        {
          name: 'guard',
          image: spec.image ?? image,
          ...(spec.imagePullPolicy && { imagePullPolicy: spec.imagePullPolicy }),
          args: ['wait'],
          // The limit is needed for a moment; afterwards it uses about a megabyte.
          resources: { requests: { cpu: '1m', memory: '2Mi' }, limits: { memory: '256Mi' } },
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          terminationMessagePolicy: 'FallbackToLogsOnError',
        },
      ],
    },
  };
}

/**
 * Forbids the eviction of any of `guards` pods. The number is needed because Kubernetes counts percentages of pods, or
 * pods that may be missing, only for controllers that have a scale.
 */
export const disruptionBudgetOf = ({ metadata: { namespace, name } }: RecorderPool, guards: number): KubeObject => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: recorderName(name), namespace, labels: poolLabels(name) },
  spec: {
    minAvailable: guards,
    // A guard that does not start would not make a drain wait.
    unhealthyPodEvictionPolicy: 'AlwaysAllow',
    selector: { matchLabels: guardLabels(name) },
  },
});
