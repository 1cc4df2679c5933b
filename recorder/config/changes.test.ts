import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changedSettings, diffCameras, lostByAccident, refuseLoss } from './changes.ts';
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

test('how it is recorded is no reason to connect to the camera again, inherited or its own', () => {
  const before = cameras(gate);
  for (const record of [
    { retention: { maxAge: '1d', maxSize: '1GiB' } },
    { format: 'mp4' },
    { segmentDuration: '1m' },
  ]) {
    assert.deepEqual(diffCameras(before, cameras({ ...gate, record })).changed, []);
  }
  const inherited = config({ cameras: [gate], archive: { segmentDuration: '1m' } }).cameras;
  assert.equal(inherited[0]?.record.segmentDurationMs, 60_000);
  assert.deepEqual(diffCameras(before, inherited).changed, []);
});

test('what is needed beside the stream is no reason to connect to the camera again', () => {
  const beside = {
    preview: { source: 'rtsp://gate/small' },
    group: 'entrance',
    snapshot: 'http://gate/snap.jpg',
    ptz: true,
    onvif: 'http://gate/onvif',
    edge: { onvif: true },
  };
  assert.deepEqual(diffCameras(cameras(gate), cameras({ ...gate, ...beside })).changed, []);
  assert.equal(diffCameras(cameras(gate), cameras({ ...gate, tls: { verify: true } })).changed.length, 1);
});

test('settings that need a restart are named, cameras are not among them', () => {
  const before = config({});
  assert.deepEqual(changedSettings(before, config({ cameras: [gate], listen: ':1', log: { maxFiles: 2 } })), [
    'listen',
    'log',
  ]);
  assert.deepEqual(changedSettings(before, config({ log: { level: 'debug' } })), []);
  const networks = { cameraNetworks: ['10.0.0.0/8'], cluster: { networks: ['10.96.0.0/12'] } };
  assert.deepEqual(changedSettings(before, config(networks)), [], 'the next connection is judged by these');
  const hooks = { webhooks: [{ url: 'https://a.example/', secretFile: '/a' }], webhooksFile: '/hooks.yaml' };
  assert.deepEqual(changedSettings(before, config(hooks)), [], 'webhooks are opened and closed');
  const metrics = (digit: string) => config({ metrics: { tokenSha256: digit.repeat(64) } });
  assert.deepEqual(changedSettings(metrics('a'), metrics('b')), [], 'tokens are replaced');
  assert.deepEqual(changedSettings(before, metrics('a')), ['metrics'], 'the listener asks for one from a start on');
  const taken = { segmentDuration: '1m', retention: { maxAge: '1d' } };
  assert.deepEqual(changedSettings(before, config({ archive: taken })), [], 'these are taken over at once');
  assert.deepEqual(changedSettings(before, config({ archive: { ...taken, syncInterval: '1s' } })), ['archive']);
});

for (const [what, before, after, asked, lost] of [
  ['the only camera', 'a', '', [], 'a'],
  ['all of two', 'ab', '', [], 'ab'],
  ['one of two', 'ab', 'a', [], ''],
  ['two of three', 'abc', 'a', [], 'bc'],
  ['two of four', 'abcd', 'ab', [], ''],
  ['three of four, with a new one', 'abcd', 'az', [], 'bcd'],
  ['all of three for others', 'abc', 'xyz', [], 'abc'],
  ['the only one, as asked', 'a', '', ['a'], ''],
  ['one as asked, and all others by accident', 'abc', '', ['a'], 'bc'],
  ['all, by a signal', 'abc', '', 'everything', ''],
  ['none of none', '', '', [], ''],
] as const)
  test(`cameras that are gone by accident: ${what}`, () => {
    assert.equal(lostByAccident(before.split(''), after.split(''), asked).join(''), lost);
  });

test('a configuration without the tokens of before is refused, and names them', () => {
  const token = (name: string) => ({ name, role: 'admin', sha256: 'a'.repeat(64) });
  const before = config({ auth: { tokens: [token('wall')] } });
  const problem = { key: 'auth.tokens', message: /^auth\.tokens: no longer there: wall; send SIGHUP/ };
  assert.throws(() => refuseLoss(before, config({}), []), problem);
  refuseLoss(before, config({}), 'everything');
  refuseLoss(before, config({ auth: { tokens: [{ ...token('desk'), sha256: 'b'.repeat(64) }] } }), []);
});
