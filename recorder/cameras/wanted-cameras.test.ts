import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { silentLog } from '../../base/log.ts';
import { DAY_MS } from '../../base/units.ts';
import { workspace } from '../../test/support/workspace.ts';
import type { WantedCamera } from './camera-set.ts';
import { loadConfig } from '../config/load.ts';
import { CameraFile, toCameraConfig, type CameraConfig } from '../config/schema.ts';
import { CurrentConfig } from '../config/current-config.ts';
import { camerasOfOthers, DISABLED_ROW, WantedCameras, type CameraSources } from './wanted-cameras.ts';

const cameraOf = (id: string, over: object = {}): CameraConfig =>
  toCameraConfig(CameraFile.parse({ id, source: `rtsp://10.0.0.9/${id}`, ...over }), {
    segmentDurationMs: 300_000,
    maxBitrate: 1e8,
  });

interface Stage {
  readonly wanted: WantedCameras;
  /** Warnings and errors that were logged. */
  readonly logged: unknown[];
  /** Cameras of the database or the cluster; tests change them. */
  others: readonly CameraConfig[];
  readonly sources: CameraSources;
}

async function stage(t: TestContext, ...files: readonly object[]): Promise<Stage> {
  const file = join(workspace(t), 'config.yaml');
  const archive = { retention: { maxAge: '30d' } };
  await writeFile(file, JSON.stringify({ record_path: '/mnt/archive', nodeName: 'node', archive, cameras: files }));
  const logged: unknown[] = [];
  const log = { ...silentLog, warn: (what: unknown) => logged.push(what), error: (what: unknown) => logged.push(what) };
  const it: Stage = {
    wanted: new WantedCameras(new CurrentConfig(await loadConfig(file)), log),
    logged,
    others: [],
    sources: {
      cameraSwitch: { overrule: (all) => all },
      database: {
        get cameras() {
          return { cameras: it.others, refused: [] };
        },
      },
      member: undefined,
    },
  };
  return it;
}

const GATE = { id: 'gate', source: 'rtsp://10.0.0.1/gate' };
const idsOf = (cameras: readonly WantedCamera[]): readonly string[] => cameras.map(({ id }) => id);

test('before other sources are joined, the cameras of the files are wanted', async (t) => {
  const { wanted } = await stage(t, GATE);
  assert.deepEqual(idsOf(wanted.list().cameras), ['gate']);
  assert.equal(wanted.enabledCount, 1);
});

test('cameras of files and of other sources are wanted, as the switches of users overrule them', async (t) => {
  const { wanted, sources } = await stage(t, GATE);
  const reason = { code: 'stopped', message: 'stopped by anna' };
  wanted.join({
    ...sources,
    cameraSwitch: {
      overrule: (files) => files.map((camera) => ({ ...camera, enabled: false, halted: { reason } })),
    },
    database: { cameras: { cameras: [cameraOf('yard'), cameraOf('shed', { enabled: false })], refused: [] } },
  });
  const cameras: readonly WantedCamera[] = wanted.list().cameras;
  assert.deepEqual(
    cameras.map(({ id, enabled, halted }) => [id, enabled, halted?.reason]),
    [
      ['gate', false, reason],
      ['yard', true, undefined],
      ['shed', false, DISABLED_ROW.reason],
    ],
  );
  assert.equal(wanted.enabledCount, 1);
});

test('a camera of the files keeps its id, and the other one with it is refused with a warning', async (t) => {
  const it = await stage(t, GATE);
  it.wanted.join(it.sources);
  it.others = [cameraOf('gate')];
  const applied: string[] = [];
  await it.wanted.follow(async (cameras) => void applied.push(...cameras.map(({ source }) => source)));
  assert.deepEqual(applied, [GATE.source]);
  assert.match(JSON.stringify(it.logged), /"camera":"gate","code":"id-taken"/);
});

test('changes are applied from the first look until the recorder leaves', async (t) => {
  const it = await stage(t, GATE);
  it.wanted.join(it.sources);
  const applied: (readonly string[])[] = [];
  const { wanted } = it;
  wanted.changed();
  await wanted.apply();
  assert.equal(applied.length, 0, 'nothing follows yet');
  await wanted.follow(async (cameras) => void applied.push(idsOf(cameras)));
  it.others = [cameraOf('yard')];
  wanted.changed();
  wanted.leave();
  it.others = [];
  wanted.changed();
  await setImmediate();
  assert.deepEqual(applied, [['gate'], ['gate', 'yard']]);
});

test('a change from elsewhere that fails is logged, and one that is waited for rejects', async (t) => {
  const { wanted, logged } = await stage(t, GATE);
  const failure = new Error('no thread');
  let fails = false;
  await wanted.follow(() => (fails ? Promise.reject(failure) : Promise.resolve()));
  fails = true;
  await assert.rejects(wanted.apply(), failure);
  assert.deepEqual(logged, []);
  wanted.changed();
  await setImmediate();
  assert.deepEqual(logged, [{ err: failure }]);
});

test('limits are those of the node and of each camera, as of the last change', async (t) => {
  const it = await stage(t, { ...GATE, record: { retention: { maxAge: '3d' } } });
  it.wanted.join(it.sources);
  it.others = [cameraOf('yard')];
  assert.deepEqual([...it.wanted.limits.cameras.keys()], ['gate']);
  await it.wanted.apply();
  const { node, cameras } = it.wanted.limits;
  assert.equal(node.maxAgeMs, 30 * DAY_MS);
  assert.deepEqual([...cameras.keys()], ['gate', 'yard']);
  assert.equal(cameras.get('gate')?.maxAgeMs, 3 * DAY_MS);
});

test('in a cluster the cameras are those of the cluster, and what is wrong with rows is shown on servers', () => {
  const wrong = { id: 'shed', reason: { code: 'invalid-camera', message: 'cameras.source: expected an address' } };
  const rows = { cameras: [cameraOf('gate'), cameraOf('yard')], refused: [wrong] };
  const assigned = { cameras: [cameraOf('gate', { name: 'assigned' })], refused: [] };
  const modeOf = (mode: 'etcd' | 'kubernetes'): Parameters<typeof camerasOfOthers>[0] => ({
    cluster: { mode } as CurrentConfig['value']['cluster'],
  });
  assert.deepEqual(camerasOfOthers(modeOf('kubernetes'), assigned, rows), assigned);
  assert.deepEqual(camerasOfOthers(modeOf('etcd'), undefined, rows), rows);
  assert.deepEqual(camerasOfOthers(modeOf('etcd'), assigned, rows), { ...assigned, refused: [wrong] });
});
