import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { SwitchError, type CameraSwitch } from '../../contract/camera-switch.ts';
import { as, build, token, type ApiChanges, type TestApi } from '../test-support.ts';

/** A node with a camera that runs, `gate`, and one that the licence does not allow, `yard`. */
function cameraSwitch(calls: string[] = []): CameraSwitch {
  let isRunning = true;
  const change = (cameraId: string, wanted: boolean, by: string): number => {
    calls.push(`${wanted ? 'start' : 'stop'} ${cameraId} by ${by}`);
    if (cameraId === 'broken') throw new SwitchError('switch-not-kept', 'the database cannot be changed: it is away');
    if (cameraId === 'yard' && wanted) throw new SwitchError('license-exceeded', 'the licence allows 1 camera');
    if (cameraId !== 'gate') throw new SwitchError('unknown-camera', 'no such camera');
    if (isRunning === wanted) return 0;
    isRunning = wanted;
    return 1;
  };
  return {
    start: async (cameraId, by) => change(cameraId, true, by),
    stop: async (cameraId, by) => change(cameraId, false, by),
  };
}

const setup = (t: TestContext, changes: ApiChanges = {}): Promise<TestApi> =>
  build(t, { cameraSwitch: cameraSwitch(), ...changes });

async function post(
  { app }: TestApi,
  path: string,
  payload: unknown,
  headers: Record<string, string> = as('operator'),
) {
  const body = payload === undefined ? {} : { payload: payload as object };
  const answer = await app.inject({ method: 'POST', url: path, headers, ...body });
  const { request_id: _, ...json } = answer.json<Record<string, unknown>>();
  return { status: answer.statusCode, type: answer.headers['content-type'], json };
}

test('start and stop answer how many cameras they changed, and record the caller', async (t) => {
  const calls: string[] = [];
  const api = await setup(t, { cameraSwitch: cameraSwitch(calls) });
  const gate = { id: 'gate' };
  assert.deepEqual((await post(api, '/cameras/start', gate)).json, { status: 'ok', started: 0 });
  assert.deepEqual((await post(api, '/cameras/stop', gate)).json, { status: 'ok', stopped: 1 });
  assert.deepEqual((await post(api, '/cameras/stop', gate)).json, { status: 'ok', stopped: 0 });
  assert.deepEqual((await post(api, '/cameras/start', gate, as('admin'))).json, { status: 'ok', started: 1 });
  assert.deepEqual(calls.slice(2), ['stop gate by operator', 'start gate by admin']);
});

for (const path of ['/cameras/start', '/cameras/stop']) {
  test(`${path}: an id that is missing or none is 400 and named, an unknown one 404`, async (t) => {
    const api = await setup(t);
    for (const wrong of [undefined, {}, { id: 7 }, { id: '' }, { id: '../etc' }, { id: 'a'.repeat(64) }, ['gate']]) {
      const { status, type, json } = await post(api, path, wrong);
      assert.equal(status, 400, JSON.stringify(wrong));
      assert.match(String(json['detail']), /^id: expected/, JSON.stringify(wrong));
      assert.match(String(type), /^application\/problem\+json/);
    }
    const unknown = await post(api, path, { id: 'nobody' });
    assert.deepEqual([unknown.status, unknown.json['code']], [404, 'unknown-camera']);
  });

  test(`${path} needs the role operator and the camera in the token's scope`, async (t) => {
    const scoped = { ...token('operator', 'scoped'), name: 'scoped', cameras: ['dock-*'] };
    const tokens = [token('viewer'), token('operator'), scoped];
    const calls: string[] = [];
    const api = await setup(t, { auth: { mode: 'token', tokens }, cameraSwitch: cameraSwitch(calls) });
    assert.equal((await post(api, path, { id: 'gate' }, {})).status, 401);
    assert.equal((await post(api, path, { id: 'gate' }, as('viewer'))).status, 403);
    const hidden = await post(api, path, { id: 'gate' }, { authorization: 'Bearer scoped' });
    const unknown = await post(api, path, { id: 'dock-7' }, { authorization: 'Bearer scoped' });
    assert.equal(hidden.status, 404);
    assert.deepEqual(hidden, unknown, 'nobody can tell one from the other');
    assert.deepEqual(calls, [`${path.slice('/cameras/'.length)} dock-7 by scoped`]);
  });
}

test('the reason for a stop goes with the name of the caller, into the audit as well', async (t) => {
  const calls: string[] = [];
  const lines: object[] = [];
  const audit = { sink: { write: (entry: object) => void lines.push(entry) } };
  const api = await setup(t, { cameraSwitch: cameraSwitch(calls), audit });
  await post(api, '/cameras/stop', { id: 'gate', reason: ' works in the yard ' });
  assert.deepEqual(calls, ['stop gate by operator: works in the yard']);
  assert.deepEqual(
    lines.map((line) => (line as { reason?: string }).reason),
    ['works in the yard'],
  );
  for (const wrong of ['', 'a'.repeat(201), 'two\nlines', '\u{9f}', 7]) {
    const { status, json } = await post(api, '/cameras/stop', { id: 'gate', reason: wrong });
    assert.equal(status, 400);
    assert.match(String(json['detail']), /^reason: expected 1 to 200/);
  }
});

test('a reason may have every character but controls, and is shown as one line that nothing in it can turn', async (t) => {
  const calls: string[] = [];
  const api = await setup(t, { cameraSwitch: cameraSwitch(calls) });
  const unassigned = '\u20f3';
  for (const reason of [
    'Tor öffnet nicht 🚪',
    'a\u2028b',
    '\u202eab',
    `a${unassigned}b`,
    '\ud800',
    '  ',
    '🚪'.repeat(200),
  ]) {
    assert.equal((await post(api, '/cameras/stop', { id: 'gate', reason })).status, 200, reason);
  }
  assert.deepEqual(
    calls.map((call) => call.replace('stop gate by operator', '')),
    [': Tor öffnet nicht 🚪', ': a b', ': ab', ': a b', ': \ufffd', '', `: ${'🚪'.repeat(200)}`],
  );
});

test('the reason why a camera cannot be started is answered', async (t) => {
  const api = await setup(t);
  const licence = await post(api, '/cameras/start', { id: 'yard' });
  assert.deepEqual([licence.status, licence.json['code']], [409, 'license-exceeded']);
  assert.equal(licence.json['detail'], 'the licence allows 1 camera');
  for (const path of ['/cameras/start', '/cameras/stop']) {
    const away = await post(api, path, { id: 'broken' });
    assert.deepEqual([away.status, away.json['code']], [503, 'switch-not-kept']);
  }
});
