import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changedSettings, diffCameras } from './changes.ts';
import { ConfigFile, toConfig } from './schema.ts';
import type { CameraConfig, Config } from './schema.ts';

const config = (file: object): Config => toConfig(ConfigFile.parse(file), 'node');
const cameras = (...list: object[]): readonly CameraConfig[] => config({ cameras: list }).cameras;
const gate = { id: 'gate', source: 'rtsp://gate/' };
const door = { id: 'door', source: 'rtsp://door/' };
const yard = { id: 'yard', source: 'rtsp://yard/' };

test('only cameras that are new, gone or different are named', () => {
  const after = cameras(yard, { ...door, transport: 'udp' });
  const changes = diffCameras(cameras(gate, door), after);
  assert.deepEqual(
    { added: changes.added.map((c) => c.id), removed: changes.removed.map((c) => c.id), changed: changes.changed },
    { added: ['yard'], removed: ['gate'], changed: [after[1]] },
  );
});

test('another order of the same cameras is no change', () => {
  assert.deepEqual(diffCameras(cameras(gate, door), cameras(door, gate)), { added: [], removed: [], changed: [] });
});

test('another retention is no reason to connect to the camera again', () => {
  const before = cameras(gate);
  const after = cameras({ ...gate, record: { retention: { maxAge: '1d', maxSize: '1GiB' } } });
  assert.deepEqual(diffCameras(before, after).changed, []);
});

test('what is needed beside the stream is no reason to connect to the camera again', () => {
  const beside = { snapshot: 'http://gate/snap.jpg', ptz: true, onvif: 'http://gate/onvif' };
  assert.deepEqual(diffCameras(cameras(gate), cameras({ ...gate, ...beside })).changed, []);
  assert.equal(diffCameras(cameras(gate), cameras({ ...gate, tls: { verify: true } })).changed.length, 1);
});

test('a segment duration that a camera inherits changes the camera', () => {
  const before = config({ cameras: [gate] });
  const after = config({ cameras: [gate], archive: { segmentDuration: '1m' } });
  assert.equal(diffCameras(before.cameras, after.cameras).changed[0]?.record.segmentDurationMs, 60_000);
});

test('settings that need a restart are named, cameras are not among them', () => {
  const before = config({});
  assert.deepEqual(changedSettings(before, config({ cameras: [gate], listen: ':1', log: { level: 'debug' } })), [
    'listen',
    'log',
  ]);
  assert.deepEqual(changedSettings(before, config({})), []);
});
