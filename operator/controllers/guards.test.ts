// Guards over an API server in memory and time that is moved by hand; `test/cluster/drain.test.ts` has kubectl.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { API_VERSION, guardName } from '../../crds/names.ts';
import { parseRecorderPool } from '../../crds/recorder-pool.ts';
import { nodeOf, recordedBy, snapshotOf } from '../../test/support/snapshots.ts';
import type { KubeObject } from '../kube/api.ts';
import { NODE, POD, RECORDER_NODE, RECORDER_POOL } from '../kube/resources.ts';
import { MemoryApi, settle } from '../kube/test-support.ts';
import { Caches } from '../observe/caches.ts';
import type { Snapshot } from '../plan/snapshot.ts';
import { Guards } from './guards.ts';
import { PATIENCE_MS } from '../../test/support/until.ts';

const NAMESPACE = 'video';
const KEY = `${NAMESPACE}/default`;
const DEADLINE_MS = 600_000;
const READY = { status: { conditions: [{ type: 'Ready', status: 'True' }] } };

const object = (kind: string, name: string, spec: object): KubeObject => ({
  apiVersion: API_VERSION,
  kind,
  metadata: { namespace: NAMESPACE, name, uid: name },
  spec,
});

async function stage(t: TestContext) {
  const api = new MemoryApi();
  const pool = object('RecorderPool', 'default', { archive: { hostPath: '/a' } });
  await api.create(RECORDER_POOL, pool);
  for (const name of ['a', 'b']) {
    await api.create(NODE, { metadata: { name }, ...READY });
    await api.create(RECORDER_NODE, object('RecorderNode', name, { nodeName: name, poolRef: { name: 'default' } }));
  }
  const clock = new VirtualClock();
  const caches = new Caches({ api, namespace: NAMESPACE, clock, log: silentLog });
  caches.start();
  t.after(() => caches.close());
  await caches.whenSynced(AbortSignal.timeout(PATIENCE_MS));
  const told: string[] = [];
  const events = {
    record: (_: unknown, { reason, note }: { reason: string; note: string }) => told.push(`${reason}: ${note}`),
  };
  const guards = new Guards({ api, caches, events, image: 'recorder', priorityClass: '', clock });
  return {
    api,
    clock,
    told,
    /** Reconciles, and returns the guards that are there then. */
    keep: async (snapshot: Snapshot | undefined, spec: object = {}) => {
      const wanted = parseRecorderPool({ ...pool, spec: { ...(pool['spec'] as object), ...spec } });
      const guarding = guards.decide(KEY, wanted, snapshot);
      await guards.keep(wanted, guarding);
      await settle();
      const names = (await api.list(POD, { namespace: NAMESPACE })).items.map(({ metadata }) => metadata.name);
      return { names, budget: guarding.budget, recheckMs: guarding.recheckMs };
    },
  };
}

const world = (drain: boolean, ...cameras: string[]): Snapshot =>
  snapshotOf(
    [nodeOf('a', { drain }), nodeOf('b')],
    cameras.map((name) => recordedBy(name, 'a')),
  );

test('a node has a guard from its first camera to its last', async (t) => {
  const { keep } = await stage(t);
  assert.deepEqual((await keep(world(false))).names, []);
  assert.deepEqual(await keep(world(false, 'gate')), { names: [guardName('a')], budget: 1, recheckMs: undefined });
  const leaving = await keep(world(true, 'gate'));
  assert.deepEqual(leaving, { names: [guardName('a')], budget: 1, recheckMs: DEADLINE_MS });
  const empty = await keep(world(true));
  assert.deepEqual(empty, { names: [], budget: 1, recheckMs: undefined }, 'the budget falls when the guard is gone');
  assert.equal((await keep(world(true))).budget, 0);
});

test('without a plan nothing changes, and the guards that are there stay', async (t) => {
  const { keep } = await stage(t);
  await keep(world(false, 'gate'));
  assert.deepEqual(await keep(undefined), { names: [guardName('a')], budget: 1, recheckMs: undefined });
});

test('a drain that makes no progress is given up, reported once, and not waited for again until it ends', async (t) => {
  const { clock, told, keep } = await stage(t);
  await keep(world(false, 'gate', 'yard'));
  await keep(world(true, 'gate', 'yard'));
  clock.advance(DEADLINE_MS - 1);
  assert.equal((await keep(world(true, 'gate'))).names.length, 1, 'a camera left it: the time begins again');
  clock.advance(DEADLINE_MS - 1);
  assert.deepEqual([(await keep(world(true, 'gate'))).names.length, told], [1, []]);
  clock.advance(1);
  assert.deepEqual((await keep(world(true, 'gate'))).names, []);
  await keep(world(true, 'gate'));
  assert.deepEqual(told, ['NotMoving: no camera could leave a for 600 s: kubectl drain does not wait any longer']);
  assert.deepEqual((await keep(world(false, 'gate'))).names, [guardName('a')], 'the drain was called off');
});

test('a pool that ignores cordons has no guards', async (t) => {
  const { keep } = await stage(t);
  await keep(world(false, 'gate'));
  assert.deepEqual((await keep(world(false, 'gate'), { cordon: { mode: 'Ignore' } })).names, []);
});

test('a guard that has ended is replaced; a machine that is not ready gets none', async (t) => {
  const { api, keep } = await stage(t);
  await api.mergePatch(NODE, { name: 'a' }, { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } });
  await settle();
  assert.deepEqual((await keep(world(false, 'gate'))).names, []);
  await api.mergePatch(NODE, { name: 'a' }, READY);
  await settle();
  await keep(world(false, 'gate'));
  await api.mergePatch(POD, { namespace: NAMESPACE, name: guardName('a') }, { status: { phase: 'Failed' } });
  await settle();
  assert.deepEqual((await keep(world(false, 'gate'))).names, []);
  assert.deepEqual((await keep(world(false, 'gate'))).names, [guardName('a')]);
});
