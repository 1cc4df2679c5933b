// What recorders of a pool reach, where the pool says in which networks its cameras are: a RecorderPool in, a NetworkPolicy
// out; pure. Recorders refuse other addresses themselves; this holds also for one that was taken over.

import { isWithin, NO_CAMERA_THERE, withPrefixLength } from '../../base/networks.ts';
import { MANAGED_BY_LABEL, poolLabels, recorderName } from '../../crds/names.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import type { KubeObject } from '../kube/api.ts';
import { PEERS_PORT } from './recorder.ts';

/** Ports of services whose addresses the operator does not know: recorders reach them at any address. */
export interface EgressPorts {
  readonly apiServer: readonly number[];
  /** Of database and Redis, where the pool has one. */
  readonly databases: readonly number[];
}

const DNS = [
  { port: 53, protocol: 'UDP' },
  { port: 53, protocol: 'TCP' },
];

/** `clusterNetworks`: the cluster's own networks and addresses. Undefined for a pool whose cameras may be anywhere. */
export function networkPolicyOf(
  pool: RecorderPool,
  ports: EgressPorts,
  clusterNetworks: readonly string[],
): KubeObject | undefined {
  const { metadata, spec } = pool;
  if (!spec.cameraNetworks?.length) return undefined;
  const { [MANAGED_BY_LABEL]: _managedBy, ...recorders } = poolLabels(metadata.name);
  const tcp = (list: readonly number[]) => list.map((port) => ({ port, protocol: 'TCP' }));
  const podSelector = { matchLabels: recorders };
  const refused = [...NO_CAMERA_THERE, ...clusterNetworks].map(withPrefixLength);
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: {
      name: recorderName(metadata.name),
      namespace: metadata.namespace,
      labels: poolLabels(metadata.name),
    },
    spec: {
      podSelector,
      policyTypes: ['Egress'],
      egress: [
        { ports: DNS },
        { ports: tcp(ports.apiServer) },
        ...(spec.databaseSecretRef || spec.redisSecretRef ? [{ ports: tcp(ports.databases) }] : []),
        { ports: tcp([PEERS_PORT]), to: [{ podSelector }] },
        { to: spec.cameraNetworks.map((cidr) => ({ ipBlock: blockOf(cidr, refused) })) },
      ],
    },
  };
}

/** As recorders judge: of two networks that hold an address the narrower one decides, of two equal ones `cidr`. */
function blockOf(cidr: string, refused: readonly string[]): { readonly cidr: string; readonly except?: string[] } {
  const except = [...new Set(refused.filter((network) => isWithin(network, cidr)))];
  return except.length > 0 ? { cidr, except } : { cidr };
}
