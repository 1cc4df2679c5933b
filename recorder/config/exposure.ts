// Determines which listeners of a recorder other machines can reach, and under which names, from the configuration and the
// network interfaces.

import { hostname, networkInterfaces } from 'node:os';
import { hostInUrl, hostOfUrl } from '../../base/host.ts';
import type { Warning } from '../../base/reason.ts';
import type { Config } from './schema.ts';
import { formatListen, isLoopback } from './values.ts';

/** A warning if other machines reach listeners without TLS: tokens and pictures can be read in transit. */
export function plainListeners({
  listen,
  playback,
  tls,
}: Pick<Config, 'listen' | 'playback' | 'tls'>): readonly Warning[] {
  const reached = [listen, playback.listen].filter((address) => !isLoopback(address)).map(formatListen);
  if (tls || reached.length === 0) return [];
  return [
    {
      code: 'no-tls',
      cameraId: undefined,
      message: `other machines reach ${reached.join(' and ')} over plain HTTP, so tokens and pictures can be read in transit`,
    },
  ];
}

/** Names and addresses for a certificate; the first is the name of the machine. */
export function reachedAs({
  nodeName,
  cluster,
  playback,
}: Pick<Config, 'nodeName' | 'cluster' | 'playback'>): string[] {
  const addresses = Object.values(networkInterfaces())
    .flatMap((interfaces) => interfaces ?? [])
    .filter(({ address }) => !address.startsWith('fe80:'))
    .map(({ address }) => address);
  const advertised = [cluster.advertise, playback.advertise].map(hostOf).filter((host) => host !== undefined);
  const names = [hostname(), nodeName, ...advertised].filter(isDnsName);
  return [...new Set([...names, ...advertised.filter((host) => !isDnsName(host)), 'localhost', ...addresses])];
}

/** Where a recorder's own etcd listens. */
export const ETCD_PORTS = { clients: 2379, peers: 2380 } as const;

/** Where the other servers of a cluster over etcd reach this one, as it stands in a URL. */
export function hostOfServer({ cluster, nodeName }: Pick<Config, 'cluster' | 'nodeName'>): string {
  return hostInUrl(hostOf(cluster.advertise) ?? nodeName);
}

/** The host of `host:port` or of a URL. */
function hostOf(address: string): string | undefined {
  const text = /^https?:\/\//.test(address) ? address : `http://${address}`;
  return address !== '' && URL.canParse(text) ? hostOfUrl(new URL(text)) : undefined;
}

const isDnsName = (name: string): boolean =>
  name.length <= 253 && /^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$/.test(name) && !/^[\d.]+$/.test(name);
