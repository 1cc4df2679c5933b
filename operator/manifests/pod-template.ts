// Adds `spec.podTemplate` of a pool to the pods of its recorders. Where both set the same, the operator's own value stays, except in
// the security context. Pure.

import { REQUIRED, termsOf, type Open, type Requirement } from '../../base/kubernetes/node-affinity.ts';
import type { PodTemplate } from '../../crds/pod-template.ts';

interface Pod {
  readonly metadata: Readonly<Record<'labels' | 'annotations', Readonly<Record<string, string>>>>;
  readonly spec: {
    readonly securityContext: object;
    readonly containers: readonly Container[];
    readonly volumes: readonly object[];
    readonly [field: string]: unknown;
  };
}

interface Container {
  readonly name: string;
  readonly env?: readonly object[];
  readonly volumeMounts: readonly object[];
  readonly securityContext: { readonly capabilities: object; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

type ContainerTemplate = NonNullable<NonNullable<PodTemplate['spec']>['containers']>[number];

/** On which nodes the pods of a DaemonSet run. */
export interface Placement {
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Nodes on which no pod runs. */
  readonly without?: readonly string[] | undefined;
  /** Nodes on which pods run whatever their labels are. */
  readonly named?: readonly string[] | undefined;
  /** No other nodes have pods. */
  readonly isOnlyNamed?: boolean;
}

export function withPodTemplate(template: PodTemplate | undefined, placement: Placement, pod: Pod): Pod {
  const { metadata, spec = {} } = template ?? {};
  const { affinity, securityContext, volumes = [], containers = [], ...others } = spec;
  const wholeAffinity = affinityOf(placement, affinity);
  return {
    metadata: {
      labels: { ...metadata?.labels, ...pod.metadata.labels },
      annotations: { ...metadata?.annotations, ...pod.metadata.annotations },
    },
    spec: {
      ...(spec.hostNetwork === true && { dnsPolicy: 'ClusterFirstWithHostNet' }),
      ...others,
      ...pod.spec,
      // It must hold beside an affinity, of which it has become a part.
      ...(isNamed(placement, affinity) && { nodeSelector: undefined }),
      ...(wholeAffinity && { affinity: wholeAffinity }),
      securityContext: { ...pod.spec.securityContext, ...securityContext },
      containers: pod.spec.containers.map((container) =>
        withContainer(
          containers.find(({ name }) => name === container.name),
          container,
        ),
      ),
      volumes: [...pod.spec.volumes, ...volumes],
    },
  };
}

function withContainer(template: ContainerTemplate | undefined, container: Container): Container {
  if (template === undefined) return container;
  const { env = [], volumeMounts = [], securityContext: { capabilities, ...securityContext } = {} } = template;
  const own = container.securityContext;
  return {
    ...container,
    ...(env.length > 0 && { env: [...(container.env ?? []), ...env] }),
    volumeMounts: [...container.volumeMounts, ...volumeMounts],
    securityContext: {
      ...own,
      ...securityContext,
      capabilities: { ...own.capabilities, ...capabilities },
    },
  };
}

/** What of a template fits a guard: what rules of a cluster ask of every pod, and nothing of networks or volumes. */
export function guardTemplateOf({ metadata, spec }: PodTemplate = {}) {
  const { seLinuxOptions, appArmorProfile, seccompProfile } = spec?.securityContext ?? {};
  return {
    labels: metadata?.labels ?? {},
    spec: spec?.runtimeClassName === undefined ? {} : { runtimeClassName: spec.runtimeClassName },
    securityContext: {
      ...(seLinuxOptions && { seLinuxOptions }),
      ...(appArmorProfile && { appArmorProfile }),
      ...(seccompProfile && { seccompProfile }),
    },
  };
}

const byName = (operator: 'In' | 'NotIn', node: string): Requirement => ({
  key: 'metadata.name',
  operator,
  values: [node],
});

/** Without requirements for nodes, every node has a pod, and names add nothing. */
const isNamed = ({ labels = {}, named = [], isOnlyNamed }: Placement, affinity: Open | undefined): boolean =>
  named.length > 0 && (isOnlyNamed === true || Object.keys(labels).length + termsOf(affinity).length > 0);

/** One of the terms must hold: that of a name, or all requirements of another one. */
function affinityOf(placement: Placement, affinity: Open | undefined): Open | undefined {
  const { labels = {}, without = [], named = [], isOnlyNamed = false } = placement;
  const names = isNamed(placement, affinity) ? named : [];
  if (names.length + without.length === 0) return affinity;
  const terms = termsOf(affinity);
  const entries = names.length > 0 ? Object.entries(labels) : [];
  const matchExpressions = entries.map(([key, value]) => ({ key, operator: 'In', values: [value] }));
  const matchFields = without.map((node) => byName('NotIn', node));
  const others = (terms.length === 0 ? [{}] : terms).map((term) => ({
    ...term,
    ...(entries.length > 0 && { matchExpressions: [...(term.matchExpressions ?? []), ...matchExpressions] }),
    ...(without.length > 0 && { matchFields: [...(term.matchFields ?? []), ...matchFields] }),
  }));
  const nodeSelectorTerms = [
    ...(isOnlyNamed ? [] : others),
    ...names.map((node) => ({ matchFields: [byName('In', node)] })),
  ];
  const nodeAffinity = (affinity?.['nodeAffinity'] ?? {}) as Open;
  return { ...affinity, nodeAffinity: { ...nodeAffinity, [REQUIRED]: { nodeSelectorTerms } } };
}
