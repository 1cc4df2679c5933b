// The key that encrypts Secrets is replaced, in the store over a real etcd: while all nodes are there, while one is away, and when it
// ends in the middle.

import assert from 'node:assert/strict';
import { after, before, suite, test, type TestContext } from 'node:test';
import { systemClock, type Clock } from '../../base/clock.ts';
import { EtcdClient } from '../../base/etcd/client.ts';
import { silentLog } from '../../base/log.ts';
import { API_VERSION } from '../../crds/names.ts';
import { ClusterKeys } from '../../recorder/certificates/cluster-keys.ts';
import { foundCluster } from '../../recorder/certificates/found-cluster.ts';
import { KeyRing } from '../../recorder/certificates/key-ring.ts';
import { KeyRotation, RotationError } from '../../recorder/certificates/key-rotation.ts';
import { nodeFiles, readKeys, writeMember } from '../../recorder/certificates/node-files.ts';
import { ApiServer } from '../../recorder/cluster/api-server.ts';
import { StoreConnection } from '../../store/connection.ts';
import { STORE_NAMESPACE as namespace } from '../../store/names.ts';
import { workspace } from '../support/workspace.ts';
import { startControlPlane, type ControlPlane } from './control-plane.ts';
import { etcdMissing } from './programs.ts';

const POOL = 'default';
const NAMES = ['rack-1', 'rack-2', 'rack-3'] as const;
const SECRETS = `/api/v1/namespaces/${namespace}/secrets`;
const LOOK_MS = 50;
const HOUR_MS = 3_600_000;
const OURS = `/apis/${API_VERSION}/namespaces/${namespace}`;

let controlPlane: ControlPlane;

/** A node of the cluster as far as its keys are concerned. */
class Node {
  readonly name: string;
  readonly keys: ClusterKeys;
  readonly api: ApiServer;
  readonly rotation: KeyRotation;
  readonly #files: ReturnType<typeof nodeFiles>;
  /** The ids that it has last said that it has. */
  #said = '';
  #following: { isOver: boolean; readonly done: Promise<void> } | undefined;

  constructor(name: string, { ring, all, directory }: { ring: KeyRing; all: readonly Node[]; directory: string }) {
    this.name = name;
    this.#files = nodeFiles(directory, name);
    const others = (): readonly Node[] => all.filter((node) => node !== this && node.isThere);
    const ask = async function* (): AsyncGenerator<string> {
      for (const other of others()) yield other.keys.text;
    };
    this.keys = new ClusterKeys({ files: this.#files, ring, ask, log: silentLog });
    const etcd = new EtcdClient({ endpoints: () => [controlPlane.etcd] });
    const connection = new StoreConnection({ etcd, seal: this.keys, clock: systemClock });
    this.api = new ApiServer(connection);
    let nowMs = 0;
    const clock: Clock = {
      ...systemClock,
      monotonicMs: () => nowMs,
      sleep: async (ms) => {
        await systemClock.sleep(ms);
        // Nodes that are there have all the time that they need; for those that are away no time is lost.
        if (others().every((other) => other.#said === this.keys.ids.join())) nowMs += HOUR_MS;
      },
    };
    const common = { namespace, pool: POOL, nodeId: name, keys: this.keys, clock };
    this.rotation = new KeyRotation({ ...common, api: this.api, reseal: () => this.reseal(connection) });
  }

  reseal = (connection: StoreConnection): Promise<number> => connection.reseal();

  get isThere(): boolean {
    return this.#following !== undefined;
  }

  start(): void {
    const run = async (): Promise<void> => {
      do {
        await this.rotation.follow();
        this.#said = this.keys.ids.join();
        await systemClock.sleep(LOOK_MS);
      } while (this.#following?.isOver !== true);
    };
    this.#following = { isOver: false, done: run() };
  }

  async stop(): Promise<void> {
    const following = this.#following;
    if (!following) return;
    following.isOver = true;
    await following.done;
    this.#following = undefined;
  }

  /** The ids in the file, which the node has after a restart. */
  async kept(): Promise<readonly string[]> {
    return KeyRing.parse(await readKeys(this.#files)).ids;
  }

  async password(): Promise<string> {
    const { data } = await this.api.get(`${SECRETS}/login`);
    return Buffer.from((data as { password: string }).password, 'base64').toString('utf8');
  }
}

/** Three nodes with one key, a pool, and a Secret. Only the first two run. */
async function stage(t: TestContext): Promise<readonly [Node, Node, Node]> {
  const directory = workspace(t);
  const etcd = new EtcdClient({ endpoints: () => [controlPlane.etcd] });
  const { kvs } = await etcd.range({ key: '/kube-nvr/', rangeEnd: '/kube-nvr0' });
  for (const { key } of kvs) await etcd.txn({ compare: [], success: [{ delete: { key } }] });
  await etcd.close();
  const ring = KeyRing.new();
  const all: Node[] = [];
  for (const nodeId of NAMES) {
    const about = { namespace, pool: POOL, nodeId, names: [], nowMs: Date.now() };
    const content = { ...(await foundCluster(about)), keys: ring.format() };
    await writeMember(nodeFiles(directory, nodeId), content);
    all.push(new Node(nodeId, { ring, all, directory }));
  }
  const [first, second, third] = all as [Node, Node, Node];
  const make = (path: string, object: object): Promise<unknown> => first.api.call('POST', path, object);
  const spec = { archive: { hostPath: '/mnt/archive' } };
  await make(`${OURS}/recorderpools`, {
    apiVersion: API_VERSION,
    kind: 'RecorderPool',
    metadata: { name: POOL },
    spec,
  });
  for (const name of NAMES) {
    const node = { metadata: { name }, spec: { nodeName: name, poolRef: { name: POOL }, role: 'Voter' } };
    await make(`${OURS}/recordernodes`, { apiVersion: API_VERSION, kind: 'RecorderNode', ...node });
  }
  const stringData = { username: 'viewer', password: 'swordfish' };
  await make(SECRETS, { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'login' }, stringData });
  first.start();
  second.start();
  t.after(async () => {
    for (const node of all) {
      await node.stop();
      await node.api.close();
    }
  });
  return [first, second, third];
}

/** The id of the key that encrypts the Secret in etcd. */
async function sealedWith(): Promise<string> {
  const etcd = new EtcdClient({ endpoints: () => [controlPlane.etcd] });
  const { kvs } = await etcd.range({ key: `/kube-nvr/objects/secrets/${namespace}/login` });
  await etcd.close();
  return kvs[0]!.value.toString('hex', 4, 8);
}

const refused = (words: RegExp) => (err: unknown) => err instanceof RotationError && words.test(err.message);

suite('the key of Secrets is replaced', { skip: etcdMissing() }, () => {
  before(async () => {
    controlPlane = await startControlPlane({ parts: ['etcd'] });
  });
  after(() => controlPlane?.close());

  test('all nodes have the new key before it is used, and all Secrets are encrypted with it', async (t) => {
    const nodes = await stage(t);
    const [first, second, third] = nodes;
    third.start();
    const [old] = first.keys.ids;
    const { key, secrets, away } = await second.rotation.rotate({ force: false });
    assert.deepEqual([secrets, away], [1, []]);
    assert.equal(await sealedWith(), key);
    for (const node of nodes) {
      assert.deepEqual([...node.keys.ids], [key, old], node.name);
      assert.deepEqual(await node.kept(), [key, old], node.name);
      assert.equal(await node.password(), 'swordfish');
    }
  });

  test('while a node is away nothing is replaced without force; with force it gets the key when it returns', async (t) => {
    const [first, second, third] = await stage(t);
    const old = await sealedWith();
    await assert.rejects(first.rotation.rotate({ force: false }), refused(/because rack-3 does not have the new one/));
    assert.equal(await sealedWith(), old);
    const { key, away } = await first.rotation.rotate({ force: true });
    assert.deepEqual([await sealedWith(), away], [key, ['rack-3']]);
    await assert.rejects(third.password(), /etcd|encrypted/);
    await third.rotation.follow();
    assert.equal(await third.password(), 'swordfish');
    assert.deepEqual(await third.kept(), [...first.keys.ids]);
    await second.stop();
    await assert.rejects(
      first.rotation.rotate({ force: true }),
      refused(/rack-2, rack-3 do not have .* at least one other node must have it/),
    );
    assert.equal(await sealedWith(), key);
  });

  test('an end in the middle leaves Secrets that every node can read, and the next time completes it', async (t) => {
    const [first, second, third] = await stage(t);
    third.start();
    const old = await sealedWith();
    first.reseal = () => Promise.reject(new Error('the power is gone'));
    await assert.rejects(first.rotation.rotate({ force: false }), /the power is gone/);
    assert.equal(await sealedWith(), old);
    const stringData = { password: 'marlin' };
    await second.api.call('PATCH', `${SECRETS}/login`, { stringData }, { contentType: 'application/merge-patch+json' });
    assert.notEqual(await sealedWith(), old);
    for (const node of [first, second, third]) assert.equal(await node.password(), 'marlin');
    const { key } = await second.rotation.rotate({ force: false });
    assert.equal(await sealedWith(), key);
    assert.equal(await third.password(), 'marlin');
  });
});
