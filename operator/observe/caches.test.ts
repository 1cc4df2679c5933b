import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { API_VERSION, POOL_LABEL } from '../../crds/names.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import type { KubeObject } from '../kube/api.ts';
import { CAMERA, NODE, POD, RECORDER_NODE, RECORDER_POOL } from '../kube/resources.ts';
import { MemoryApi, settle } from '../kube/test-support.ts';
import { Caches, unplacedBecause, waitsFor, type RecorderPod } from './caches.ts';
import { PATIENCE_MS } from '../../test/support/until.ts';

const TENANTS = ['east', 'west'] as const;

const object = (kind: string, namespace: string, name: string, spec: object): KubeObject => ({
  apiVersion: API_VERSION,
  kind,
  metadata: { namespace, name },
  spec,
});
const nodeOf = (namespace: string, name: string, spec: object = {}): KubeObject =>
  object('RecorderNode', namespace, name, { nodeName: name, poolRef: { name: 'default' }, role: 'Voter', ...spec });

/** Two tenants with pools, cameras, nodes and pods named `default` and `<namespace>-...`. */
async function stage(t: TestContext) {
  const api = new MemoryApi();
  for (const namespace of TENANTS) {
    await api.create(RECORDER_POOL, object('RecorderPool', namespace, 'default', { archive: { hostPath: '/a' } }));
    await api.create(CAMERA, object('Camera', namespace, `${namespace}-gate`, { source: 'rtsp://10.0.0.9/1' }));
    await api.create(RECORDER_NODE, nodeOf(namespace, `${namespace}-node`));
    await api.create(NODE, { metadata: { name: `${namespace}-node` } });
    const metadata = { namespace, name: `${namespace}-pod`, labels: { [POOL_LABEL]: 'default' } };
    await api.create(POD, { metadata });
  }
  const caches = new Caches({ api, namespace: undefined, clock: new VirtualClock(), log: silentLog });
  caches.start();
  t.after(() => caches.close());
  await caches.whenSynced(AbortSignal.timeout(PATIENCE_MS));
  // The informers of single namespaces start with the pools.
  await settle();
  const pool = (namespace: string): RecorderPool =>
    caches.pools.list().find(({ metadata }) => metadata.namespace === namespace) ?? assert.fail('no pool');
  return { api, caches, pool };
}

test('pools of one name in two namespaces have nothing in common', async (t) => {
  const { caches, pool } = await stage(t);
  const names = (list: readonly { readonly metadata: { readonly name: string } }[]): string[] =>
    list.map(({ metadata }) => metadata.name);
  for (const tenant of TENANTS) {
    const own = pool(tenant);
    assert.deepEqual(names(caches.camerasOf(own)), [`${tenant}-gate`]);
    assert.deepEqual(names(caches.nodesOf(own)), [`${tenant}-node`]);
    assert.deepEqual(names(caches.podsOf(own)), [`${tenant}-pod`]);
    assert.deepEqual([...caches.reportsOf(own).keys()], [`${tenant}-node`]);
    const seen = caches.poolObjects(`${tenant}/default`);
    assert.deepEqual(
      [seen?.nodes, seen?.cameras].map((list) => list?.map(({ name }) => name)),
      [[`${tenant}-node`], [`${tenant}-gate`]],
    );
  }
});

test('a node that was removed from the cluster is drained', async (t) => {
  const { api, caches } = await stage(t);
  const drained = (): (boolean | undefined)[] | undefined =>
    caches.poolObjects('east/default')?.nodes.map(({ drain }) => drain);
  assert.deepEqual(drained(), [false]);
  const name = { namespace: 'east', name: 'east-node' };
  await api.mergePatch(RECORDER_NODE, name, { spec: { role: 'Removed' } });
  await settle();
  assert.deepEqual(drained(), [true]);
  await api.mergePatch(RECORDER_NODE, name, { spec: { role: 'Voter', drain: true } });
  await settle();
  assert.deepEqual(drained(), [true]);
});

test('a node that the pool selects no more, or that is deleted, is drained', async (t) => {
  const { api, caches } = await stage(t);
  const causes = (): (string | undefined)[] | undefined =>
    caches.poolObjects('east/default')?.nodes.map(({ drainCause }) => drainCause);
  const pool = { namespace: 'east', name: 'default' };
  await api.mergePatch(RECORDER_POOL, pool, { spec: { nodeSelector: { recorder: 'true' } } });
  await settle();
  assert.match(causes()?.[0] ?? '', /does not select/);
  await api.mergePatch(NODE, { name: 'east-node' }, { metadata: { labels: { recorder: 'true' } } });
  await settle();
  assert.deepEqual(causes(), [undefined]);
  await api.delete(NODE, { name: 'east-node' });
  await settle();
  assert.match(causes()?.[0] ?? '', /no such Kubernetes node/);
});

test('a node that Kubernetes empties is drained, unless its pool ignores that', async (t) => {
  const { api, caches } = await stage(t);
  const drained = (): unknown =>
    caches.poolObjects('east/default')?.nodes.map(({ drain, drainCause }) => [drain, drainCause]);
  await api.mergePatch(NODE, { name: 'east-node' }, { spec: { unschedulable: true } });
  await settle();
  assert.deepEqual(drained(), [[true, 'the Kubernetes node is cordoned']]);
  await api.mergePatch(RECORDER_POOL, { namespace: 'east', name: 'default' }, { spec: { cordon: { mode: 'Ignore' } } });
  await settle();
  assert.deepEqual(drained(), [[false, undefined]]);
});

test('what nodes report is what they said last, and a node that came later is among them', async (t) => {
  const { api, caches, pool } = await stage(t);
  const told = (): [string, boolean][] =>
    Array.from(caches.reportsOf(pool('east')), ([name, { isTold }]): [string, boolean] => [name, isTold]);
  assert.deepEqual(told(), [['east-node', false]]);
  await api.mergePatch(RECORDER_NODE, { namespace: 'east', name: 'east-node' }, { status: { archiveID: 'aa' } });
  await settle();
  assert.deepEqual(told(), [['east-node', true]]);
  await api.create(RECORDER_NODE, nodeOf('east', 'east-other'));
  await settle();
  assert.deepEqual(told(), [
    ['east-node', true],
    ['east-other', false],
  ]);
});

test('a recorder is on its machine when that is Ready and a container was started there, now or before', async (t) => {
  const { api, caches } = await stage(t);
  const has = (): boolean | undefined => caches.poolObjects('east/default')?.nodes[0]?.hasRecorder;
  const pod = { namespace: 'east', name: 'east-pod' };
  const node = { name: 'east-node' };
  const machine = (status: string): object => ({ status: { conditions: [{ type: 'Ready', status }] } });
  const container = (state: object): object => ({ status: { containerStatuses: [state] } });
  await api.mergePatch(NODE, node, machine('True'));
  const seen: (boolean | undefined)[] = [];
  for (const change of [
    { spec: { nodeName: 'east-node' }, ...container({ state: { waiting: { reason: 'ImagePullBackOff' } } }) },
    container({ state: { running: {} } }),
    container({ state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated: { exitCode: 137 } } }),
  ]) {
    await api.mergePatch(POD, pod, change);
    await settle();
    seen.push(has());
  }
  assert.deepEqual(seen, [false, true, true]);
  await api.mergePatch(NODE, node, machine('Unknown'));
  await settle();
  assert.equal(has(), false);
});

test('pods, Leases and what runs recorders are watched where there is a pool or a camera, and no longer when the last is gone', async (t) => {
  const { api, caches } = await stage(t);
  const isKnown = (): boolean[] => ['east', 'west', 'north'].map((namespace) => caches.isSyncedIn(namespace));
  const watched = api.watches;
  assert.deepEqual(isKnown(), [true, true, false]);
  await api.create(CAMERA, object('Camera', 'north', 'north-gate', { source: 'rtsp://10.0.0.9/1' }));
  await settle();
  assert.deepEqual([isKnown(), api.watches], [[true, true, true], watched + 10]);
  await api.delete(RECORDER_POOL, { namespace: 'east', name: 'default' });
  await settle();
  assert.deepEqual(isKnown(), [true, true, true], 'there is a camera');
  await api.delete(CAMERA, { namespace: 'east', name: 'east-gate' });
  await settle();
  assert.deepEqual([isKnown(), api.watches], [[false, true, true], watched]);
});

test('a pod that is not scheduled waits for what the scheduler says, one on its node for what the kubelet says', () => {
  const pod = (status: RecorderPod['status']): RecorderPod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'a' },
    ...(status && { status }),
  });
  const waiting = [{ state: { waiting: { reason: 'ImagePullBackOff' } } }];
  const scheduled = (status: string, message: string) => [{ type: 'PodScheduled', status, message }];
  const full = pod({ conditions: scheduled('False', '1 Insufficient memory') });
  assert.deepEqual([unplacedBecause(full), waitsFor(full)], ['1 Insufficient memory', undefined]);
  assert.equal(unplacedBecause(pod({ conditions: scheduled('True', '') })), undefined);
  assert.equal(waitsFor(pod({ conditions: scheduled('True', ''), containerStatuses: waiting })), 'ImagePullBackOff');
});
