// Servers without Kubernetes: three members, each with the operator beside it, over a real etcd. The same code as on Kubernetes
// decides which of them records which camera.

import { after, before, suite, test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import { EtcdClient } from '../../base/etcd/client.ts';
import { silentLog } from '../../base/log.ts';
import type { Camera } from '../../crds/camera.ts';
import { poolLabels } from '../../crds/names.ts';
import type { RecorderNode } from '../../crds/recorder-node.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import type { KubeObject } from '../../operator/kube/api.ts';
import { RestKubeApi } from '../../operator/kube/client.ts';
import { CAMERA, RECORDER_NODE, RECORDER_POOL, SECRET } from '../../operator/kube/resources.ts';
import { startServersOperator, type Operator } from '../../operator/operator.ts';
import { ApiServer } from '../../recorder/cluster/api-server.ts';
import type { CameraReport } from '../../recorder/cluster/cluster.ts';
import { joinCluster, type JoinedCluster } from '../../recorder/cluster/join.ts';
import { StoreConnection } from '../../store/connection.ts';
import { STORE_NAMESPACE } from '../../store/names.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { until as untilWithin } from '../support/until.ts';
import { startControlPlane, type ControlPlane } from './control-plane.ts';
import { etcdMissing } from './programs.ts';
import { TURNING_SEAL } from './store-api.ts';

/** Generous: a busy machine may let etcd wait for half a minute, after which another operator leads. */
const until = <T>(what: string, ask: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> =>
  untilWithin(what, ask, 240_000);

const HERE = { namespace: STORE_NAMESPACE };
const ref = (name: string) => ({ ...HERE, name });
/**
 * Short, so that a failover takes seconds here. A majority counts as heard for three renewals after the last one, so an outage of etcd
 * that is shorter is silence of every node; with a renewal before and one after it, that makes five, which must not be too many.
 */
const FAILOVER = { unavailableAfterSeconds: 6, renewSeconds: 1, failbackAfterSeconds: 600 };
const SERVERS = ['north', 'south', 'west'] as const;

let controlPlane: ControlPlane;
let admin: RestKubeApi;

const connectionTo = (url: string): StoreConnection =>
  new StoreConnection({ etcd: new EtcdClient({ endpoints: () => [url] }), seal: TURNING_SEAL, clock: systemClock });

/** A server: a member of the cluster that says it records what it is assigned, and an operator; both over a link of their own. */
class Server {
  readonly name: string;
  readonly proxy: TcpProxy;
  readonly member: JoinedCluster;
  readonly operator: Operator;
  readonly #directory: string;
  readonly #ticks: NodeJS.Timeout;
  #isStopped = false;

  private constructor(name: string, proxy: TcpProxy, member: JoinedCluster, operator: Operator, directory: string) {
    this.name = name;
    this.proxy = proxy;
    this.member = member;
    this.operator = operator;
    this.#directory = directory;
    this.#ticks = setInterval(() => member.cluster.tick(), 100);
  }

  static async start(t: TestContext | undefined, name: string): Promise<Server> {
    const { port, hostname } = new URL(controlPlane.etcd);
    const proxy = await TcpProxy.to(Number(port), hostname);
    const connect = () => connectionTo(`http://${hostname}:${proxy.port}`);
    const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-server-'));
    const reports = (): ReadonlyMap<string, CameraReport> =>
      new Map(
        member.cluster.cameras().cameras.map(({ id }) => [id, { state: 'Recording', lastWrittenMs: Date.now() }]),
      );
    const member: JoinedCluster = await joinCluster({
      open: async () => ({ api: new ApiServer(connect()), namespace: STORE_NAMESPACE }),
      nodeId: name,
      pool: 'default',
      renewMs: 1_000,
      dataDir: directory,
      recordPath: directory,
      facts: async () => ({
        address: `${name}:9997`,
        playbackAddress: `${name}:9996`,
        certificateRequest: undefined,
        sessionKey: 'A'.repeat(43),
        endedSessions: [],
        version: '1.0.0',
        archiveID: `archive-of-${name}`,
        freeBytes: 1e12,
        fault: undefined,
        cameras: reports(),
        standbys: new Map(),
        archives: [],
      }),
      held: () => [],
      account: { takeOver: () => {}, giveUp: () => {} },
      certified: () => {},
      changed: () => {},
      clock: systemClock,
      log: silentLog,
    });
    const operator = await startServersOperator({
      api: new RestKubeApi(connect()),
      namespace: STORE_NAMESPACE,
      ownNamespace: STORE_NAMESPACE,
      identity: `${name}/${Math.random()}`,
      clock: systemClock,
      log: silentLog,
    });
    const server = new Server(name, proxy, member, operator, directory);
    await member.cluster.start();
    t?.after(() => server.stop());
    return server;
  }

  get cameras(): readonly string[] {
    return this.member.cluster
      .cameras()
      .cameras.map(({ id }) => id)
      .sort();
  }

  /** Without a word to the cluster: as when the power fails. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    clearInterval(this.#ticks);
    this.proxy.silence();
    await Promise.all([this.operator.close(), this.member.cluster.close()]);
    await this.proxy.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

const cameras = async (): Promise<readonly Camera[]> =>
  (await admin.list(CAMERA, HERE)).items as unknown as readonly Camera[];

const owners = async (): Promise<Readonly<Record<string, string | undefined>>> =>
  Object.fromEntries((await cameras()).map(({ metadata, status }) => [metadata.name, status?.assignment?.node]));

const ownOf = (shared: Readonly<Record<string, string | undefined>>, { name }: Server): readonly string[] =>
  Object.keys(shared)
    .filter((camera) => shared[camera] === name)
    .sort();

suite('servers over etcd', { skip: etcdMissing() }, () => {
  const servers = new Map<string, Server>();

  /** Resolves to the owners. */
  const untilAsAssigned = (): ReturnType<typeof owners> =>
    until('all record what they are assigned', async () => {
      const shared = await owners();
      for (const server of servers.values()) assert.deepEqual(server.cameras, ownOf(shared, server), server.name);
      return shared;
    });

  before(async () => {
    const flags = ['--experimental-watch-progress-notify-interval=1s'];
    controlPlane = await startControlPlane({ parts: ['etcd'], flags: { etcd: flags } });
    admin = new RestKubeApi(connectionTo(controlPlane.etcd));
    const spec = { archive: { hostPath: '/var/lib/recorder/archive' }, failover: FAILOVER };
    await admin.create(RECORDER_POOL, { metadata: ref('default'), spec });
    for (const name of SERVERS) {
      const node: KubeObject = {
        metadata: { ...ref(name), labels: { ...poolLabels('default'), site: name === 'west' ? 'yard' : 'hall' } },
        spec: { nodeName: name, poolRef: { name: 'default' }, address: `http://${name}:9997` },
      };
      await admin.create(RECORDER_NODE, node);
    }
    for (const name of SERVERS) servers.set(name, await Server.start(undefined, name));
  });

  after(async () => {
    await Promise.all([...servers.values()].map((server) => server.stop()));
    await admin?.close();
    await controlPlane?.close();
  });

  test('each camera is recorded by one of them, and they share the cameras', async () => {
    const stringData = { username: 'viewer', password: 'swordfish' };
    const annotations = { 'kube-nvr.dev/camera-hosts': '10.0.0.0/8' };
    await admin.create(SECRET, { metadata: { ...ref('login'), annotations }, stringData });
    for (let i = 0; i < 6; i++) {
      const login = i === 0 ? { credentialsSecretRef: { name: 'login' } } : {};
      await admin.create(CAMERA, {
        metadata: ref(`camera-${i}`),
        spec: { source: `rtsp://10.0.0.${i + 1}/1`, ...login },
      });
    }
    const yard = { source: 'rtsp://10.0.0.9/1', placement: { nodeSelector: { site: 'yard' } } };
    await admin.create(CAMERA, { metadata: ref('yard'), spec: yard });
    await until('all are recorded', async () => {
      const recording = (await cameras()).filter(({ status }) =>
        status?.conditions?.some(({ type, status: is }) => type === 'Recording' && is === 'True'),
      );
      return recording.length === 7;
    });
    const shared = await untilAsAssigned();
    assert.equal(shared['yard'], 'west', 'labels of a server are those of its RecorderNode');
    for (const server of servers.values()) assert.ok(ownOf(shared, server).length >= 2, server.name);
    const withLogin = servers.get(shared['camera-0']!)!.member.cluster.cameras().cameras;
    assert.ok(
      withLogin.some(({ source }) => source?.includes('swordfish')),
      'the login is there',
    );
  });

  test('one of the operators leads, and the members know which member leads the pool', async () => {
    await until('one leads', () => [...servers.values()].filter(({ operator }) => operator.isLeader).length === 1);
    const leader = await until('there is a leader, and all are online', async () => {
      const { leader, hasMajority, nodes } = await servers.get('north')!.member.view.metrics();
      assert.deepEqual(
        nodes.map(({ nodeId, isOnline }) => [nodeId, isOnline]),
        SERVERS.map((name) => [name, true]),
      );
      return hasMajority && leader;
    });
    assert.ok(SERVERS.some((name) => name === leader));
  });

  test('a camera that is stopped at its server is stopped in the cluster, and starts again', async () => {
    const [name, node] = Object.entries(await owners())[0]!;
    const { cameraSwitch, cluster } = servers.get(node!)!.member;
    const isOwn = async (): Promise<boolean> => (await owners())[name] === node;
    await until('the member knows it', () => cluster.assignments.get(name)?.state === 'own');
    await cameraSwitch.stop(name, 'me');
    await until('it has no node', async () => !(await isOwn()));
    await until('the member knows that', () => cluster.assignments.get(name)?.state === 'suspended');
    await cameraSwitch.start(name, 'me');
    await until('it has its node again', isOwn);
  });

  test('a server that is drained says when it is empty, and its cameras are elsewhere', async () => {
    const north = async (): Promise<RecorderNode> =>
      (await admin.get(RECORDER_NODE, ref('north'))) as unknown as RecorderNode;
    const drain = (isDrained: boolean): Promise<unknown> =>
      admin.mergePatch(RECORDER_NODE, ref('north'), { spec: { drain: isDrained } });
    await drain(true);
    await until('it is drained', async () => {
      const { status } = await north();
      const isEmpty = status?.conditions?.some(({ type, status: is }) => type === 'Drained' && is === 'True');
      return isEmpty && status?.drain === true;
    });
    assert.ok(!Object.values(await owners()).includes('north'));
    await drain(false);
    await until('it is not drained any more', async () => (await north()).status?.drain === false);
  });

  test('while etcd is away nothing changes; afterwards everything continues', async () => {
    const beforeIt = await untilAsAssigned();
    await controlPlane.kill('etcd');
    await until('the members notice it', () =>
      [...servers.values()].every(({ member }) => !member.cluster.isReachable),
    );
    for (const server of servers.values()) assert.deepEqual(server.cameras, ownOf(beforeIt, server));
    await controlPlane.start('etcd');
    await until('all are back', () => [...servers.values()].every(({ member }) => member.cluster.isReachable));
    assert.deepEqual(await owners(), beforeIt);
  });

  test('the cameras of a server that dies move to the others, also if its operator led', async () => {
    await until('the loss of one leaves a majority', async () => {
      const { status } = (await admin.get(RECORDER_POOL, ref('default'))) as unknown as RecorderPool;
      return status?.voters?.length === 3 && status.quorum?.live === 3;
    });
    // To the server that was drained, which has none: so each of them has one to lose.
    await admin.create(CAMERA, { metadata: ref('late'), spec: { source: 'rtsp://10.0.0.10/1' } });
    await until('the new camera is recorded', async () => (await owners())['late'] !== undefined);
    const leading = await until('one leads', () => [...servers.values()].find(({ operator }) => operator.isLeader));
    const lost = ownOf(await untilAsAssigned(), leading).filter((name) => name !== 'yard');
    assert.ok(lost.length > 0);
    await leading.stop();
    await until('they are elsewhere', async () => {
      const now = await owners();
      return lost.every((name) => now[name] !== undefined && now[name] !== leading.name);
    });
    const left = [...servers.values()].filter((server) => server !== leading);
    await until('they are recorded there', () => {
      const recorded = new Set(left.flatMap(({ cameras: own }) => own));
      return lost.every((name) => recorded.has(name));
    });
    await until('the pool says that it is gone', async () => {
      const node = (await admin.get(RECORDER_NODE, ref(leading.name))) as unknown as RecorderNode;
      return node.status?.conditions?.some(({ type, status: is }) => type === 'Online' && is !== 'True');
    });
  });
});
