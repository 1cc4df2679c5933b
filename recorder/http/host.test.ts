import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { silentLog } from '../../base/log.ts';
import { build } from '../api/test-support.ts';
import { Authenticator } from './auth.ts';
import { installAccess } from './access.ts';
import { buildServer } from './server.ts';

const OPEN = { mode: 'none', tokens: [], allowedHosts: ['nvr.example'] } as const;

test('without authentication, requests for hosts other than addresses, localhost and named ones are refused', async (t) => {
  const { app } = await build(t, { auth: OPEN });
  const ask = async (host: string, url = '/api/cameras') => (await app.inject({ url, headers: { host } })).statusCode;
  for (const host of [
    '127.0.0.1:9997',
    '[::1]:9997',
    '10.0.0.5',
    'localhost:1',
    'LOCALHOST',
    'nvr.example',
    'NVR.example.:9997',
  ]) {
    assert.equal(await ask(host), 200, host);
  }
  for (const host of [
    'evil.example:9997',
    'nvr.example.evil.example',
    '127.0.0.1.evil.example',
    'x127.0.0.1',
    'localhost.evil.example',
    '[::1].evil.example',
  ]) {
    assert.equal(await ask(host), 421, host);
  }
  // Whatever it is that is asked for.
  for (const url of ['/', '/openapi.json', '/api/health/live', '/no/such'])
    assert.equal(await ask('evil.example', url), 421, url);
  const refusal = await app.inject({ url: '/api/cameras', headers: { host: 'evil.example' } });
  assert.equal(refusal.json().code, 'unknown-host');
  assert.match(refusal.json().detail, /auth\.allowedHosts/);
});

test('a page whose host name resolves to this machine opens no live stream', async (t) => {
  const { app } = await build(t, { auth: OPEN });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const headers = { host: `evil.example:${port}`, origin: `http://evil.example:${port}` };
  const socket = new WebSocket(`ws://127.0.0.1:${port}/websocket/gate`, { headers });
  const [err] = (await once(socket, 'error')) as [Error];
  assert.match(err.message, /421/);
});

test('an upgrade that is refused leaves no connection behind, whatever refuses it', async (t) => {
  const { app } = await build(t);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const upgrade = 'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13';
  for (const [path, status] of [
    ['/api/cameras', 401],
    ['/no/such', 404],
    ['/%zz', 400],
  ] as const) {
    const socket = connect(port, '127.0.0.1');
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: nvr\r\n${upgrade}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
    );
    const [answer] = (await once(socket, 'data')) as [Buffer];
    assert.match(String(answer), new RegExp(`^HTTP/1.1 ${status} `), path);
    await once(socket, 'close');
  }
});

test('a proxy that is trusted may not name another host either', async (t) => {
  const app = buildServer({ log: silentLog, maxConnections: 10, trustedProxies: ['127.0.0.1'] });
  t.after(() => app.close());
  installAccess(app, new Authenticator(OPEN));
  app.get('/', async () => 'here');
  const ask = async (forwarded: string) =>
    (await app.inject({ url: '/', headers: { host: '127.0.0.1', 'x-forwarded-host': forwarded } })).statusCode;
  assert.deepEqual([await ask('nvr.example'), await ask('evil.example')], [200, 421]);
});

test('where a token is needed, any host is answered: a page of a stranger has none', async (t) => {
  const { app } = await build(t);
  const headers = { host: 'anything.example', authorization: 'Bearer viewer' };
  assert.equal((await app.inject({ url: '/api/cameras', headers })).statusCode, 200);
});
