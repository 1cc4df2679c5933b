// Which tables an operator follows, and what the status of their pools says.

import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderPool, type RecorderPool } from '../../crds/recorder-pool.ts';
import type { CameraRow } from '../../recorder/database/camera-rows.ts';
import { until } from '../../test/support/until.ts';
import { CAMERA, RECORDER_NODE, RECORDER_POOL } from '../kube/resources.ts';
import { MemoryApi, settle } from '../kube/test-support.ts';
import { writesOfLeader } from '../kube/writes-of-leader.ts';
import { PoolRows } from './pool-rows.ts';

const NAMESPACE = 'video';
const DATABASE = { camerasFromDatabase: true, databaseSecretRef: { name: 'database' } };

const rowOf = (id: string, nodeName: string): CameraRow => ({
  id,
  nodeName,
  name: '',
  source: `rtsp://viewer:secret@10.0.0.9/${id}`,
  snapuri: null,
  ptz: false,
  record: {},
  enabled: true,
});

async function stage(t: TestContext, pools: Readonly<Record<string, object>>) {
  const api = new MemoryApi();
  const clock = new VirtualClock();
  const object = (kind: string, name: string, spec: object) => ({
    apiVersion: API_VERSION,
    kind,
    metadata: { namespace: NAMESPACE, name },
    spec,
  });
  for (const [name, spec] of Object.entries(pools)) {
    await api.create(RECORDER_POOL, object('RecorderPool', name, { archive: { hostPath: '/mnt/archive' }, ...spec }));
    await api.create(RECORDER_NODE, object('RecorderNode', `${name}-1`, { poolRef: { name } }));
  }
  const state = { isLeader: true, isAway: false, opened: [] as string[] };
  const table = { rows: [] as readonly CameraRow[], marks: [] as readonly string[] };
  const list = { pools: [] as readonly RecorderPool[] };
  const rows = new PoolRows({
    api: writesOfLeader(api, () => state.isLeader),
    caches: { pools: { list: () => list.pools } },
    isLeader: () => state.isLeader,
    source: {
      databaseOf: ({ spec }) => (spec.camerasFromDatabase ? spec.databaseSecretRef?.name : undefined),
      open(database) {
        state.opened.push(`${database.namespace}/${database.name}`);
        return Promise.resolve({
          allRows: () => (state.isAway ? Promise.reject(new Error('it is away')) : Promise.resolve({ ...table })),
          setMark(mark: string, before: readonly string[]) {
            table.marks = [...table.marks.filter((one) => !before.includes(one)), mark];
            return Promise.resolve();
          },
        });
      },
      defaults: () => ({ segmentDurationMs: 300_000, maxBitrate: 1e8 }),
    },
    clock,
    log: silentLog,
  });
  const refresh = async (): Promise<void> => {
    list.pools = (await api.list(RECORDER_POOL, { namespace: NAMESPACE })).items.map((item) => parseRecorderPool(item));
  };
  await refresh();
  rows.start();
  const pass = async (): Promise<void> => {
    await settle();
    clock.advance(1_000);
    await settle();
  };
  t.after(async () => {
    const closed = rows.close();
    await pass();
    await closed;
  });
  const cameras = async (): Promise<string> =>
    (await api.list(CAMERA, { namespace: NAMESPACE })).items
      .map(({ metadata, spec }) => `${metadata.name}@${(spec as { poolRef: { name: string } }).poolRef.name}`)
      .sort()
      .join(' ');
  return {
    api,
    create: (kind: 'Camera', name: string, spec: object) => api.create(CAMERA, object(kind, name, spec)),
    state,
    table,
    rows,
    refresh,
    cameras,
    shown: (pool: string) =>
      rows.conditionsOf(`${NAMESPACE}/${pool}`).map(({ status, reason }) => `${status} ${reason}`),
    until: (what: string, ask: () => Promise<boolean> | boolean) =>
      until(
        what,
        async () => {
          await pass();
          return ask();
        },
        120_000,
        1,
      ),
    pass,
  };
}

test('rows are Cameras of the pools that say so, of each that of its own nodes, and of no other', async (t) => {
  const world = await stage(t, { north: DATABASE, south: DATABASE, west: { databaseSecretRef: { name: 'database' } } });
  world.table.rows = [rowOf('gate', 'north-1'), rowOf('hall', 'south-1'), rowOf('yard', 'west-1')];
  await world.until('both pools have their cameras', async () => (await world.cameras()) === 'gate@north hall@south');
  assert.deepEqual(world.state.opened, ['video/database', 'video/database']);

  // Each pool has marked the table, and takes the mark of the other for no restore.
  world.table.rows = [rowOf('gate', 'north-1')];
  await world.until('the row that is gone has no camera', async () => (await world.cameras()) === 'gate@north');
  assert.deepEqual(world.rows.warnings(), []);
  assert.deepEqual(
    [world.shown('north'), world.shown('south'), world.shown('west')],
    [['True Followed'], ['True Followed'], []],
  );
});

test('an operator that does not lead writes nothing', async (t) => {
  const world = await stage(t, { north: DATABASE });
  world.state.isLeader = false;
  world.table.rows = [rowOf('gate', 'north-1')];
  for (let i = 0; i < 5; i++) await world.pass();
  assert.equal(await world.cameras(), '');
  world.state.isLeader = true;
  await world.until('it leads', async () => (await world.cameras()) === 'gate@north');
});

test('the pool says why its table is not followed, and its cameras stay', async (t) => {
  const world = await stage(t, { north: DATABASE });
  world.table.rows = [rowOf('gate', 'north-1')];
  await world.until('it is followed', () => world.shown('north')[0] === 'True Followed');
  world.state.isAway = true;
  await world.until('it is away', () => world.shown('north')[0] === 'False TableUnusable');
  assert.match(world.rows.conditionsOf('video/north')[0]?.message ?? '', /cameras stay as they are: it is away/);
  assert.equal(await world.cameras(), 'gate@north');
  world.state.isAway = false;
  await world.create('Camera', 'hall', { source: 'rtsp://10.0.0.8/1' });
  world.table.rows = [rowOf('gate', 'north-1'), rowOf('hall', 'north-1')];
  await world.until('a row is refused', () => world.shown('north')[0] === 'False RowsRefused');
});

test('a pool that no longer says so keeps its Cameras, and no row changes them', async (t) => {
  const world = await stage(t, { north: DATABASE });
  world.table.rows = [rowOf('gate', 'north-1')];
  await world.until('it is followed', async () => (await world.cameras()) === 'gate@north');
  await world.api.mergePatch(
    RECORDER_POOL,
    { namespace: NAMESPACE, name: 'north' },
    { spec: { camerasFromDatabase: false } },
  );
  await world.refresh();
  world.table.rows = [];
  for (let i = 0; i < 5; i++) await world.pass();
  assert.equal(await world.cameras(), 'gate@north');
  assert.deepEqual(world.shown('north'), []);
});
