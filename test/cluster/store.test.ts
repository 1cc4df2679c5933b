// What operator and recorders rely on when they read, write and watch objects: the same on a real API server and in the store over
// etcd. What the contract of our kinds is, `contract.test.ts` tests.

import { after, before, suite, test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { isNewer } from '../../base/kubernetes/resource-version.ts';
import { systemClock } from '../../base/clock.ts';
import { EtcdClient } from '../../base/etcd/client.ts';
import { parseCamera, type Camera } from '../../crds/camera.ts';
import { API_VERSION, nodeLeaseName, poolLabels } from '../../crds/names.ts';
import type { KubeApi, KubeObject, WatchEvent } from '../../operator/kube/api.ts';
import { RestKubeApi } from '../../operator/kube/client.ts';
import { Informer } from '../../operator/kube/informer.ts';
import { KubeConfigConnection, loadKubeConfig } from '../../operator/kube/kube-config.ts';
import { LeaderElector, type LeaderTiming } from '../../operator/kube/leader.ts';
import { CAMERA, LEASE, RECORDER_NODE, RECORDER_POOL, SECRET } from '../../operator/kube/resources.ts';
import { applyStatus } from '../../operator/kube/status.ts';
import { StoreConnection } from '../../store/connection.ts';
import { STORE_NAMESPACE } from '../../store/names.ts';
import { silentLog } from '../../base/log.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { PATIENCE_MS, until } from '../support/until.ts';
import { startControlPlane, type ControlPlane } from './control-plane.ts';
import { apiServerMissing, etcdMissing } from './programs.ts';
import { TURNING_SEAL } from './store-api.ts';

const NAMESPACE = STORE_NAMESPACE;
const TIME = '2026-01-01T00:00:00Z';

let controlPlane: ControlPlane;
let api: RestKubeApi;
/** Another client of the same server, which reads lists in pages of so many objects. */
let clientWith: (options: {
  readonly pageSize?: number;
  readonly watchSeconds?: { least: number; most: number };
}) => RestKubeApi;

suite('objects on a real API server', { skip: apiServerMissing() }, () => {
  before(async () => {
    controlPlane = await startControlPlane({ parts: ['etcd', 'kube-apiserver'] });
    clientWith = (options) =>
      new RestKubeApi(new KubeConfigConnection(loadKubeConfig(controlPlane.kubeconfig), systemClock), options);
    api = clientWith({});
    await controlPlane.installKinds();
    for (const resource of [CAMERA, RECORDER_POOL, RECORDER_NODE]) {
      await until(`${resource.kind} is served`, () => api.list(resource, {}).then(() => true));
    }
  });

  after(async () => {
    await api?.close();
    await controlPlane?.close();
  });

  keepsObjects();
});

const connectionTo = (url: string): StoreConnection =>
  new StoreConnection({
    etcd: new EtcdClient({ endpoints: () => [url], callTimeoutMs: PATIENCE_MS }),
    seal: TURNING_SEAL,
    clock: systemClock,
  });

suite('objects in the store over etcd', { skip: etcdMissing() }, () => {
  before(async () => {
    const flags = ['--experimental-watch-progress-notify-interval=200ms'];
    controlPlane = await startControlPlane({ parts: ['etcd'], flags: { etcd: flags } });
    clientWith = (options) =>
      new RestKubeApi(connectionTo(controlPlane.etcd), { callTimeoutMs: PATIENCE_MS, ...options });
    api = clientWith({});
  });

  after(async () => {
    await api?.close();
    await controlPlane?.close();
  });

  keepsObjects();

  test('a pool goes with its nodes, and these with their Leases, also if they are more than etcd deletes at once', async () => {
    const owned = (kind: string, name: string, uid: string | undefined) => ({
      ownerReferences: [{ apiVersion: API_VERSION, kind, name, uid: uid!, controller: true }],
    });
    const { metadata: pool } = await api.create(RECORDER_POOL, poolOf('going'));
    await api.create(RECORDER_NODE, nodeOf('staying', {}));
    for (let i = 0; i < 70; i++) {
      const name = `going-${i}`;
      const { metadata } = await api.create(RECORDER_NODE, nodeOf(name, owned('RecorderPool', 'going', pool.uid)));
      const meta = { ...ref(`lease-${name}`), ...owned('RecorderNode', name, metadata.uid) };
      await api.create(LEASE, { metadata: meta });
    }
    await api.delete(RECORDER_POOL, ref('going'));
    const names = async (of: typeof LEASE) =>
      (await api.list(of, { namespace: NAMESPACE })).items
        .map(({ metadata: { name } }) => name)
        .filter((name) => name.includes('going') || name === 'staying');
    assert.deepEqual([await names(RECORDER_NODE), await names(LEASE)], [['staying'], []]);
  });

  test('a Secret is sealed in etcd, and read as it was written', async () => {
    await api.create(SECRET, { metadata: ref('login'), stringData: { username: 'viewer', password: 'swordfish' } });
    const { data } = (await api.get(SECRET, ref('login'))) as KubeObject & { data: Record<string, string> };
    assert.equal(Buffer.from(data['password']!, 'base64').toString(), 'swordfish');
    const etcd = new EtcdClient({ endpoints: () => [controlPlane.etcd] });
    const { kvs } = await etcd.range({ key: '/kube-nvr/', rangeEnd: '/kube-nvr0' });
    await etcd.close();
    const stored = kvs.map(({ value }) => value.toString('utf8'));
    const isIn = (text: string): boolean => stored.some((value) => value.includes(text));
    assert.ok(isIn('"kind":"RecorderNode"'));
    assert.ok(!isIn('swordfish') && !isIn(data['password']!));
  });

  test('bookmarks tell how far an idle watch has come, so that it need not list again after a compaction', async (t) => {
    const { resourceVersion } = await api.list(RECORDER_POOL, { namespace: NAMESPACE });
    const told = watch(t, RECORDER_POOL, resourceVersion);
    await api.create(CAMERA, camera('elsewhere-before'));
    const created = await api.create(CAMERA, camera('elsewhere'));
    const bookmark = await until('a bookmark after the change', () =>
      told.find(
        ({ type, object }) =>
          type === 'BOOKMARK' && !isNewer(created.metadata.resourceVersion!, object.metadata.resourceVersion!),
      ),
    );
    await compact(bookmark.object.metadata.resourceVersion!);
    const next = api.watch(RECORDER_POOL, { ...HERE, resourceVersion }, AbortSignal.timeout(PATIENCE_MS));
    await assert.rejects(next[Symbol.asyncIterator]().next(), { status: 410, reason: 'Expired' });
    const resumed = watch(t, RECORDER_POOL, bookmark.object.metadata.resourceVersion!);
    await api.create(RECORDER_POOL, poolOf('after-the-bookmark'));
    await until('it goes on', () => resumed.some(({ object }) => object.metadata.name === 'after-the-bookmark'));
  });

  test('a list whose revision was compacted must be started again', async (t) => {
    const client = clientWith({ pageSize: 1 });
    t.after(() => client.close());
    for (const name of ['old-1', 'old-2', 'old-3']) await api.create(CAMERA, camera(name));
    const pages = client.pages(CAMERA, HERE)[Symbol.asyncIterator]();
    const first = await pages.next();
    await api.mergePatch(CAMERA, ref('old-1'), { spec: { ptz: true } });
    const { resourceVersion } = await api.list(CAMERA, HERE);
    await compact(resourceVersion);
    assert.equal(first.done, false);
    await assert.rejects(pages.next(), { status: 410, reason: 'Expired' });
  });

  test('a call to an etcd that does not answer takes its deadline, and the error is not one of the caller', async (t) => {
    const { port, hostname } = new URL(controlPlane.etcd);
    const proxy = await TcpProxy.to(Number(port), hostname);
    const client = new RestKubeApi(connectionTo(`http://${hostname}:${proxy.port}`), { callTimeoutMs: PATIENCE_MS });
    t.after(async () => {
      await client.close();
      await proxy.close();
    });
    await client.list(CAMERA, HERE);
    proxy.silence();
    await assert.rejects(client.get(CAMERA, ref('x'), { timeoutMs: 300 }), { status: 0, reason: 'UNREACHABLE' });
    proxy.heal();
    await until('it answers again', () =>
      client.get(CAMERA, ref('x')).catch((err: { status: number }) => err.status === 404),
    );
  });

  test('an informer follows through the death and the return of etcd', async (t) => {
    const informer = informerOf(t);
    await informer.whenSynced(AbortSignal.timeout(PATIENCE_MS));
    await controlPlane.kill('etcd');
    await controlPlane.start('etcd');
    await until('cameras can be made', () => api.create(CAMERA, camera('after-restart')).then(() => true));
    await until('it is seen', () => informer.get(`${NAMESPACE}/after-restart`));
  });
});

async function compact(revision: string): Promise<void> {
  const answer = await fetch(`${controlPlane.etcd}/v3/kv/compaction`, {
    method: 'POST',
    body: JSON.stringify({ revision, physical: true }),
  });
  assert.ok(answer.ok, await answer.text());
}

const HERE = { namespace: NAMESPACE };
const ref = (name: string) => ({ namespace: NAMESPACE, name });

const camera = (name: string, spec: object = {}, metadata: object = {}): KubeObject => ({
  metadata: { ...ref(name), ...metadata },
  spec: { source: 'rtsp://10.0.0.9/1', ...spec },
});

const poolOf = (name: string): KubeObject => ({ metadata: ref(name), spec: { archive: { hostPath: '/mnt/archive' } } });

const nodeOf = (name: string, metadata: object): KubeObject => ({
  metadata: { ...ref(name), ...metadata },
  spec: { nodeName: name, poolRef: { name: 'default' } },
});

/** Everything that a watch tells, as it comes. */
function watch(t: TestContext, resource: typeof CAMERA, resourceVersion: string, selection: object = {}): WatchEvent[] {
  const told: WatchEvent[] = [];
  const stop = new AbortController();
  const read = async (): Promise<void> => {
    for await (const event of api.watch(resource, { ...HERE, ...selection, resourceVersion }, stop.signal)) {
      told.push(event);
    }
  };
  const reading = read().catch(() => {});
  t.after(async () => {
    stop.abort();
    await reading;
  });
  return told;
}

function informerOf(t: TestContext): Informer<Camera> {
  const source = { api: api as KubeApi, resource: CAMERA, selection: HERE };
  const informer = new Informer({ ...source, parse: parseCamera, clock: systemClock, log: silentLog });
  t.after(() => informer.close());
  informer.start();
  return informer;
}

const shortly = ({ type, object }: WatchEvent): string => `${type} ${object.metadata.name}`;
const isChange = ({ type }: WatchEvent): boolean => type !== 'BOOKMARK';

/** What is the same on both. */
function keepsObjects(): void {
  test('refusals are told apart: not there, there already, changed meanwhile, invalid', async () => {
    await assert.rejects(api.get(CAMERA, ref('none')), { status: 404, reason: 'NotFound' });
    await assert.rejects(api.delete(CAMERA, ref('none')), { status: 404, reason: 'NotFound' });
    await assert.rejects(api.mergePatch(CAMERA, ref('none'), { spec: {} }), { status: 404, reason: 'NotFound' });
    const first = await api.create(CAMERA, camera('told'));
    await assert.rejects(api.create(CAMERA, camera('told')), { status: 409, reason: 'AlreadyExists' });
    await api.mergePatch(CAMERA, ref('told'), { spec: { ptz: true } });
    await assert.rejects(api.replace(CAMERA, first), { status: 409, reason: 'Conflict' });
    const { resourceVersion: _, ...metadata } = first.metadata;
    await assert.rejects(api.replace(CAMERA, { ...first, metadata }), { status: 422, reason: 'Invalid' });
    await assert.rejects(api.create(CAMERA, camera('bad', { source: 'x' })), { status: 422, reason: 'Invalid' });
    await assert.rejects(api.create(CAMERA, camera('Bad')), { status: 422, reason: 'Invalid' });
  });

  test('a new object has a uid, a time and a generation, which no writer changes', async () => {
    const created = await api.create(CAMERA, camera('identity', {}, { uid: 'mine', generation: 7 }));
    const { uid, generation, creationTimestamp, resourceVersion } = created.metadata;
    assert.match(uid!, /^[0-9a-f]{8}-[0-9a-f-]{27}$/);
    assert.equal(generation, 1);
    assert.ok(Math.abs(Date.parse(creationTimestamp!) - Date.now()) < 60_000);
    const forged = { ...created, metadata: { ...created.metadata, creationTimestamp: TIME, generation: 9 } };
    const replaced = await api.replace(CAMERA, { ...forged, spec: { ...(created['spec'] as object), ptz: true } });
    assert.deepEqual(
      [replaced.metadata.uid, replaced.metadata.creationTimestamp, replaced.metadata.generation],
      [uid, creationTimestamp, 2],
    );
    assert.ok(isNewer(replaced.metadata.resourceVersion!, resourceVersion!));
    const other = { uid: '00000000-0000-0000-0000-000000000000' };
    const patch = { metadata: other, spec: { ptz: false } };
    await assert.rejects(api.mergePatch(CAMERA, ref('identity'), patch), { status: 422, reason: 'Invalid' });
    const metadata = { ...replaced.metadata, ...other };
    await assert.rejects(api.replace(CAMERA, { ...replaced, metadata }), { status: 409, reason: 'Conflict' });
  });

  test('a write that changes nothing is no new version; labels are no new generation', async () => {
    const created = await api.create(CAMERA, camera('same', {}, { labels: { floor: '1' } }));
    assert.equal((await api.replace(CAMERA, created)).metadata.resourceVersion, created.metadata.resourceVersion);
    const patched = await api.mergePatch(CAMERA, ref('same'), { spec: { ptz: false } });
    assert.equal(patched.metadata.resourceVersion, created.metadata.resourceVersion);
    const labelled = await api.mergePatch(CAMERA, ref('same'), { metadata: { labels: { floor: '2' } } });
    assert.ok(isNewer(labelled.metadata.resourceVersion!, created.metadata.resourceVersion!));
    assert.equal(labelled.metadata.generation, 1);
  });

  test('a dry run refuses and writes nothing', async () => {
    await api.create(CAMERA, camera('dry'), { dryRun: true });
    await assert.rejects(api.get(CAMERA, ref('dry')), { status: 404 });
    await assert.rejects(api.create(CAMERA, camera('dry', { source: 'x' }), { dryRun: true }), { status: 422 });
  });

  test('a merge patch removes what is null, and says which version it changes if it wants to', async () => {
    const { metadata } = await api.create(CAMERA, camera('patched', { displayName: 'Gate', snapshot: 'http://a/b' }));
    const patch = { metadata: { resourceVersion: metadata.resourceVersion }, spec: { snapshot: null, ptz: true } };
    const { spec } = (await api.mergePatch(CAMERA, ref('patched'), patch)) as KubeObject & { spec: object };
    assert.deepEqual({ ...spec, ptz: true, displayName: 'Gate' }, spec);
    assert.ok(!('snapshot' in spec));
    await assert.rejects(api.mergePatch(CAMERA, ref('patched'), patch), { status: 409, reason: 'Conflict' });
  });

  test('of writers at the same time that name no version, none is lost', async () => {
    await api.create(CAMERA, camera('busy'));
    const write = (i: number) => api.mergePatch(CAMERA, ref('busy'), { metadata: { annotations: { [`a${i}`]: 'x' } } });
    await Promise.all([0, 1, 2, 3].map(write));
    const { annotations } = (await api.get(CAMERA, ref('busy'))).metadata;
    assert.deepEqual(Object.keys(annotations ?? {}).sort(), ['a0', 'a1', 'a2', 'a3']);
  });

  test('applied fields belong to the client that applies them: others take them over by force, and they are removed with the last owner', async () => {
    const apply = (manager: string, spec: object, force = false) =>
      api.apply(CAMERA, camera('applied', spec), { fieldManager: manager, force });
    await apply('one', { displayName: 'Gate', ptz: true });
    await assert.rejects(apply('two', { displayName: 'Yard' }), { status: 409, reason: 'Conflict' });
    await apply('two', { displayName: 'Gate' });
    const shared = (await apply('one', { ptz: true }))['spec'] as Record<string, unknown>;
    assert.equal(shared['displayName'], 'Gate', 'two has it still');
    const taken = (await apply('two', { displayName: 'Yard', ptz: false }, true))['spec'] as Record<string, unknown>;
    assert.deepEqual([taken['displayName'], taken['ptz']], ['Yard', false]);
    const left = (await apply('two', {}))['spec'] as Record<string, unknown>;
    assert.deepEqual(['displayName' in left, left['ptz']], [false, false]);
  });

  test('applying without a change makes no new version', async () => {
    const apply = () => api.apply(CAMERA, camera('again', { ptz: true }), { fieldManager: 'one' });
    const { resourceVersion } = (await apply()).metadata;
    assert.equal((await apply()).metadata.resourceVersion, resourceVersion);
  });

  test('conditions and assignment have two writers and disturb each other not', async () => {
    const created = await api.create(CAMERA, camera('two-writers'));
    const replaceStatus = (read: KubeObject, status: object): Promise<KubeObject> =>
      api.replace(CAMERA, { ...read, status }, { subresource: 'status' });
    const ready = { type: 'Ready', status: 'True', reason: 'Recording', message: '', lastTransitionTime: TIME };
    await applyStatus(api, CAMERA, created.metadata, { observedGeneration: 1, conditions: [ready] });
    const read = await api.get(CAMERA, ref('two-writers'));
    const assignment = { node: 'a', epoch: 1, reason: 'Scheduled', time: TIME };
    await replaceStatus(read, { ...(read['status'] as object), assignment });
    const failed = { ...ready, status: 'False' };
    const after = await applyStatus(api, CAMERA, created.metadata, { observedGeneration: 1, conditions: [failed] });
    assert.deepEqual(after['status'], { observedGeneration: 1, conditions: [failed], assignment });
    await assert.rejects(replaceStatus(read, { assignment: { ...assignment, epoch: 2 } }), { status: 409 });
    const emptied = await applyStatus(api, CAMERA, created.metadata, { observedGeneration: 1 });
    assert.deepEqual(emptied['status'], { observedGeneration: 1, assignment });
  });

  test('a condition of one writer goes when that one leaves it out, and that of another stays', async () => {
    await api.create(RECORDER_NODE, nodeOf('conditions', {}));
    const condition = (type: string) => ({
      type,
      status: 'True',
      reason: 'Fine',
      message: '',
      lastTransitionTime: TIME,
    });
    const report = (manager: string, status: object) =>
      api.apply(
        RECORDER_NODE,
        { metadata: ref('conditions'), status },
        { fieldManager: manager, force: true, subresource: 'status' },
      );
    await report('recorder', { version: '1', conditions: [condition('Ready'), condition('Disk')] });
    await report('operator', { conditions: [condition('Online')] });
    const { status } = (await report('recorder', { conditions: [condition('Ready')] })) as KubeObject & {
      status: { version?: string; conditions: { type: string }[] };
    };
    assert.equal(status.version, undefined);
    assert.deepEqual(status.conditions.map(({ type }) => type).sort(), ['Online', 'Ready']);
  });

  test('a deletion asked for by uid or version leaves a later object of the name alone', async () => {
    const { metadata } = await api.create(CAMERA, camera('deleted'));
    await assert.rejects(api.delete(CAMERA, ref('deleted'), { resourceVersion: '1' }), { status: 409 });
    await api.delete(CAMERA, ref('deleted'), { uid: metadata.uid, resourceVersion: metadata.resourceVersion });
    await api.create(CAMERA, camera('deleted'));
    await assert.rejects(api.delete(CAMERA, ref('deleted'), { uid: metadata.uid }), { status: 409 });
    assert.ok(await api.get(CAMERA, ref('deleted')));
  });

  test('an object with a finalizer is marked, and goes when the last one is removed', async () => {
    await api.create(CAMERA, camera('finalized', {}, { finalizers: ['kube-nvr.dev/a', 'kube-nvr.dev/b'] }));
    await api.delete(CAMERA, ref('finalized'));
    await api.delete(CAMERA, ref('finalized'));
    const marked = await api.get(CAMERA, ref('finalized'));
    assert.ok(marked.metadata.deletionTimestamp);
    const set = (finalizers: readonly string[] | null) =>
      api.mergePatch(CAMERA, ref('finalized'), { metadata: { finalizers } });
    assert.equal((await set(['kube-nvr.dev/b'])).metadata.deletionTimestamp, marked.metadata.deletionTimestamp);
    await set(null);
    await assert.rejects(api.get(CAMERA, ref('finalized')), { status: 404 });
  });

  test('a Lease is renewed by its holder, and by one of two at once', async () => {
    const name = nodeLeaseName('node-1');
    const lease = await api.create(LEASE, { metadata: { ...ref(name), labels: poolLabels('default') } });
    const spec = { holderIdentity: 'node-1/a', leaseDurationSeconds: 14, renewTime: '2026-01-01T00:00:00.000000Z' };
    const held = await api.replace(LEASE, { ...lease, spec });
    assert.deepEqual(held['spec'], spec);
    await assert.rejects(api.replace(LEASE, { ...lease, spec }), { status: 409, reason: 'Conflict' });
    const bad = { ...held, spec: { ...spec, leaseDurationSeconds: 0 } };
    await assert.rejects(api.replace(LEASE, bad), { status: 422, reason: 'Invalid' });
    const { items } = await api.list(LEASE, { ...HERE, labelSelector: 'kube-nvr.dev/pool=default' });
    assert.deepEqual(
      items.map((one) => one.metadata.name),
      [name],
    );
  });

  test('lists are selected by labels and fields', async () => {
    for (const [name, floor] of [
      ['select-1', '1'],
      ['select-2', '2'],
    ] as const) {
      await api.create(CAMERA, camera(name, {}, { labels: { floor, site: 'selected' } }));
    }
    const names = async (selection: object): Promise<string[]> =>
      (await api.list(CAMERA, { ...HERE, ...selection })).items
        .map(({ metadata }) => metadata.name)
        .filter((name) => name.startsWith('select-'));
    const cases: readonly (readonly [object, readonly string[]])[] = [
      [{ labelSelector: 'site=selected' }, ['select-1', 'select-2']],
      [{ labelSelector: 'site=selected,floor in (2,3)' }, ['select-2']],
      [{ labelSelector: 'site,floor notin (2,3)' }, ['select-1']],
      [{ labelSelector: 'site!=selected' }, []],
      [{ labelSelector: '!site' }, []],
      [{ fieldSelector: 'metadata.name=select-2' }, ['select-2']],
      [{ fieldSelector: 'metadata.name!=select-2', labelSelector: 'site' }, ['select-1']],
    ];
    for (const [selection, expected] of cases)
      assert.deepEqual(await names(selection), expected, JSON.stringify(selection));
    await assert.rejects(api.list(CAMERA, { ...HERE, fieldSelector: 'spec.source=x' }), { status: 400 });
  });

  test('a list in pages shows one moment', async (t) => {
    const client = clientWith({ pageSize: 2 });
    t.after(() => client.close());
    for (let i = 0; i < 5; i++) await api.create(CAMERA, camera(`page-${i}`));
    const names: string[] = [];
    for await (const { items } of client.pages(CAMERA, HERE)) {
      // Made after the list began, and last in its order: no page shows it.
      if (names.length === 0) await api.create(CAMERA, camera('zz-later'));
      assert.ok(items.length <= 2);
      names.push(...items.map(({ metadata }) => metadata.name));
    }
    assert.equal(new Set(names).size, names.length);
    assert.equal(names.filter((name) => name.startsWith('page-')).length, 5);
    assert.ok(!names.includes('zz-later'));
  });

  test('a watch tells each change after its version once, in order, with the object as it is read', async (t) => {
    const { resourceVersion } = await api.list(CAMERA, HERE);
    const created = await api.create(CAMERA, camera('watched'));
    const told = watch(t, CAMERA, resourceVersion);
    const patched = await api.mergePatch(CAMERA, ref('watched'), { spec: { ptz: true } });
    await api.delete(CAMERA, ref('watched'));
    await until('the deletion is told', () => told.some(({ type }) => type === 'DELETED'));
    const changes = told.filter(isChange);
    assert.deepEqual(changes.map(shortly), ['ADDED watched', 'MODIFIED watched', 'DELETED watched']);
    assert.deepEqual(changes[0]!.object, created);
    assert.deepEqual(changes[1]!.object, patched);
    assert.ok(isNewer(changes[2]!.object.metadata.resourceVersion!, patched.metadata.resourceVersion!));
  });

  test('an object that comes into a selection is added, and one that leaves it deleted', async (t) => {
    const created = await api.create(CAMERA, camera('moving'));
    const mine = watch(t, CAMERA, created.metadata.resourceVersion!, {
      fieldSelector: 'status.assignment.node=node-7',
    });
    const assign = (node: string, epoch: number) =>
      api.mergePatch(
        CAMERA,
        ref('moving'),
        { status: { assignment: { node, epoch, reason: 'Scheduled', time: TIME } } },
        { subresource: 'status' },
      );
    await assign('node-7', 1);
    await api.mergePatch(CAMERA, ref('moving'), { spec: { ptz: true } });
    const moved = await assign('node-8', 2);
    await until('it has left', () => mine.some(({ type }) => type === 'DELETED'));
    await api.create(CAMERA, camera('not-mine'));
    const changes = mine.filter(isChange);
    assert.deepEqual(changes.map(shortly), ['ADDED moving', 'MODIFIED moving', 'DELETED moving']);
    assert.equal(changes[2]!.object.metadata.resourceVersion, moved.metadata.resourceVersion);
  });

  test('a watch ends when its time is over', async () => {
    const client = clientWith({ watchSeconds: { least: 1, most: 1 } });
    const { resourceVersion } = await client.list(CAMERA, HERE);
    const told: string[] = [];
    for await (const event of client.watch(CAMERA, { ...HERE, resourceVersion }, AbortSignal.timeout(PATIENCE_MS))) {
      if (isChange(event)) told.push(shortly(event));
    }
    assert.deepEqual(told, []);
    await client.close();
  });

  test('an informer has what a list has', async (t) => {
    const informer = informerOf(t);
    await informer.whenSynced(AbortSignal.timeout(PATIENCE_MS));
    await api.create(CAMERA, camera('informed'));
    await until('it is seen', () => informer.get(`${NAMESPACE}/informed`));
    const { items } = await api.list(CAMERA, HERE);
    assert.deepEqual(
      informer
        .list()
        .map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`)
        .sort(),
      items.map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`).sort(),
    );
  });

  const timing: LeaderTiming = { leaseDurationMs: 2_000, renewDeadlineMs: 1_400, retryMs: 300 };

  test('of replicas one is elected, and hands over when it stops', async () => {
    const leading = new Set<string>();
    const overlaps: string[] = [];
    const replicas = ['a', 'b'].map((identity) => {
      const elector = new LeaderElector({
        api,
        namespace: NAMESPACE,
        identity,
        timing,
        clock: systemClock,
        log: silentLog,
      });
      const stop = new AbortController();
      const run = elector.run(async (term) => {
        if (leading.size > 0) overlaps.push(identity);
        leading.add(identity);
        await new Promise((resolve) => term.addEventListener('abort', resolve, { once: true }));
        leading.delete(identity);
      }, stop.signal);
      return { elector, stop, run };
    });
    const first = await until('one leads', () => replicas.find(({ elector }) => elector.isLeader));
    first.stop.abort();
    await first.run;
    const second = await until('the other leads', () => replicas.find((one) => one !== first && one.elector.isLeader));
    second.stop.abort();
    await second.run;
    assert.deepEqual(overlaps, []);
  });
}
