import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { LevelSwitch } from '../../base/log-level.ts';
import { until } from '../../test/support/until.ts';
import type { AuditSink } from '../audit/entry.ts';
import { as, build, token, type ApiChanges } from '../api/test-support.ts';
import type { CameraSwitch } from '../contract/camera-switch.ts';

type Line = Record<string, unknown>;

async function setup(t: TestContext, changes: ApiChanges = {}) {
  const lines: Line[] = [];
  const sink: AuditSink = { write: (entry) => void lines.push({ ...entry }) };
  const cameraSwitch: CameraSwitch = { start: async () => 1, stop: async () => 1 };
  const api = await build(t, { audit: { sink }, cameraSwitch, logLevels: new LevelSwitch('info'), ...changes });
  return { ...api, lines };
}

const ID = { 'x-request-id': 'request-7' };

test('a call that changes something leaves one line: who, what, which camera, from where, with which outcome', async (t) => {
  const { app, lines } = await setup(t);
  const call = { method: 'POST', url: '/cameras/stop', payload: { id: 'gate' }, remoteAddress: '10.0.0.7' } as const;
  await app.inject({ ...call, headers: { ...as('operator'), ...ID } });
  assert.deepEqual(lines, [
    {
      what: 'stop-camera',
      caller: 'operator',
      role: 'operator',
      method: 'POST',
      route: '/cameras/stop',
      path: '/cameras/stop',
      camera: 'gate',
      address: '10.0.0.7',
      status: 200,
      outcome: 'done',
      requestId: 'request-7',
    },
  ]);
});

test('denied and failed calls leave a line too; those that only look, and those of no route, do not', async (t) => {
  const { app, lines } = await setup(t);
  const call = async (
    method: 'GET' | 'POST' | 'PUT',
    url: string,
    headers: Record<string, string>,
    payload?: object,
  ) => {
    await app.inject({ method, url, headers, ...(payload ? { payload } : {}) });
    return lines.splice(0).map(({ caller, role, camera, status, outcome }) => [caller, role, camera, status, outcome]);
  };
  assert.deepEqual(await call('POST', '/cameras/stop', {}, { id: 'gate' }), [[null, null, undefined, 401, 'denied']]);
  assert.deepEqual(await call('POST', '/cameras/stop', { authorization: 'Bearer wrong' }, { id: 'gate' }), [
    [null, null, undefined, 401, 'denied'],
  ]);
  assert.deepEqual(await call('POST', '/cameras/stop', as('viewer'), { id: 'gate' }), [
    ['viewer', 'viewer', undefined, 403, 'denied'],
  ]);
  assert.deepEqual(await call('PUT', '/api/log', as('operator'), { level: 'debug' }), [
    ['operator', 'operator', undefined, 403, 'denied'],
  ]);
  assert.deepEqual(await call('POST', '/cameras/stop', as('operator'), { id: '../x' }), [
    ['operator', 'operator', undefined, 400, 'failed'],
  ]);
  assert.deepEqual(await call('PUT', '/api/log', as('admin'), { level: 'debug' }), [
    ['admin', 'admin', undefined, 200, 'done'],
  ]);
  assert.deepEqual(await call('POST', '/cameras/stop', { ...as('operator'), origin: 'https://evil.example' }), [
    [null, null, undefined, 403, 'denied'],
  ]);
  assert.deepEqual(await call('GET', '/api/log', as('admin')), []);
  assert.deepEqual(await call('GET', '/api/log', as('viewer')), []);
  assert.deepEqual(await call('POST', '/no/such/route', as('admin')), []);
});

test('a call that is sent on to another node has not been done here', async (t) => {
  const { app, lines } = await setup(t);
  const config = { role: 'operator', cameras: 'none', audit: 'stop-camera' } as const;
  app.post('/elsewhere', { config }, async (_request, reply) => reply.redirect('http://other/elsewhere', 307));
  await app.inject({ method: 'POST', url: '/elsewhere', headers: as('operator') });
  assert.deepEqual(
    lines.map(({ status, outcome }) => [status, outcome]),
    [[307, 'redirected']],
  );
});

test('a camera out of the scope of the token is named in the line', async (t) => {
  const scoped = { ...token('operator', 'scoped'), name: 'dock', cameras: ['dock-*'] };
  const { app, lines } = await setup(t, { auth: { mode: 'token', tokens: [scoped] } });
  const headers = { authorization: 'Bearer scoped' };
  await app.inject({ method: 'POST', url: '/cameras/stop', headers, payload: { id: 'gate' } });
  assert.deepEqual([lines[0]?.['caller'], lines[0]?.['camera'], lines[0]?.['status']], ['dock', 'gate', 404]);
});

test('lines hold no token, wherever it was written', async (t) => {
  const { app, lines } = await setup(t);
  const secret = 'very-secret-token';
  for (const url of [`/cameras/stop?access_token=${secret}`, `/cameras/stop?x=${secret}`]) {
    const headers = { authorization: `Bearer ${secret}`, cookie: secret, referer: `http://x/?access_token=${secret}` };
    await app.inject({ method: 'POST', url, headers, payload: { id: 'gate', secret } });
  }
  assert.equal(lines.length, 2);
  assert.doesNotMatch(JSON.stringify(lines), new RegExp(secret));
});

test('callers without a token cannot push out the lines of others', async (t) => {
  const { app, lines, clock } = await setup(t);
  const url = '/cameras/stop';
  for (let i = 0; i < 500; i++) await app.inject({ method: 'POST', url, payload: { id: 'gate' } });
  assert.equal(lines.length, 60);
  await app.inject({ method: 'POST', url, headers: as('operator'), payload: { id: 'gate' } });
  assert.equal(lines.at(-1)?.['caller'], 'operator');
  clock.advance(60_000);
  await app.inject({ method: 'POST', url, payload: { id: 'gate' } });
  assert.deepEqual([lines.length, lines.at(-1)?.['suppressed']], [62, 440]);
});

test('a caller that leaves before the answer is in the audit anyway, and so is the result', async (t) => {
  let begun = false;
  let finish = (): void => {};
  const cameraSwitch: CameraSwitch = {
    start: async () => 1,
    stop: () =>
      new Promise((resolve) => {
        begun = true;
        finish = () => resolve(1);
      }),
  };
  const { app, lines } = await setup(t, { cameraSwitch, clock: new VirtualClock(), log: silentLog });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  const body = '{"id":"gate"}';
  socket.write(
    `POST /cameras/stop HTTP/1.1\r\nhost: x\r\nauthorization: Bearer operator\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await until('the camera is being stopped', () => begun);
  socket.resetAndDestroy();
  await until('a line says that the caller is gone', () => lines.length === 1);
  assert.deepEqual(
    [lines[0]?.['caller'], lines[0]?.['camera'], lines[0]?.['outcome']],
    ['operator', 'gate', 'caller gone'],
  );
  finish();
  await until('a line says what came of it', () => lines.length === 2);
  assert.deepEqual([lines[1]?.['status'], lines[1]?.['outcome']], [200, 'done']);
});

test('a route that changes something and has no name in the audit is refused when it is added', async (t) => {
  const { app } = await setup(t);
  const config = { role: 'operator', cameras: 'none' } as const;
  assert.throws(
    () => app.post('/nameless', { config }, async () => ''),
    /POST \/nameless .* give it a name in the audit/,
  );
});
