// operator/kube against a real API server, with a link between them that breaks in every way links break.

import { after, before, suite, test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { parseCamera, type Camera } from '../../crds/camera.ts';
import { API_VERSION } from '../../crds/names.ts';
import { keyOf, type KubeApi, type KubeObject } from '../../operator/kube/api.ts';
import { RestKubeApi } from '../../operator/kube/client.ts';
import { EventRecorder } from '../../operator/kube/events.ts';
import { Informer, type InformerObserver } from '../../operator/kube/informer.ts';
import { KubeConfigConnection, loadKubeConfig } from '../../operator/kube/kube-config.ts';
import { LeaderElector, type LeaderTiming } from '../../operator/kube/leader.ts';
import { applyOwned, deleteOwned, ForeignObjectError, type Owner } from '../../operator/kube/owned.ts';
import { CAMERA, EVENT, LEASE, RECORDER_NODE, RECORDER_POOL, SERVICE } from '../../operator/kube/resources.ts';
import { applyStatus } from '../../operator/kube/status.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { stopwatch } from '../support/stopwatch.ts';
import { PATIENCE_MS, until } from '../support/until.ts';
import { startControlPlane, type ControlPlane } from './control-plane.ts';
import { apiServerMissing } from './programs.ts';

const ROOT = join(import.meta.dirname, '../..');
const NAMESPACE = 'client';

let controlPlane: ControlPlane;
let api: RestKubeApi;

const ref = (name: string) => ({ namespace: NAMESPACE, name });

const camera = (name: string, spec: object = {}): KubeObject => ({
  metadata: ref(name),
  spec: { source: 'rtsp://10.0.0.9/1', ...spec },
});

/** Fails with a conflict (409) if the camera was changed since it was read. */
const replaceStatus = (read: KubeObject, status: object): Promise<KubeObject> =>
  api.replace(CAMERA, { ...read, status }, { subresource: 'status' });

/** A way to the API server of a test's own, and a client that takes it. Both end with the test. */
async function link(t: TestContext, watchSeconds?: { least: number; most: number }) {
  const proxy = await TcpProxy.to(controlPlane.port, controlPlane.address);
  const file = join(controlPlane.directory, `through-${proxy.port}.kubeconfig`);
  writeFileSync(file, readFileSync(controlPlane.kubeconfig, 'utf8').replace(`:${controlPlane.port}`, `:${proxy.port}`));
  const connection = new KubeConfigConnection(loadKubeConfig(file), systemClock);
  const client = new RestKubeApi(connection, {
    callTimeoutMs: 5_000,
    ...(watchSeconds && { watchSeconds, watchSilenceMs: (watchSeconds.most + 1) * 1_000 }),
  });
  t.after(async () => {
    await client.close();
    await proxy.close();
  });
  return { proxy, client };
}

class Watched {
  readonly informer: Informer<Camera>;
  readonly changes: string[] = [];
  failures = 0;
  misses = 0;
  lists = 0;

  constructor(t: TestContext, through: KubeApi) {
    const observer: InformerObserver = {
      event: () => {},
      failed: () => this.failures++,
      relisted: () => this.lists++,
      missed: (count) => (this.misses += count),
      counted: () => {},
    };
    this.informer = new Informer({
      api: through,
      resource: CAMERA,
      selection: { namespace: NAMESPACE },
      parse: parseCamera,
      clock: systemClock,
      log: silentLog,
      observer,
    });
    this.informer.onChange(({ kind, key }) => this.changes.push(`${kind} ${key}`));
    t.after(() => this.informer.close());
  }

  async start(): Promise<this> {
    this.informer.start();
    await this.informer.whenSynced(AbortSignal.timeout(PATIENCE_MS));
    return this;
  }

  has(name: string): Promise<Camera> {
    return until(`${name} is seen`, () => this.informer.get(`${NAMESPACE}/${name}`));
  }
}

suite('operator/kube with a real API server', { skip: apiServerMissing() }, () => {
  before(async () => {
    controlPlane = await startControlPlane({ parts: ['etcd', 'kube-apiserver'] });
    api = new RestKubeApi(new KubeConfigConnection(loadKubeConfig(controlPlane.kubeconfig), systemClock));
    await controlPlane.kubectl(['create', 'namespace', NAMESPACE]);
    await controlPlane.kubectl(['apply', '--server-side', '-f', join(ROOT, 'crds/yaml')]);
    for (const resource of [CAMERA, RECORDER_POOL, RECORDER_NODE]) {
      await until(`${resource.kind} is served`, () => api.list(resource, {}).then(() => true));
    }
  });

  after(async () => {
    await api?.close();
    await controlPlane?.close();
  });

  test('calls share connections: a hundred, one after another, need two or three', async (t) => {
    const { proxy, client } = await link(t);
    for (let i = 0; i < 100; i++) await client.list(CAMERA, { namespace: NAMESPACE });
    // A call may come a moment before the connection of the last one is free.
    assert.ok(proxy.accepted <= 3, `${proxy.accepted} connections`);
    await Promise.all(Array.from({ length: 5 }, () => client.list(CAMERA, { namespace: NAMESPACE })));
    assert.ok(proxy.accepted <= 8, `${proxy.accepted} connections`);
  });

  test('refusals are told apart: not there, there already, changed meanwhile, invalid', async () => {
    await assert.rejects(api.get(CAMERA, ref('none')), { status: 404, reason: 'NotFound' });
    const first = await api.create(CAMERA, camera('told'));
    await assert.rejects(api.create(CAMERA, camera('told')), { status: 409, reason: 'AlreadyExists' });
    await api.mergePatch(CAMERA, ref('told'), { spec: { ptz: true } });
    await assert.rejects(api.replace(CAMERA, first), { status: 409, reason: 'Conflict' });
    await assert.rejects(api.create(CAMERA, camera('bad', { source: 'x' })), { status: 422, reason: 'Invalid' });
    await assert.rejects(
      api.watch(CAMERA, { resourceVersion: '1' }, new AbortController().signal)[Symbol.asyncIterator]().next(),
      { status: 410 },
    );
  });

  test('a dry run refuses and writes nothing', async () => {
    await api.create(CAMERA, camera('dry'), { dryRun: true });
    await assert.rejects(api.get(CAMERA, ref('dry')), { status: 404 });
  });

  test('a call to a server that has stopped answering takes its deadline, and no longer', async (t) => {
    const { proxy, client } = await link(t);
    await client.list(CAMERA, {});
    proxy.silence();
    const elapsedMs = stopwatch();
    await assert.rejects(client.get(CAMERA, ref('x'), { timeoutMs: 300 }), { status: 0, reason: 'UNREACHABLE' });
    assert.ok(elapsedMs() < 2_500);
    proxy.heal();
    await assert.rejects(client.get(CAMERA, ref('x')), { status: 404 }, 'a new connection is made');
  });

  test('a list in pages shows one moment', async (t) => {
    const connection = new KubeConfigConnection(loadKubeConfig(controlPlane.kubeconfig), systemClock);
    const client = new RestKubeApi(connection, { pageSize: 2 });
    t.after(() => client.close());
    for (let i = 0; i < 5; i++) await api.create(CAMERA, camera(`page-${i}`));
    const names: string[] = [];
    const sizes: number[] = [];
    for await (const { items } of client.pages(CAMERA, { namespace: NAMESPACE })) {
      // Made after the list began, and last in its order: no page shows it.
      if (sizes.length === 0) await api.create(CAMERA, camera('zz-later'));
      names.push(...items.map(({ metadata }) => metadata.name));
      sizes.push(items.length);
    }
    assert.ok(sizes.length >= 3 && sizes.every((size) => size <= 2), String(sizes));
    assert.deepEqual(new Set(names).size, names.length);
    assert.equal(names.filter((name) => name.startsWith('page-')).length, 5);
    assert.ok(!names.includes('zz-later'));
    const watched = await new Watched(t, client).start();
    assert.ok(watched.informer.get(`${NAMESPACE}/zz-later`));
  });

  test('listed and watched objects are the same', async (t) => {
    await api.create(CAMERA, camera('same', { record: { retention: { maxSize: '1Gi', maxAgeSeconds: 3600 } } }));
    const watched = await new Watched(t, api).start();
    const read = await api.get(CAMERA, ref('same'));
    await replaceStatus(read, {
      assignment: { node: 'a', epoch: 1, reason: 'Scheduled', time: '2026-01-01T00:00:00Z' },
    });
    await until('the change is seen', () => watched.informer.get(`${NAMESPACE}/same`)?.status?.assignment);
    const later = await new Watched(t, api).start();
    assert.deepEqual(later.informer.get(`${NAMESPACE}/same`), watched.informer.get(`${NAMESPACE}/same`));
  });

  test('a link that is reset again and again loses no change', async (t) => {
    const { proxy, client } = await link(t);
    const watched = await new Watched(t, client).start();
    for (let i = 0; i < 5; i++) {
      proxy.reset();
      await api.create(CAMERA, camera(`reset-${i}`));
      await watched.has(`reset-${i}`);
    }
    // A reset between two requests is no failure.
    assert.ok(watched.failures >= 1);
    assert.equal(watched.misses, 0);
    assert.equal(new Set(watched.changes).size, watched.changes.length, 'each change is told once');
  });

  test('a half-open link is noticed when the watch should have ended', async (t) => {
    const { proxy, client } = await link(t, { least: 1, most: 1 });
    const watched = await new Watched(t, client).start();
    await api.create(CAMERA, camera('before-silence'));
    await watched.has('before-silence');
    proxy.silence();
    await api.create(CAMERA, camera('in-silence'));
    proxy.heal();
    await watched.has('in-silence');
    // On a busy machine other watches may be late, too.
    assert.ok(watched.failures >= 1);
  });

  test('watches that end and begin again leave no connections behind', async (t) => {
    const { proxy, client } = await link(t, { least: 1, most: 1 });
    const watched = await new Watched(t, client).start();
    await api.create(CAMERA, camera('renewed-0'));
    await until('several watches have ended', () => proxy.accepted >= 1 && watched.failures + watched.lists >= 3);
    await until('those that have ended are gone', () => proxy.open <= 2);
  });

  test('an API server that restarts is found again, and what changed meanwhile', async (t) => {
    const watched = await new Watched(t, api).start();
    await controlPlane.kill('kube-apiserver');
    await until('the watch has failed', () => watched.failures > 0);
    await controlPlane.start('kube-apiserver');
    await until('cameras can be made', () => api.create(CAMERA, camera('after-restart')).then(() => true));
    await watched.has('after-restart');
    assert.equal(watched.informer.get(`${NAMESPACE}/before-silence`)?.metadata.name, 'before-silence');
  });

  const timing: LeaderTiming = { leaseDurationMs: 2_000, renewDeadlineMs: 1_400, retryMs: 300 };

  test('replicas elect one; the one that stops hands over at once, the one that is cut off after its Lease ran out', async (t) => {
    const replicas = await Promise.all(
      ['a', 'b'].map(async (identity) => {
        const { proxy, client } = await link(t);
        const options = { api: client, namespace: NAMESPACE, identity, timing, clock: systemClock, log: silentLog };
        const stop = new AbortController();
        t.after(() => stop.abort());
        return { proxy, elector: new LeaderElector(options), stop, run: Promise.resolve() };
      }),
    );
    const overlaps: string[] = [];
    const leading = new Set<string>();
    for (const replica of replicas) {
      replica.run = replica.elector.run(async (signal) => {
        const name = replica.elector.holder!;
        if (leading.size > 0) overlaps.push(name);
        leading.add(name);
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
        leading.delete(name);
      }, replica.stop.signal);
    }
    const leaderOf = () => replicas.find(({ elector }) => elector.isLeader);
    const first = await until('one leads', leaderOf);
    first.proxy.silence();
    const second = await until('the other leads', () => {
      const leader = leaderOf();
      return leader !== first && leader;
    });
    first.proxy.heal();
    second.stop.abort();
    await second.run;
    const lease = await api.get(LEASE, ref('kube-nvr-operator'));
    const { leaseTransitions } = lease['spec'] as { leaseTransitions: number };
    assert.ok(leaseTransitions >= 2);
    await until('the first leads again', () => first.elector.isLeader);
    assert.deepEqual(overlaps, []);
    first.stop.abort();
    await first.run;
    const { spec } = (await api.get(LEASE, ref('kube-nvr-operator'))) as KubeObject & {
      spec: { holderIdentity?: string };
    };
    assert.equal(spec.holderIdentity, undefined);
  });

  test('kubectl describe shows events; repeated ones are counted', async () => {
    const regarding = {
      apiVersion: API_VERSION,
      kind: 'Camera',
      metadata: (await api.create(CAMERA, camera('noted'))).metadata,
    };
    const events = new EventRecorder({ api, clock: systemClock, log: silentLog, instance: 'operator-0' });
    const moved = { type: 'Warning', reason: 'NodeUnavailable', action: 'Assign', note: 'moved from a to b' } as const;
    for (let i = 0; i < 7; i++) events.record(regarding, moved);
    events.record(regarding, { ...moved, note: 'x'.repeat(3_000) });
    await events.close();
    const { items } = await api.list(EVENT, { namespace: NAMESPACE });
    const counts = items.map((event) => (event['series'] as { count: number } | undefined)?.count ?? 1);
    assert.deepEqual(
      counts.toSorted((a, b) => a - b),
      [1, 7],
    );
    const described = await controlPlane.kubectl(['describe', 'camera', 'noted', '-n', NAMESPACE]);
    assert.match(described, /Warning\s+NodeUnavailable .*moved from a to b/);
  });

  test('an object of ours is applied; that of another, or of a pool of the same name before, is left alone', async () => {
    const pool = await api.create(RECORDER_POOL, {
      metadata: ref('default'),
      spec: { archive: { hostPath: '/mnt/archive' } },
    });
    const owner: Owner = { apiVersion: API_VERSION, kind: 'RecorderPool', name: 'default', uid: pool.metadata.uid! };
    const service = (port: number): KubeObject => ({
      metadata: ref('default-recorder'),
      spec: { selector: { a: 'b' }, ports: [{ name: 'api', port }] },
    });
    await applyOwned(api, SERVICE, service(9997), owner);
    const changed = await applyOwned(api, SERVICE, service(9000), owner);
    const { ports } = changed['spec'] as { ports: { port: number }[] };
    assert.deepEqual(
      ports.map(({ port }) => port),
      [9000],
    );
    const before = changed.metadata.resourceVersion;
    assert.equal(
      (await applyOwned(api, SERVICE, service(9000), owner)).metadata.resourceVersion,
      before,
      'no news, no write',
    );
    const successor = { ...owner, uid: '00000000-0000-0000-0000-000000000000' };
    await assert.rejects(applyOwned(api, SERVICE, service(9997), successor), ForeignObjectError);

    await api.create(SERVICE, { ...service(1), metadata: ref('theirs') });
    await assert.rejects(
      applyOwned(api, SERVICE, { ...service(2), metadata: ref('theirs') }, owner),
      ForeignObjectError,
    );
    await deleteOwned(api, SERVICE, ref('theirs'), owner);
    assert.ok(await api.get(SERVICE, ref('theirs')));
    await deleteOwned(api, SERVICE, ref('default-recorder'), owner);
    await assert.rejects(api.get(SERVICE, ref('default-recorder')), { status: 404 });
  });

  test('an object that was made again by somebody else between look and write is not taken over', async () => {
    const pool = await api.get(RECORDER_POOL, ref('default'));
    const owner: Owner = { apiVersion: API_VERSION, kind: 'RecorderPool', name: 'default', uid: pool.metadata.uid! };
    const service: KubeObject = { metadata: ref('swapped'), spec: { selector: { a: 'b' }, ports: [{ port: 80 }] } };
    await applyOwned(api, SERVICE, service, owner);
    const swapping: KubeApi = Object.create(api, {
      get: {
        value: async (...args: Parameters<KubeApi['get']>) => {
          const object = await api.get(...args);
          await api.delete(SERVICE, ref('swapped'));
          await api.create(SERVICE, service);
          return object;
        },
      },
      apply: { value: (...args: Parameters<KubeApi['apply']>) => api.apply(...args) },
    }) as KubeApi;
    await assert.rejects(applyOwned(swapping, SERVICE, service, owner), /metadata.uid/);
  });

  test('conditions and assignment have two writers and disturb each other not', async () => {
    const created = await api.create(CAMERA, camera('two-writers'));
    const time = '2026-01-01T00:00:00Z';
    const ready = { type: 'Ready', status: 'True', reason: 'Recording', message: '', lastTransitionTime: time };
    await applyStatus(api, CAMERA, created.metadata, { observedGeneration: 1, conditions: [ready] });
    const read = await api.get(CAMERA, ref('two-writers'));
    const assignment = { node: 'a', epoch: 1, reason: 'Scheduled', time };
    await replaceStatus(read, { ...(read['status'] as object), assignment });
    const failed = { ...ready, status: 'False' };
    const after = await applyStatus(api, CAMERA, created.metadata, { observedGeneration: 1, conditions: [failed] });
    assert.deepEqual(after['status'], { observedGeneration: 1, conditions: [failed], assignment });
    await assert.rejects(replaceStatus(read, { assignment: { ...assignment, epoch: 2 } }), {
      status: 409,
    });
    const emptied = await applyStatus(api, CAMERA, created.metadata, { observedGeneration: 1 });
    assert.deepEqual(
      emptied['status'],
      { observedGeneration: 1, assignment },
      'what is not applied any more goes away',
    );
  });

  test('a deletion asked for by uid leaves a later object of the name alone', async () => {
    const { metadata } = await api.create(CAMERA, camera('deleted'));
    await api.delete(CAMERA, ref('deleted'), { uid: metadata.uid });
    await api.create(CAMERA, camera('deleted'));
    await assert.rejects(api.delete(CAMERA, ref('deleted'), { uid: metadata.uid }), { status: 409 });
    assert.equal(keyOf((await api.get(CAMERA, ref('deleted'))).metadata), `${NAMESPACE}/deleted`);
  });
});
