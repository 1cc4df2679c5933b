// Rows of the table `cameras` as cameras of the cluster, on the store over etcd in memory.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import type { EtcdClient } from '../../base/etcd/client.ts';
import { hasStatus } from '../../base/kubernetes/api-error.ts';
import { mergePatch } from '../../base/kubernetes/client.ts';
import { silentLog } from '../../base/log.ts';
import { parseCamera, type Camera } from '../../crds/camera.ts';
import { API_VERSION } from '../../crds/names.ts';
import { StoreConnection } from '../../store/connection.ts';
import { FakeEtcd, TestSeal } from '../../store/test-support.ts';
import { ApiServer } from '../../recorder/cluster/api-server.ts';
import { settingsOf, type Login } from '../../recorder/cluster/camera-settings.ts';
import type { CameraRow } from '../../recorder/database/camera-rows.ts';
import { RestKubeApi } from '../kube/client.ts';
import { RowCameras } from './row-cameras.ts';

const BASE = `/apis/${API_VERSION}/namespaces/default`;
const DEFAULTS = { segmentDurationMs: 300_000, maxBitrate: 1e8 };

const rowOf = (id: string, changes: Partial<CameraRow> = {}): CameraRow => ({
  id,
  nodeName: 'rack-1',
  name: '',
  source: `rtsp://viewer:secret@10.0.0.9/${id}?pwd=secret`,
  snapuri: null,
  ptz: false,
  record: {},
  enabled: true,
  ...changes,
});

async function stage(...rows: readonly CameraRow[]) {
  const clock = new VirtualClock();
  const etcd = new FakeEtcd();
  const connection = new StoreConnection({ etcd: etcd as unknown as EtcdClient, seal: new TestSeal(), clock });
  const api = new ApiServer(connection);
  const table = {
    rows,
    marks: [] as readonly string[],
    isAway: false,
    fault: undefined as 'refused' | 'lost' | undefined,
  };
  const create = (plural: string, kind: string, name: string, spec: object): Promise<unknown> =>
    api.call('POST', `${BASE}/${plural}`, { apiVersion: API_VERSION, kind, metadata: { name }, spec });
  await create('recorderpools', 'RecorderPool', 'default', { archive: { hostPath: '/archive' } });
  for (const name of ['rack-1', 'rack-2']) {
    await create('recordernodes', 'RecorderNode', name, { nodeName: name, poolRef: { name: 'default' } });
  }
  const open = (pool = 'default') =>
    new RowCameras({
      api: new RestKubeApi(connection),
      namespace: 'default',
      pool,
      table: {
        allRows: () =>
          table.isAway
            ? Promise.reject(new Error('the database is away'))
            : Promise.resolve({ rows: table.rows, marks: table.marks }),
        setMark: async (mark, before) => {
          if (table.fault !== 'refused') table.marks = [...table.marks.filter((one) => !before.includes(one)), mark];
          if (table.fault) throw new Error('the connection ended');
        },
      },
      defaults: () => DEFAULTS,
      clock,
      log: silentLog,
    });
  const cameras = async (): Promise<readonly Camera[]> =>
    (await api.list(`${BASE}/cameras`)).items.map((item) => parseCamera(item));
  return {
    api,
    etcd,
    clock,
    table,
    open,
    create,
    cameras,
    /** Each camera with the node that should record it. */
    shown: async (): Promise<readonly string[]> =>
      (await cameras()).map(
        ({ metadata, spec }) => `${metadata.name}@${spec.placement.preferredNode}${spec.suspend ? ' stopped' : ''}`,
      ),
    /** The settings with which a node would record it. */
    settings: async (id: string) => {
      const { data } = (await api.get(`/api/v1/namespaces/default/secrets/row-${id}`)) as unknown as {
        data: Record<string, string>;
      };
      const row = JSON.parse(Buffer.from(data['settings']!, 'base64').toString()) as Login['row'];
      const camera = (await cameras()).find(({ metadata }) => metadata.name === id)!;
      return settingsOf(camera, { username: '', password: '', hosts: ['*'], row }).camera;
    },
  };
}

test('a row is a Camera of the node that it names, whose address and login are in its Secret alone', async () => {
  const { open, table, cameras, settings, etcd } = await stage(
    rowOf('gate', {
      name: 'Front gate',
      group: 'entrance',
      snapuri: 'http://other:login@10.0.0.9/still.jpg',
      record: { segmentDuration: '1m', retention: { maxAge: '7d', maxSize: '200GiB', minFree: '5%' } },
    }),
  );
  await open().once();
  const [{ metadata, spec }] = (await cameras()) as [Camera];
  assert.equal(metadata.labels?.['kube-nvr.dev/group'], 'entrance');
  const { displayName, source, suspend, placement, record } = spec;
  assert.deepEqual([displayName, source, suspend], ['Front gate', 'rtsp://10.0.0.9/', false]);
  assert.equal(placement.preferredNode, 'rack-1');
  const retention = { maxAgeSeconds: 7 * 86_400, maxSize: String(200 * 2 ** 30), minFree: '5%' };
  assert.deepEqual(record, { format: 'fmp4', segmentSeconds: 60, retention });
  const recorded = (await settings('gate'))!;
  assert.equal(recorded.source, table.rows[0]!.source);
  assert.equal(recorded.snapshot, 'http://other:login@10.0.0.9/still.jpg');
  assert.equal(recorded.record.segmentDurationMs, 60_000);
  for (const key of etcd.keys) assert.ok(!etcd.value(key).includes('secret@'), key);
});

test('a row that changes, is stopped, names another node or goes changes its Camera, and no other', async () => {
  const { open, table, shown, settings, api } = await stage(rowOf('gate'), rowOf('yard', { nodeName: 'rack-2' }));
  const rows = open();
  await rows.once();
  assert.deepEqual(await shown(), ['gate@rack-1', 'yard@rack-2']);
  const versionOf = async (id: string): Promise<unknown> =>
    (await api.get(`${BASE}/cameras/${id}`)).metadata.resourceVersion;
  const before = await versionOf('yard');
  table.rows = [rowOf('gate', { nodeName: 'rack-2', source: 'rtsp://10.0.0.8/new' }), table.rows[1]!];
  await rows.once();
  assert.deepEqual(await shown(), ['gate@rack-2', 'yard@rack-2']);
  assert.equal((await settings('gate'))?.source, 'rtsp://10.0.0.8/new');
  table.rows = [rowOf('gate', { nodeName: 'rack-2', enabled: false }), table.rows[1]!];
  await rows.once();
  assert.deepEqual(await shown(), ['gate@rack-2 stopped', 'yard@rack-2']);
  assert.equal(await versionOf('yard'), before);
  table.rows = [table.rows[1]!];
  await rows.once();
  assert.deepEqual(await shown(), ['yard@rack-2']);
  await assert.rejects(api.get('/api/v1/namespaces/default/secrets/row-gate'), (err) => hasStatus(err, 404));
});

test("a row that names no node of the cluster is nobody's", async () => {
  const { open, table, shown } = await stage(rowOf('gate', { nodeName: 'Rack-1' }));
  const rows = open();
  await rows.once();
  assert.deepEqual([await shown(), rows.refused], [[], []]);
  table.rows = [rowOf('gate')];
  await rows.once();
  assert.deepEqual(await shown(), ['gate@rack-1']);
});

test('a database that is away changes nothing, also for the next leader', async () => {
  const { open, table, shown } = await stage(rowOf('gate'));
  await open().once();
  table.isAway = true;
  await assert.rejects(open().once(), /away/);
  assert.deepEqual(await shown(), ['gate@rack-1']);
});

test('a table that is restored from an older state, or empty, moves and stops nothing, and a later change of a row counts', async () => {
  const { open, table, shown } = await stage(rowOf('gate'), rowOf('hall'), rowOf('yard'));
  await open().once();
  const backup = { rows: table.rows, marks: table.marks };
  table.rows = [rowOf('gate', { nodeName: 'rack-2' }), rowOf('hall'), rowOf('yard'), rowOf('shed')];
  const rows = open();
  await rows.once();
  const now = await shown();
  assert.deepEqual(now, ['gate@rack-2', 'hall@rack-1', 'shed@rack-1', 'yard@rack-1']);

  Object.assign(table, backup);
  const next = open();
  await next.once();
  assert.deepEqual(await shown(), now);
  assert.match(next.warnings()[0]!.message, /gate, shed are recorded as before/);
  // Also for the leader after this one, which finds nothing new.
  const later = open();
  await later.once();
  assert.deepEqual(await shown(), now);
  assert.match(later.warnings()[0]!.message, /gate, shed/);

  table.rows = [rowOf('gate', { name: 'as it should be' }), rowOf('yard')];
  await later.once();
  assert.deepEqual(await shown(), ['gate@rack-1', 'shed@rack-1', 'yard@rack-1']);
  assert.match(later.warnings()[0]!.message, /shed is recorded/);

  Object.assign(table, { rows: [], marks: [] });
  await later.once();
  assert.deepEqual(await shown(), ['gate@rack-1', 'shed@rack-1', 'yard@rack-1']);
});

test('a mark that the database does not get, or whose answer is lost, is no restore', async () => {
  const { open, table, shown } = await stage(rowOf('gate'));
  await open().once();
  for (const [fault, node] of [
    ['refused', 'rack-2'],
    ['lost', 'rack-1'],
  ] as const) {
    table.fault = fault;
    table.rows = [rowOf('gate', { nodeName: node })];
    await assert.rejects(open().once(), /the connection ended/);
    table.fault = undefined;
    // A change that nobody has seen yet.
    table.rows = [rowOf('gate', { nodeName: node, enabled: false })];
    const rows = open();
    await rows.once();
    assert.deepEqual([await shown(), rows.warnings()], [[`gate@${node} stopped`], []]);
  }
});

test('a row with a mistake is recorded as before, and stopped when it says so; other rows are not touched', async () => {
  const { open, table, shown, settings } = await stage(rowOf('gate'), rowOf('yard'));
  const rows = open();
  await rows.once();
  const { source } = (await settings('gate'))!;
  table.rows = [rowOf('gate', { source: 'nonsense' }), rowOf('yard', { nodeName: 'rack-2' })];
  await rows.once();
  assert.deepEqual(await shown(), ['gate@rack-1', 'yard@rack-2']);
  assert.equal((await settings('gate'))?.source, source);
  table.rows = [rowOf('gate', { source: 'nonsense', enabled: false }), table.rows[1]!];
  await rows.once();
  assert.deepEqual(await shown(), ['gate@rack-1 stopped', 'yard@rack-2']);
});

test('a Camera of a manifest wins over a row, and an id that no Camera can have is refused by name', async () => {
  const { open, create, cameras } = await stage(rowOf('gate'), rowOf('Hall'), rowOf('yard'));
  await create('cameras', 'Camera', 'gate', { source: 'rtsp://10.0.0.1/mine' });
  const rows = open();
  await rows.once();
  const refused = rows.refused.map(({ id, reason }) => `${id} ${reason.code}`).sort();
  assert.deepEqual(refused, ['Hall invalid-camera', 'gate id-taken']);
  assert.match(rows.refused.find(({ id }) => id === 'Hall')!.reason.message, /lower-case/);
  const found = (await cameras()).map(({ metadata, spec }) => [metadata.name, spec.source]);
  assert.deepEqual(found, [
    ['gate', 'rtsp://10.0.0.1/mine'],
    ['yard', 'rtsp://10.0.0.9/'],
  ]);
});

test('what somebody changes in the Camera of a row is put right, and what only the cluster knows stays', async () => {
  const { open, clock, api, shown, cameras } = await stage(rowOf('gate'));
  const rows = open();
  await rows.once();
  await mergePatch(api, `${BASE}/cameras/gate`, { spec: { suspend: true, placement: { priority: 5 } } });
  clock.advance(60_000);
  await rows.once();
  assert.deepEqual(await shown(), ['gate@rack-1']);
  assert.equal((await cameras())[0]!.spec.placement.priority, 5);
});
