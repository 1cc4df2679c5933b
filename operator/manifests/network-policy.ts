// Makes the NetworkPolicy with the egress rules of a pool's recorders, if the pool names the networks of its cameras. Pure.
// Recorders refuse other addresses themselves, but the policy also binds a compromised one.

import { isWithin, NO_CAMERA_THERE, withPrefixLength } from '../../base/networks.ts';
import { MANAGED_BY_LABEL, poolLabels, recorderName } from '../../crds/names.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import type { KubeObject } from '../kube/api.ts';
import { targetPorts, type ConfiguredPool } from './copying.ts';
import { PEERS_PORT } from './recorder.ts';

/** Ports of services whose addresses the operator does not know: recorders may reach these ports at any address. */
export interface EgressPorts {
  readonly apiServer: readonly number[];
  /** Ports of the database and of Redis, if the pool has them. */
  readonly databases: readonly number[];
}

/** Where webhooks are. Recorders refuse the addresses of the cluster for them as well. */
const ANYWHERE = ['0.0.0.0/0', '::/0'];
const HTTPS_PORT = 443;

const DNS = [
  { port: 53, protocol: 'UDP' },
  { port: 53, protocol: 'TCP' },
];

/** `clusterNetworks`: networks and addresses of the cluster itself. Returns undefined if the pool's cameras may be anywhere. */
export function networkPolicyOf(
  pool: ConfiguredPool,
  ports: EgressPorts,
  clusterNetworks: readonly string[],
): KubeObject | undefined {
  const { metadata, spec } = pool;
  if (!spec.cameraNetworks?.length) return undefined;
  const { [MANAGED_BY_LABEL]: _managedBy, ...recorders } = poolLabels(metadata.name);
  const tcp = (list: readonly number[]) => list.map((port) => ({ port, protocol: 'TCP' }));
  const podSelector = { matchLabels: recorders };
  const refused = [...NO_CAMERA_THERE, ...clusterNetworks].map(withPrefixLength);
  const blocks = (cidrs: readonly string[]) => cidrs.map((cidr) => ({ ipBlock: blockOf(cidr, refused) }));
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
        ...(spec.audit ? [{ ports: tcp(collectorPorts(spec.audit)) }] : []),
        ...(targetPorts(pool).length > 0 ? [{ ports: tcp(targetPorts(pool)) }] : []),
        { ports: tcp([PEERS_PORT]), to: [{ podSelector }] },
        ...(spec.webhooksSecretRef ? [{ ports: tcp([HTTPS_PORT]), to: blocks(ANYWHERE) }] : []),
        { to: blocks(spec.cameraNetworks) },
      ],
    },
  };
}

/** Of the collectors of the audit, which may be in the cluster. */
const collectorPorts = ({ syslog, otlp }: NonNullable<RecorderPool['spec']['audit']>): readonly number[] =>
  [syslog && `https://${syslog.address}`, otlp?.url].flatMap((url) =>
    url === undefined ? [] : [Number(new URL(url).port || HTTPS_PORT)],
  );

/** The same rule as in recorders: of two networks that contain an address, the smaller one decides; of two equal ones, `cidr`. */
function blockOf(cidr: string, refused: readonly string[]): { readonly cidr: string; readonly except?: string[] } {
  const except = [...new Set(refused.filter((network) => isWithin(network, cidr)))];
  return except.length > 0 ? { cidr, except } : { cidr };
}
