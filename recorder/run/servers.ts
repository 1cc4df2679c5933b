// A cluster of servers without Kubernetes, as each of them runs it: etcd, the objects in it, the server's own registration and
// certificate, and the operator. Loaded only there.

import { randomUUID } from 'node:crypto';
import { dirname } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { isExpected, messageOf } from '../../base/error.ts';
import { EtcdClient } from '../../base/etcd/client.ts';
import { EtcdError } from '../../base/etcd/etcd-error.ts';
import { ApiError } from '../../base/kubernetes/api-error.ts';
import type { Log } from '../../base/log.ts';
import type { Part } from '../../base/parts.ts';
import { RestKubeApi } from '../../operator/kube/client.ts';
import { startServersOperator, type Operator } from '../../operator/operator.ts';
import { StoreConnection } from '../../store/connection.ts';
import { STORE_NAMESPACE } from '../../store/names.ts';
import type { ClusterStore } from '../api/deps.ts';
import type { Joining } from '../api/routes/join.ts';
import { Admission } from '../certificates/admission.ts';
import { AuthorityRotation } from '../certificates/authority-rotation.ts';
import { ClusterKeys } from '../certificates/cluster-keys.ts';
import { Expulsion } from '../certificates/expulsion.ts';
import { IssueError, Issuer } from '../certificates/issuer.ts';
import { JoinTokens } from '../certificates/join-tokens.ts';
import { KeyRing, SealError } from '../certificates/key-ring.ts';
import { KeyRotation } from '../certificates/key-rotation.ts';
import { NodeFileError, nodeFiles, readCluster, readKeys } from '../certificates/node-files.ts';
import { Renewal } from '../certificates/renewal.ts';
import { nodesPath } from '../certificates/secrets.ts';
import type { ServersMembers } from '../cluster/access.ts';
import { ApiServer } from '../cluster/api-server.ts';
import type { OpenedApi } from '../cluster/join.ts';
import { ClusterObjects } from '../cluster/objects.ts';
import { urlOf } from '../cluster/peers.ts';
import { Votes } from '../cluster/votes.ts';
import { ConfigError } from '../config/error.ts';
import type { CameraDefaults, Config } from '../config/schema.ts';
import type { RowTable } from '../database/row-table.ts';
import { EtcdMemberError } from '../servers/etcd-member.ts';
import { existingEtcd, openEtcdTls, type ClusterEtcd } from '../servers/existing-etcd.ts';
import { hostOfServer, reachedAs } from '../config/exposure.ts';
import { CertificateError } from '../http/certificate.ts';
import type { OwnCertificate } from '../http/own-certificate.ts';
import { ClusterLogins } from '../servers/cluster-logins.ts';
import { keysOfMembers } from '../servers/keys-of-members.ts';
import { OtherVoters } from '../servers/other-voters.ts';
import { OwnEtcd, type Role } from '../servers/own-etcd.ts';
import { Registration, type Addresses } from '../servers/registration.ts';

interface ServersClusterOptions {
  readonly config: Config;
  /** Issued by the CA of the cluster. */
  readonly own: OwnCertificate;
  /** The table `cameras`; undefined without a database. */
  readonly table: RowTable | undefined;
  /** Defaults of cameras. */
  readonly defaults: () => CameraDefaults;
  readonly clock: Clock;
  readonly log: Log;
}

/** A certificate for an etcd of somebody else. */
type GivenTls = Awaited<ReturnType<typeof openEtcdTls>>;

interface Membership extends Awaited<ReturnType<typeof readMember>> {
  readonly given: GivenTls | undefined;
}

const REGISTER_MS = 2_000;
/** A member of etcd that says nothing for this long may hang. */
const QUICK_MS = 1_000;
const NO_MEMBER =
  'this node is no member of the cluster: it records nothing until it is added again (POST /cluster/add-learner)';

const NAMESPACE = STORE_NAMESPACE;
const NOT_REGISTERED = 'this server cannot be registered now';

export class ServersCluster {
  /** For the API. */
  readonly store: ClusterStore & Pick<Joining, 'admission' | 'issuer' | 'keys'>;
  readonly members: ServersMembers;
  readonly logins: ClusterLogins;
  /** etcd, registration and renewal: closed after everything that uses the objects. */
  readonly etcd: Part = { name: 'etcd', start: () => this.#start(), close: () => this.#close() };
  /** Closed first, so that another server's operator can lead at once. */
  readonly operator: Part = {
    name: 'operator',
    start: () => this.#startOperator(),
    close: () => this.#closeOperator(),
  };
  readonly #options: ServersClusterOptions;
  readonly #given: GivenTls | undefined;
  readonly #etcd: ClusterEtcd;
  readonly #connect: () => StoreConnection;
  readonly #api: ApiServer;
  readonly #operatorApi: RestKubeApi;
  readonly #issuer: Issuer;
  readonly #registration: Registration;
  readonly #rotation: KeyRotation;
  readonly #authorities: AuthorityRotation;
  /** Undefined with an etcd of others. */
  readonly #votes: Votes | undefined;
  readonly #stopping = new AbortController();
  #registering = Promise.resolve();
  #watchingVotes: Promise<void> | undefined;
  /** Until the CA of a new cluster is in the store, nothing else may be written there: it may hold another cluster. */
  #isAdopted = false;
  #role: Role | undefined;
  /** Why this server could not be registered, as it was logged. */
  #problem = '';
  #startingOperator: Promise<void> | undefined;
  #operator: Operator | undefined;

  /** Throws ConfigError for a server that is no member of a cluster. Nothing is sent before the parts are started. */
  static async open(options: ServersClusterOptions): Promise<ServersCluster> {
    const { config, clock, log } = options;
    const { tls } = config.cluster;
    const member = await readMember(config);
    const given = tls && (await openEtcdTls(tls, { clock, log }).catch(refuseTls));
    return new ServersCluster(options, { ...member, given });
  }

  private constructor(options: ServersClusterOptions, { cluster, ring, given }: Membership) {
    const { config, own, clock, log } = options;
    const { nodeName: nodeId, recordPath, cluster: settings } = config;
    const { pool } = settings;
    const files = nodeFiles(settings.dataDir, nodeId);
    const memberTls = followedTls(own);
    const tls = given?.tls ?? memberTls;
    const host = hostOfServer(config);
    const etcd = settings.etcd
      ? existingEtcd(settings.etcd.endpoints)
      : new OwnEtcd({ nodeId, host, directory: dirname(files.cluster), recordPath, files, cluster, tls, clock, log });
    const inStore = { namespace: NAMESPACE, pool, nodeId };
    const ask = (): AsyncGenerator<string> => keysOfMembers({ ...inStore, api: this.#api, own: memberTls, log });
    const keys = new ClusterKeys({ files, ring, ask, log });
    this.#options = options;
    this.#given = given;
    this.#etcd = etcd;
    this.#connect = () =>
      new StoreConnection({ etcd: new EtcdClient({ endpoints: etcd.urls, tls }), seal: keys, clock });
    const connection = this.#connect();
    const api = new ApiServer(connection);
    this.#api = api;
    this.#operatorApi = new RestKubeApi(this.#connect());
    this.#issuer = new Issuer({ ...inStore, api, own: () => own.pair, files, clock });
    const elsewhere = new OtherVoters({ ...inStore, api, own: memberTls, log });
    this.#registration = new Registration({ ...inStore, api, recordPath, addresses: () => addressesOf(config, host) });
    this.#rotation = new KeyRotation({ ...inStore, api, keys, reseal: () => connection.reseal(), clock });
    const current = () => ({ certificate: own.pair.certificate, authorities: own.authorities });
    const renewal = new Renewal({
      issuer: this.#issuer,
      issueElsewhere: (request) => elsewhere.issue(request),
      nodeId,
      current,
      request: () => own.request(),
      names: () => reachedAs(config),
      take: (signed) => own.take(signed),
      clock,
    });
    this.#authorities = new AuthorityRotation({
      ...inStore,
      api,
      issuer: this.#issuer,
      renewal,
      current,
      etcd: { trusted: etcd.trusted, startAgain: etcd.startAgain },
      clock,
    });
    const tokens = new JoinTokens({ ...inStore, api, clock });
    this.logins = new ClusterLogins({ ...inStore, api, directory: files.directory, log });
    const quick = { endpoints: etcd.urls, tls, callTimeoutMs: QUICK_MS };
    this.#votes = settings.etcd
      ? undefined
      : new Votes({ nodeId, namespace: NAMESPACE, etcd: new EtcdClient(quick), api, clock });
    this.members = { leave: (isKnown) => etcd.leave(isKnown), votes: this.#votes };
    const objects = new ClusterObjects({ api, namespace: NAMESPACE });
    this.store = {
      objects,
      admission: new Admission({
        issuer: this.#issuer,
        tokens,
        files,
        pool,
        members: etcd.invited,
        admitElsewhere: (request) => elsewhere.admit(request),
      }),
      issuer: this.#issuer,
      keys,
      rotation: this.#rotation,
      expulsion: new Expulsion({
        ...inStore,
        api,
        etcd,
        tokens,
        logins: this.logins,
        keys: this.#rotation,
        authorities: this.#authorities,
        secrets: async () => (await objects.list('secrets')).map(({ metadata }) => (metadata as { name: string }).name),
        clock,
        log,
      }),
    };
  }

  /** See `joinCluster` of recorder/cluster/join.ts. */
  open(): Promise<OpenedApi> {
    return Promise.resolve({ api: new ApiServer(this.#connect()), namespace: NAMESPACE });
  }

  /** The cameras of the database, while this server's operator leads; undefined without a database. */
  get rows(): Operator['rows'] {
    return this.#operator?.rows;
  }

  /** The metrics of the operator of this server. */
  metrics(): Promise<string> {
    return this.#operator?.metrics.registry.metrics() ?? Promise.resolve('');
  }

  async #start(): Promise<void> {
    await this.#etcd.start().catch(explain);
    const isOwn = await requireOwnCluster(this.#issuer);
    // Before the first request is answered; without etcd, the copy serves.
    if (isOwn) await this.logins.exchange().catch((err: unknown) => this.#notRegistered(err));
    this.#registering = this.#keepRegistered();
    this.#watchingVotes = this.#votes && this.#watch(this.#votes);
  }

  async #close(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([this.#registering, this.#watchingVotes]);
    await this.#votes?.close();
    this.#given?.close();
    await this.#api.close();
    await this.#etcd.close();
  }

  async #keepRegistered(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#stopping.signal.aborted) {
      try {
        await this.#register();
        this.#problem = '';
      } catch (err) {
        this.#notRegistered(err);
      }
      await clock.sleep(REGISTER_MS, this.#stopping.signal);
    }
  }

  /** Beside the registration, which waits for a member that hangs. */
  async #watch(votes: Votes): Promise<void> {
    const { clock, log } = this.#options;
    while (!this.#stopping.signal.aborted) {
      try {
        await votes.look();
        if (this.#operator?.isLeader) await votes.show();
      } catch (err) {
        log.debug({ problem: messageOf(err) }, 'what etcd says of its members cannot be written now');
      }
      await clock.sleep(REGISTER_MS, this.#stopping.signal);
    }
  }

  async #register(): Promise<void> {
    if (!this.#isAdopted) await this.#issuer.adopt();
    this.#isAdopted = true;
    const role = await this.#registration.renew();
    if (role === 'Removed' && this.#role !== role) this.#options.log.warn({}, NO_MEMBER);
    this.#role = role;
    if (role === 'Removed') await this.#etcd.left();
    else if (this.#etcd.isLeaving) await this.#registration.remove();
    this.#etcd.follow(role);
    if (this.#operator?.isLeader) await this.#etcd.enforce(() => this.#roles());
    // The keys come before what is sealed with them: a server that was away while the key was replaced can read no logins.
    await this.#rotation.follow();
    await this.logins.exchange();
    await this.#authorities.follow();
  }

  /** etcd may have no majority for hours: the reason is logged when it changes. */
  #notRegistered(err: unknown): void {
    const { log } = this.#options;
    const problem = messageOf(err);
    if (!isExpected(err, ApiError, EtcdError, IssueError, NodeFileError, SealError)) log.bug({ err }, NOT_REGISTERED);
    else if (problem !== this.#problem) log.warn({ problem }, NOT_REGISTERED);
    this.#problem = problem;
  }

  async #roles(): Promise<ReadonlyMap<string, Role>> {
    const { items } = await this.#api.list(nodesPath(NAMESPACE));
    return new Map(items.map(({ metadata, spec }) => [metadata.name, (spec as { readonly role: Role }).role]));
  }

  /** Not awaited: recording continues while etcd does not answer. */
  #startOperator(): void {
    const { config, table, defaults, clock, log } = this.#options;
    const starting = startServersOperator({
      rows: table && { databaseOf: () => 'own', open: () => Promise.resolve(table), defaults },
      api: this.#operatorApi,
      namespace: NAMESPACE,
      ownNamespace: NAMESPACE,
      identity: `${config.nodeName}/${randomUUID()}`,
      clock,
      log: log.child({ part: 'operator' }),
    });
    this.#startingOperator = starting.then(
      (started) => void (this.#operator = started),
      (err: unknown) => log.error({ err }, 'the operator cannot be started'),
    );
  }

  async #closeOperator(): Promise<void> {
    await this.#startingOperator;
    await this.#operator?.close();
    await this.#operatorApi.close();
  }
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

/** Resolves to whether etcd answers. Rejects with ConfigError if it holds the objects of another cluster. */
async function requireOwnCluster(issuer: Issuer): Promise<boolean> {
  try {
    await issuer.adopt();
    return true;
  } catch (err) {
    if (err instanceof IssueError) throw new ConfigError('', 'cluster.etcd.endpoints', err.message);
    // It does not answer now.
    if (!(err instanceof ApiError)) throw err;
    return false;
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
