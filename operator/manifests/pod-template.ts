// Adds `spec.podTemplate` of a pool to the pods of its recorders. Where both set the same, the operator's own value stays, except in
// the security context. Pure.

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

/** A part of an affinity that only the API server checks. */
type Open = Readonly<Record<string, unknown>>;

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';

/** No pod runs on these nodes. */
export const notOn = (nodes: readonly string[]): readonly Requirement[] =>
  nodes.map((node) => ({ key: 'metadata.name', operator: 'NotIn', values: [node] }));

export const onlyOn = (node: string): readonly Requirement[] => [
  { key: 'metadata.name', operator: 'In', values: [node] },
];

/** `matchFields`: requirements for nodes in addition to those of the template. */
export function withPodTemplate(template: PodTemplate | undefined, matchFields: readonly Requirement[], pod: Pod): Pod {
  const { metadata, spec = {} } = template ?? {};
  const { affinity, securityContext, volumes = [], containers = [], ...others } = spec;
  const wholeAffinity = matchFields.length === 0 ? affinity : withFields(matchFields, affinity);
  return {
    metadata: {
      labels: { ...metadata?.labels, ...pod.metadata.labels },
      annotations: { ...metadata?.annotations, ...pod.metadata.annotations },
    },
    spec: {
      ...(spec.hostNetwork === true && { dnsPolicy: 'ClusterFirstWithHostNet' }),
      ...others,
      ...pod.spec,
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

/** All requirements must hold, in each of the terms of which one must hold. */
function withFields(matchFields: readonly Requirement[], affinity: Open = {}): Open {
  const nodeAffinity = (affinity['nodeAffinity'] ?? {}) as Open;
  const terms = termsOf(affinity);
  const nodeSelectorTerms = (terms.length === 0 ? [{}] : terms).map((term) => ({
    ...term,
    matchFields: [...(term.matchFields ?? []), ...matchFields],
  }));
  return { ...affinity, nodeAffinity: { ...nodeAffinity, [REQUIRED]: { nodeSelectorTerms } } };
}

interface Requirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

interface Term {
  readonly matchExpressions?: readonly Requirement[];
  readonly matchFields?: readonly Requirement[];
}

function termsOf(affinity: Open | undefined): readonly Term[] {
  const { [REQUIRED]: required } = (affinity?.['nodeAffinity'] ?? {}) as { readonly [REQUIRED]?: Open };
  const terms = required?.['nodeSelectorTerms'];
  return Array.isArray(terms) ? (terms as readonly Term[]) : [];
}

/** Whether the required node affinity of a template allows a node; as the scheduler does, for DaemonSets too. */
export function allowsNode(
  template: PodTemplate | undefined,
  name: string,
  labels: Readonly<Record<string, string>>,
): boolean {
  const terms = termsOf(template?.spec?.affinity);
  if (terms.length === 0) return true;
  return terms.some(({ matchExpressions = [], matchFields = [] }) => {
    // A term without requirements matches no node.
    if (matchExpressions.length + matchFields.length === 0) return false;
    const areLabelsRight = matchExpressions.every((requirement) => isMet(requirement, labels[requirement.key]));
    return areLabelsRight && matchFields.every((requirement) => isMet(requirement, name));
  });
}

function isMet({ operator, values = [] }: Requirement, value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
      return value !== undefined && Number(value) > Number(values[0]);
    case 'Lt':
      return value !== undefined && Number(value) < Number(values[0]);
    default:
      return false;
  }
}
