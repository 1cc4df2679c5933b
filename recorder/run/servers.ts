// A cluster of servers without Kubernetes, as each of them runs it: etcd, the objects in it, the server's own registration and
// certificate, and the operator. Loaded only there.

import { randomUUID } from 'node:crypto';
import { dirname } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/error.ts';
import { EtcdClient } from '../../base/etcd/client.ts';
import { ApiError } from '../../base/kubernetes/api-error.ts';
import type { Log } from '../../base/log.ts';
import type { Part } from '../../base/parts.ts';
import { RestKubeApi } from '../../operator/kube/client.ts';
import { startServersOperator, type Operator } from '../../operator/operator.ts';
import { StoreConnection } from '../../store/connection.ts';
import { STORE_NAMESPACE } from '../../store/names.ts';
import type { ClusterStore } from '../api/deps.ts';
import { Admission } from '../certificates/admission.ts';
import { ClusterKeys } from '../certificates/cluster-keys.ts';
import { IssueError, Issuer } from '../certificates/issuer.ts';
import { JoinTokens } from '../certificates/join-tokens.ts';
import { KeyRing } from '../certificates/key-ring.ts';
import { KeyRotation } from '../certificates/key-rotation.ts';
import { NodeFileError, nodeFiles, readCluster, readKeys } from '../certificates/node-files.ts';
import { Renewal } from '../certificates/renewal.ts';
import { nodesPath } from '../certificates/secrets.ts';
import type { ServersMembers } from '../cluster/access.ts';
import { ApiServer } from '../cluster/api-server.ts';
import type { OpenedApi } from '../cluster/join.ts';
import { ClusterObjects } from '../cluster/objects.ts';
import { urlOf } from '../cluster/peers.ts';
import { ConfigError } from '../config/error.ts';
import type { Config } from '../config/schema.ts';
import { EtcdMemberError } from '../servers/etcd-member.ts';
import { existingEtcd, openEtcdTls, type ClusterEtcd } from '../servers/existing-etcd.ts';
import { hostOfServer, reachedAs } from '../config/exposure.ts';
import { CertificateError } from '../http/certificate.ts';
import type { OwnCertificate } from '../http/own-certificate.ts';
import { keysOfMembers } from '../servers/keys-of-members.ts';
import { OwnEtcd, type Role } from '../servers/own-etcd.ts';
import { Registration, type Addresses } from '../servers/registration.ts';

interface ServersClusterOptions {
  readonly config: Config;
  /** Issued by the CA of the cluster. */
  readonly own: OwnCertificate;
  readonly clock: Clock;
  readonly log: Log;
}

export interface ServersCluster {
  /** See `joinCluster` of recorder/cluster/join.ts. */
  readonly open: () => Promise<OpenedApi>;
  /** For the API. */
  readonly store: ClusterStore & { readonly admission: Admission; readonly keys: ClusterKeys };
  /** etcd, registration and renewal: closed after everything that uses the objects. */
  readonly etcd: Part;
  /** Closed first, so that another server's operator can lead at once. */
  readonly operator: Part;
  readonly members: ServersMembers;
  /** The metrics of the operator of this server. */
  readonly metrics: () => Promise<string>;
}

const REGISTER_MS = 2_000;
const NO_MEMBER =
  'this node is no member of the cluster: it records nothing until it is added again (POST /cluster/add-learner)';

/** Throws ConfigError for a server that is no member of a cluster. Nothing is sent before the parts are started. */
export async function openServersCluster({ config, own, clock, log }: ServersClusterOptions): Promise<ServersCluster> {
  const { nodeName: nodeId, recordPath, cluster: settings } = config;
  const { pool } = settings;
  const namespace = STORE_NAMESPACE;
  const files = nodeFiles(settings.dataDir, nodeId);
  const { cluster, ring } = await readMember(config);
  const given = settings.tls && (await openEtcdTls(settings.tls, { clock, log }).catch(refuseTls));
  const memberTls = followedTls(own);
  const tls = given?.tls ?? memberTls;
  const host = hostOfServer(config);
  const directory = dirname(files.cluster);
  const etcd: ClusterEtcd = settings.etcd
    ? existingEtcd(settings.etcd.endpoints)
    : new OwnEtcd({ nodeId, host, directory, recordPath, files, cluster, tls, clock, log });
  const ask = (): AsyncGenerator<string> => keysOfMembers({ api, namespace, pool, nodeId, own: memberTls, log });
  const keys = new ClusterKeys({ files, ring, ask, log });
  const connect = (): StoreConnection =>
    new StoreConnection({ etcd: new EtcdClient({ endpoints: etcd.urls, tls }), seal: keys, clock });
  const connection = connect();
  const api = new ApiServer(connection);
  const reseal = (): Promise<number> => connection.reseal();
  const rotation = new KeyRotation({ api, namespace, pool, nodeId, keys, reseal, clock });
  const issuer = new Issuer({ api, namespace, pool, files, clock });
  const tokens = new JoinTokens({ api, namespace, clock });
  const admission = new Admission({ issuer, tokens, files, pool, members: etcd.invited });
  const addresses = (): Addresses => addressesOf(config, host);
  const registration = new Registration({ api, namespace, pool, nodeId, recordPath, addresses });
  const renewal = new Renewal({
    issuer,
    nodeId,
    current: () => ({ certificate: own.pair.certificate, authorities: own.authorities }),
    request: () => own.request(),
    names: () => reachedAs(config),
    take: (signed) => own.take(signed),
    clock,
    log,
  });

  async function roles(): Promise<ReadonlyMap<string, Role>> {
    const { items } = await api.list(nodesPath(namespace));
    return new Map(items.map(({ metadata, spec }) => [metadata.name, (spec as { readonly role: Role }).role]));
  }

  // Until the CA of a new cluster is in the store, nothing else may be written there: it may hold another cluster.
  let isAdopted = false;
  const stopping = new AbortController();
  let operator: Operator | undefined;
  let registering = Promise.resolve();
  let knownRole: Role | undefined;
  async function register(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        if (!isAdopted) await issuer.adopt();
        isAdopted = true;
        const role = await registration.renew();
        if (role === 'Removed' && knownRole !== role) log.warn({}, NO_MEMBER);
        knownRole = role;
        if (role === 'Removed') await etcd.left();
        else if (etcd.isLeaving) await registration.remove();
        etcd.follow(role);
        if (operator?.isLeader) await etcd.enforce(roles);
        // Last: if it fails, the rest goes on.
        await rotation.follow();
      } catch (err) {
        log.debug({ problem: messageOf(err) }, 'this server cannot be registered now');
      }
      await clock.sleep(REGISTER_MS, stopping.signal);
    }
  }

  let starting: Promise<void> | undefined;
  const operatorApi = new RestKubeApi(connect());
  const startOperator = (): Promise<Operator> =>
    startServersOperator({
      api: operatorApi,
      namespace,
      ownNamespace: namespace,
      identity: `${nodeId}/${randomUUID()}`,
      clock,
      log: log.child({ part: 'operator' }),
    });

  return {
    open: () => Promise.resolve({ api: new ApiServer(connect()), namespace }),
    store: { objects: new ClusterObjects({ api, namespace }), admission, keys, rotation },
    members: etcd,
    metrics: () => operator?.metrics.registry.metrics() ?? Promise.resolve(''),
    etcd: {
      name: 'etcd',
      async start() {
        await etcd.start().catch(explain);
        await requireOwnCluster(issuer);
        registering = register();
        renewal.start();
      },
      async close() {
        stopping.abort();
        await Promise.all([registering, renewal.close()]);
        given?.close();
        await api.close();
        await etcd.close();
      },
    },
    operator: {
      name: 'operator',
      // Not awaited: recording continues while etcd does not answer.
      start() {
        starting = startOperator().then(
          (started) => void (operator = started),
          (err: unknown) => log.error({ err }, 'the operator cannot be started'),
        );
      },
      async close() {
        await starting;
        await operator?.close();
        await operatorApi.close();
      },
    },
  };
}

/** Throws ConfigError for a server that is no member of a cluster. */
export async function readMember({ nodeName, cluster: { dataDir } }: Config) {
  const files = nodeFiles(dataDir, nodeName);
  try {
    const [cluster, keys] = await Promise.all([readCluster(files), readKeys(files)]);
    if (cluster) return { cluster, ring: KeyRing.parse(keys) };
  } catch (err) {
    if (!(err instanceof NodeFileError)) throw err;
    throw new ConfigError('', 'cluster.mode', err.message);
  }
  throw new ConfigError('', 'cluster.mode', `etcd: ${files.cluster} is missing`);
}

function addressesOf({ listen, playback, cluster, tls }: Config, host: string): Addresses {
  const isSecure = tls !== undefined;
  const at = (port: number): string => `${host}:${port}`;
  return {
    address: urlOf(cluster.advertise || at(listen.port), isSecure),
    playbackAddress: urlOf(playback.advertise || at(playback.listen.port), isSecure),
    peerAddress: cluster.listen && urlOf(at(cluster.listen.port), true),
  };
}

/** The same object until the certificate is another one: a client of etcd connects again then. */
function followedTls(own: OwnCertificate): () => { ca: string; certificate: string; key: string } {
  let tls = { ...own.pair, ca: own.authorities ?? '' };
  own.follow((pair, ca) => (tls = { ...pair, ca }));
  return () => tls;
}

/** Rejects with ConfigError if etcd answers, and holds the objects of another cluster. */
async function requireOwnCluster(issuer: Issuer): Promise<void> {
  try {
    await issuer.adopt();
  } catch (err) {
    if (err instanceof IssueError) throw new ConfigError('', 'cluster.etcd.endpoints', err.message);
    // It does not answer now.
    if (!(err instanceof ApiError)) throw err;
  }
}

function refuseTls(err: unknown): never {
  if (err instanceof CertificateError) throw new ConfigError(err.file, `cluster.tls.${err.key}`, err.message);
  throw err;
}

function explain(err: unknown): never {
  if (err instanceof EtcdMemberError) throw new ConfigError('', 'cluster.mode', `etcd: ${err.message}`);
  throw err;
}
