// `/api/ptz/…` over a real ONVIF device: what is asked wrongly, what the camera refuses, who may.

import { test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { VirtualClock } from '../../../base/clock.ts';
import { silentLog } from '../../../base/log.ts';
import { OnvifDevice } from '../../../test/onvif/device.ts';
import { until } from '../../../test/support/until.ts';
import { Ptz, type MovableCamera } from '../../onvif/ptz.ts';
import { as, build, cameraStatus } from '../test-support.ts';
import { anywhere } from '../../reach/reach.ts';

const CREDENTIALS = { username: 'u', password: 'p' };

async function stage(t: TestContext) {
  const presets = [{ token: '1', name: 'Door' }];
  const device = await OnvifDevice.start({ credentials: CREDENTIALS, presets });
  t.after(() => device.close());
  const clock = new VirtualClock();
  const ptz = new Ptz({
    reach: anywhere(),
    clock,
    log: silentLog,
    limits: { moveTimeoutMs: 10_000, answerTimeoutMs: 10_000 },
  });
  const source = 'rtsp://u:p@127.0.0.1/';
  ptz.configure([
    { id: 'gate', ptz: true, source, onvif: device.url, tls: { verify: false } },
    { id: 'yard', ptz: false, source, onvif: device.url, tls: { verify: false } },
  ]);
  t.after(() => ptz.close());
  const movable = (cameraId: string): MovableCamera => {
    const camera = ptz.get(cameraId);
    assert.ok(typeof camera === 'object', 'only cameras that may be moved are asked');
    return camera;
  };
  const { app, cameras } = await build(t, {
    ptz: {
      move: (cameraId, command) => movable(cameraId).run(command),
      presets: (cameraId) => movable(cameraId).presets(),
    },
  });
  for (const [id, isMovable] of [
    ['gate', true],
    ['yard', false],
  ] as const)
    cameras.push({ status: cameraStatus({ id }), ptz: isMovable, archive: undefined, live: undefined });
  const post = async (path: string, payload: unknown, role: 'viewer' | 'operator' = 'operator') => {
    const headers = { ...as(role), 'content-type': 'application/json' };
    const body = typeof payload === 'string' ? payload : JSON.stringify(payload);
    const answer = await app.inject({ method: 'POST', url: `/api/ptz/${path}`, headers, payload: body });
    return { status: answer.statusCode, body: answer.json() as Record<string, unknown> };
  };
  return { device, clock, app, post };
}

const MOVE = { camera_id: 'gate', pan: 1, tilt: -0.5, zoom: 0 };

test('move and stop', async (t) => {
  const { device, post } = await stage(t);
  assert.deepEqual(await post('move', MOVE), { status: 200, body: { status: 'ok', message: 'the camera moves' } });
  assert.deepEqual(device.motion, { pan: 1, tilt: -0.5, zoom: 0 });
  const stopped = { status: 200, body: { status: 'ok', message: 'the camera stands still' } };
  assert.deepEqual(await post('stop', { camera_id: 'gate' }), stopped);
  assert.equal(device.motion, undefined);
});

for (const [speed, pan] of [
  [0.5, 0.5],
  [7, 1],
  [-3, undefined],
] as const) {
  test(`a speed of ${speed} is limited: pan ${pan}`, async (t) => {
    const { device, post } = await stage(t);
    const { status, body } = await post('move', { ...MOVE, tilt: 0, speed });
    assert.equal(status, 200);
    const message = pan === undefined ? 'the camera stands still' : 'the camera moves';
    assert.equal((body as { message: string }).message, message);
    assert.equal(device.motion?.pan, pan);
  });
}

for (const [name, body, status, code, detail] of [
  ['pan beyond', { ...MOVE, pan: 1.01 }, 422, 'invalid-movement', /^pan: expected a number from -1 to 1/],
  ['tilt below', { ...MOVE, tilt: -2 }, 422, 'invalid-movement', /^tilt: /],
  ['zoom as text', { ...MOVE, zoom: '1' }, 422, 'invalid-movement', /^zoom: expected a number$/],
  ['zoom missing', { camera_id: 'gate', pan: 0, tilt: 0 }, 422, 'invalid-movement', /^zoom: is missing$/],
  ['pan null', { ...MOVE, pan: null }, 422, 'invalid-movement', /^pan: expected a number$/],
  ['speed as text', { ...MOVE, speed: 'fast' }, 422, 'invalid-movement', /^speed: expected a number$/],
  [
    'infinity',
    '{"camera_id":"gate","pan":1e999,"tilt":0,"zoom":0}',
    422,
    'invalid-movement',
    /^pan: expected a number$/,
  ],
  ['no camera', { pan: 0, tilt: 0, zoom: 0 }, 400, 'invalid-parameter', /^camera_id: /],
  ['no camera and no movement', {}, 400, 'invalid-parameter', /^camera_id: /],
  ['no object', '[]', 400, 'invalid-parameter', /./],
  ['no JSON', '{', 400, 'invalid-request', /./],
  ['an unknown camera', { ...MOVE, camera_id: 'dock' }, 404, 'unknown-camera', /./],
  ['a camera that is not to be moved', { ...MOVE, camera_id: 'yard' }, 403, 'ptz-disabled', /./],
] as const) {
  test(`move is refused: ${name}`, async (t) => {
    const { device, post } = await stage(t);
    const answer = await post('move', body);
    assert.deepEqual([answer.status, answer.body['code']], [status, code]);
    assert.match(String(answer.body['detail']), detail);
    assert.deepEqual(device.calls, []);
  });
}

test('presets and goto', async (t) => {
  const { app, device, post } = await stage(t);
  const list = await app.inject({ url: '/api/ptz/presets?camera_id=gate', headers: as('operator') });
  assert.deepEqual(list.json(), { presets: [{ token: '1', name: 'Door' }] });
  assert.equal((await post('goto', { camera_id: 'gate', preset: '1', speed: 2 })).status, 200);
  assert.equal(device.calls.at(-1)!.operation, 'GotoPreset');
  const unknown = await post('goto', { camera_id: 'gate', preset: '9' });
  assert.deepEqual([unknown.status, unknown.body['code']], [502, 'camera-fault']);
  assert.match(String(unknown.body['detail']), /The requested preset token does not exist/);
  assert.equal((await post('goto', { camera_id: 'gate' })).status, 400);
  assert.equal((await post('goto', { camera_id: 'gate', preset: '1', speed: true })).status, 422);
  for (const [query, status] of [
    ['', 400],
    ['?camera_id=dock', 404],
    ['?camera_id=yard', 403],
  ] as const) {
    const answer = await app.inject({ url: `/api/ptz/presets${query}`, headers: as('operator') });
    assert.equal(answer.statusCode, status, query);
  }
});

test('what goes wrong at the camera is 502 with its own reason', async (t) => {
  const { device, clock, post } = await stage(t);
  device.behave('ContinuousMove', [{ kind: 'fault', reason: 'Motor is too hot' }]);
  const fault = await post('move', MOVE);
  assert.equal(fault.status, 502);
  assert.equal(fault.body['code'], 'camera-fault');
  assert.match(String(fault.body['detail']), /Motor is too hot/);
  device.behave('ContinuousMove', [{ kind: 'hold' }]);
  const slow = post('move', MOVE);
  await until('the camera was told', () => device.held.length === 1);
  clock.advance(10_000);
  assert.deepEqual([(await slow).status, (await slow).body['code']], [502, 'camera-timeout']);
  device.release();
});

test('a viewer moves nothing', async (t) => {
  const { app, device, post } = await stage(t);
  for (const path of ['move', 'stop', 'goto']) assert.equal((await post(path, MOVE, 'viewer')).status, 403);
  const list = await app.inject({ url: '/api/ptz/presets?camera_id=gate', headers: as('viewer') });
  assert.equal(list.statusCode, 403);
  assert.deepEqual(device.calls, []);
});
