// Evaluates NetworkPolicies as the API defines them (networking.k8s.io/v1): whether all policies of the cluster together allow a
// connection. Its answers are always allowed. https://kubernetes.io/docs/concepts/services-networking/network-policies/

import { BlockList, isIPv6 } from 'node:net';

type Labels = Readonly<Record<string, string>>;

interface Selector {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values?: readonly string[];
  }[];
}

interface Peer {
  readonly podSelector?: Selector;
  readonly namespaceSelector?: Selector;
  readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] };
}

interface Rule {
  readonly ports?: readonly {
    readonly port?: number | string;
    readonly endPort?: number;
    readonly protocol?: string;
  }[];
  readonly from?: readonly Peer[];
  readonly to?: readonly Peer[];
}

export interface NetworkPolicy {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: {
    readonly podSelector: Selector;
    readonly policyTypes?: readonly string[];
    readonly ingress?: readonly Rule[];
    readonly egress?: readonly Rule[];
  };
}

/** One end of a connection. Without a namespace it is not a pod that policies can select: a node, a Service, an external host. */
export interface End {
  readonly ip: string;
  readonly namespace?: string;
  readonly labels?: Labels;
  /** Container ports by name. */
  readonly ports?: Readonly<Record<string, number>>;
  /** The pod's node, whose kubelet is always allowed. */
  readonly node?: End;
}

export interface Flow {
  readonly from: End;
  readonly to: End;
  readonly port: number;
  readonly protocol?: 'TCP' | 'UDP';
}

/**
 * `blocksHoldPods`: whether an `ipBlock` can match the address of a pod. Network plug-ins differ: in Calico it can, in Cilium it
 * cannot.
 */
export function letsThrough(policies: readonly NetworkPolicy[], flow: Flow, blocksHoldPods: boolean): boolean {
  const { from, to, port, protocol = 'TCP' } = flow;
  const isOpen = (type: 'Egress' | 'Ingress', own: End, other: End): boolean => {
    if (own.namespace === undefined || own.node === other) return true;
    const selecting = policies.filter(
      ({ metadata, spec }) =>
        metadata.namespace === own.namespace &&
        matches(spec.podSelector, own.labels) &&
        (spec.policyTypes ?? ['Ingress', ...(spec.egress ? ['Egress'] : [])]).includes(type),
    );
    if (selecting.length === 0) return true;
    return selecting.some(({ metadata, spec }) =>
      (type === 'Egress' ? spec.egress : spec.ingress)?.some((rule) => {
        const peers = (type === 'Egress' ? rule.to : rule.from) ?? [];
        const isPeer =
          peers.length === 0 || peers.some((peer) => holds(peer, other, metadata.namespace, blocksHoldPods));
        return isPeer && isPort(rule, to, port, protocol);
      }),
    );
  };
  return isOpen('Egress', from, to) && isOpen('Ingress', to, from);
}

function holds(peer: Peer, end: End, namespace: string, blocksHoldPods: boolean): boolean {
  const { ipBlock, podSelector, namespaceSelector } = peer;
  if (ipBlock) {
    if (end.namespace !== undefined && !blocksHoldPods) return false;
    return isWithin(end.ip, ipBlock.cidr) && !ipBlock.except?.some((cidr) => isWithin(end.ip, cidr));
  }
  if (end.namespace === undefined) return false;
  const isThere = namespaceSelector
    ? // the label that every namespace has
      matches(namespaceSelector, { 'kubernetes.io/metadata.name': end.namespace })
    : end.namespace === namespace;
  return isThere && matches(podSelector ?? {}, end.labels);
}

/** A named port is resolved at the destination. */
const isPort = ({ ports = [] }: Rule, to: End, port: number, protocol: string): boolean =>
  ports.length === 0 ||
  ports.some((one) => {
    const first = typeof one.port === 'string' ? (to.ports?.[one.port] ?? NaN) : (one.port ?? port);
    return (one.protocol ?? 'TCP') === protocol && port >= first && port <= (one.endPort ?? first);
  });

function matches({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Labels = {}): boolean {
  const isExpressed = matchExpressions.every(({ key, operator, values = [] }) => {
    const isAmong = values.includes(labels[key] ?? '') && key in labels;
    return { In: isAmong, NotIn: !isAmong, Exists: key in labels, DoesNotExist: !(key in labels) }[operator];
  });
  return isExpressed && Object.entries(matchLabels).every(([key, value]) => labels[key] === value);
}

function isWithin(ip: string, cidr: string): boolean {
  const [address = '', length = ''] = cidr.split('/');
  const [own, family] = [ip, address].map((text) => (isIPv6(text) ? 'ipv6' : 'ipv4')) as ['ipv4', 'ipv4'];
  const network = new BlockList();
  network.addSubnet(address, Number(length), family);
  return own === family && network.check(ip, own);
}
