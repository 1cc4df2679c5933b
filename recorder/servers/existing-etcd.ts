// An etcd that is not the recorder's own: its administrators decide about its members, so the roles of nodes change nothing there.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { followCertificate, readCertificate, type CertificatePaths } from '../http/certificate.ts';
import { readTrusted } from '../http/trusted.ts';
import type { EtcdTls, OwnEtcd } from './own-etcd.ts';

/** As much of etcd as a server of a cluster needs. */
export type ClusterEtcd = Omit<OwnEtcd, 'answering' | 'recover'>;

export function existingEtcd(endpoints: readonly string[]): ClusterEtcd {
  const nothing = (): Promise<void> => Promise.resolve();
  return {
    urls: () => endpoints,
    // A server that joins has the endpoints in its own configuration.
    invited: () => [],
    isLeaving: false,
    start: nothing,
    follow: () => {},
    leave: nothing,
    left: nothing,
    enforce: nothing,
    // It trusts what its administrators say.
    trusted: () => undefined,
    startAgain: () => {},
    expel: nothing,
    close: nothing,
  };
}

/** The files of `cluster.tls`; a new certificate is used when they change. Rejects with CertificateError, or an error that names the key. */
export async function openEtcdTls(
  { ca: caFile, ...paths }: CertificatePaths & { readonly ca: string },
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<{ readonly tls: () => EtcdTls; close(): void }> {
  const [ca = '', pair] = await Promise.all([readTrusted('cluster.tls.ca', caFile), readCertificate(paths)]);
  let tls: EtcdTls = { ca, ...pair };
  const following = followCertificate(paths, [], { clock, log, used: (next) => (tls = { ca, ...next }) });
  return { tls: () => tls, close: () => following.close() };
}
