// The places of a listener and their holders: over real connections, plain and TLS.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { silentLog } from '../../base/log.ts';
import { selfSignedCertificate } from '../../test/camera/certificate.ts';
import { until } from '../../test/support/until.ts';
import { installAccess } from './access.ts';
import { Authenticator } from './auth.ts';
import { buildServer, type ServerOptions } from './server.ts';

const token = (name: string, role: 'viewer' | 'operator' = 'viewer') => ({
  name,
  role,
  sha256: createHash('sha256').update(name).digest('hex'),
});

const TOKENS = [...['right', 'other', 'third', 'fourth'].map((name) => token(name)), token('guard', 'operator')];

/** As the server has them. */
const TIMEOUTS = { requestMs: 30_000, headersMs: 10_000, strangerBodyMs: 3_000, handshakeMs: 10_000, checkMs: 2_000 };

/** Eight places: two for strangers of one address, two for one token. */
async function stage(t: TestContext, options: Partial<ServerOptions> = {}) {
  const app = buildServer({ log: silentLog, maxConnections: 8, ...options });
  installAccess(app, new Authenticator({ mode: 'token', tokens: TOKENS }));
  app.get('/anybody', async () => 'anybody');
  app.post('/anybody', async () => 'anybody');
  const viewers = { config: { role: 'viewer', cameras: 'none' } } as const;
  app.get('/viewers', viewers, async () => 'viewers');
  app.post('/viewers', viewers, async () => 'viewers');
  const held = Promise.withResolvers<string>();
  app.get('/slow', async () => held.promise);
  app.get('/slow-viewers', viewers, async () => held.promise);
  await app.listen({ host: '127.0.0.1', port: 0 });
  t.after(async () => {
    held.resolve('done');
    await app.close();
  });
  const open = async (localAddress = '127.0.0.1'): Promise<Socket> => {
    const { port } = app.server.address() as AddressInfo;
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    t.after(() => socket.destroy());
    socket.on('error', () => {});
    await once(socket, 'connect');
    return socket;
  };
  return { app, open };
}

/** The status of the answer, or `closed`. */
async function ask(socket: Socket, path: string, token = ''): Promise<number | 'closed'> {
  const answered = once(socket, 'data') as Promise<[Buffer]>;
  const closed = once(socket, 'close').then(() => 'closed' as const);
  const authorization = token === '' ? '' : `Authorization: Bearer ${token}\r\n`;
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n${authorization}\r\n`);
  const first = await Promise.race([answered, closed]);
  return first === 'closed' ? first : Number(first[0].toString().split(' ')[1]);
}

test('strangers of one address take the places of the oldest of them, and of nobody with a token', async (t) => {
  const { open } = await stage(t);
  const known = await open();
  assert.equal(await ask(known, '/viewers', 'right'), 200);
  const strangers: Socket[] = [];
  for (let i = 0; i < 20; i++) {
    const stranger = await open();
    strangers.push(stranger);
    assert.equal(await ask(stranger, '/anybody'), 200);
  }
  await until('all but the last two are closed', () => strangers.filter(({ closed }) => closed).length === 18);
  assert.deepEqual(
    strangers.slice(-2).map(({ closed }) => closed),
    [false, false],
  );
  assert.equal(await ask(known, '/viewers', 'right'), 200);
});

test('a wrong token makes nobody known', async (t) => {
  const { open } = await stage(t);
  const guessing: Socket[] = [];
  for (let i = 0; i < 3; i++) {
    const socket = await open();
    guessing.push(socket);
    assert.equal(await ask(socket, '/viewers', 'wrong'), 401);
  }
  await until('the first was closed', () => guessing[0]?.closed);
});

test('the oldest stranger goes in the middle of its request, and the newest gets its place', async (t) => {
  const { open, app } = await stage(t);
  const busy = [await open(), await open()];
  for (const socket of busy) {
    const asked = once(app.server, 'request');
    socket.write('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n');
    await asked;
  }
  assert.equal(await ask(await open(), '/anybody'), 200);
  await until('the oldest is closed', () => busy[0]?.closed);
  assert.equal(busy[1]?.closed, false);
});

test('strangers of many addresses whose requests never end shut out nobody with a token', async (t) => {
  const { open, app } = await stage(t);
  const known = await open();
  assert.equal(await ask(known, '/viewers', 'right'), 200);
  const flood: Socket[] = [];
  for (let i = 0; i < 24; i++) {
    const socket = await open(`127.0.0.${2 + (i % 6)}`);
    flood.push(socket);
    const asked = once(app.server, 'request');
    socket.write('POST /anybody HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{');
    await asked;
  }
  assert.ok(app.connections.size <= 8);
  assert.equal(await ask(await open('127.0.0.100'), '/viewers', 'other'), 200);
  assert.equal(await ask(known, '/viewers', 'right'), 200);
  assert.ok(flood.some(({ closed }) => !closed));
});

test('a connection from where a right token came outlasts those of all other strangers', async (t) => {
  const { open } = await stage(t);
  assert.equal(await ask(await open('127.0.0.50'), '/viewers', 'right'), 200);
  const second = await open('127.0.0.50');
  // Until its first request has arrived, it is a stranger as well.
  for (let i = 0; i < 24; i++) {
    const socket = await open(`127.0.0.${2 + (i % 6)}`);
    assert.equal(await ask(socket, '/anybody'), 200);
  }
  assert.equal(await ask(second, '/viewers', 'right'), 200);
});

test('a stranger whose password is about to be checked keeps the connection until it is', async (t) => {
  const { open, app } = await stage(t);
  const waiting = await open('127.0.0.50');
  const asked = once(app.server, 'request') as Promise<[IncomingMessage]>;
  waiting.write('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n');
  const letGo = app.connections.keep((await asked)[0].socket);
  const flood = async (): Promise<void> => {
    for (let i = 0; i < 24; i++) {
      const socket = await open(`127.0.0.${2 + (i % 6)}`);
      const begun = once(app.server, 'request');
      socket.write('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n');
      await begun;
    }
  };
  await flood();
  assert.equal(waiting.closed, false);
  letGo();
  await flood();
  await until('then it goes as the others', () => waiting.closed);
});

test('viewers leave the last tenth of the places to operators', async (t) => {
  const { open, app } = await stage(t);
  const watch = async (name: string): Promise<Socket> => {
    const socket = await open();
    const asked = once(app.server, 'request');
    socket.write(`GET /slow-viewers HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${name}\r\n\r\n`);
    await asked;
    return socket;
  };
  for (const name of ['right', 'right', 'other', 'other', 'third', 'third', 'fourth']) await watch(name);
  assert.equal(await ask(await open(), '/viewers', 'fourth'), 429);
  assert.equal(await ask(await open(), '/viewers', 'guard'), 200);
});

test('a stranger whose body does not come in time is told so, and goes; a caller with a token has longer', async (t) => {
  const { open } = await stage(t, { timeouts: { ...TIMEOUTS, strangerBodyMs: 200 } });
  const head = 'HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n';
  const stranger = await open();
  const caller = await open();
  caller.write(`POST /viewers ${head}Authorization: Bearer right\r\n\r\n{`);
  stranger.write(`POST /anybody ${head}\r\n{`);
  const [refusal] = (await once(stranger, 'data')) as [Buffer];
  assert.match(String(refusal), /^HTTP\/1.1 408 .*"code":"request-timeout"/s);
  await once(stranger, 'close');
  const answered = once(caller, 'data') as Promise<[Buffer]>;
  caller.write('}');
  assert.match(String((await answered)[0]), /^HTTP\/1.1 200 /);
});

test('a token has a bound of its own: its idle connections make space for its new ones', async (t) => {
  const { open } = await stage(t);
  const sockets: Socket[] = [];
  for (let i = 0; i < 5; i++) {
    const socket = await open();
    sockets.push(socket);
    assert.equal(await ask(socket, '/viewers', 'right'), 200);
  }
  await until('all but two are closed', () => sockets.filter(({ closed }) => closed).length === 3);
  assert.equal(await ask(await open(), '/viewers', 'other'), 200);
  assert.equal(await ask(sockets.at(-1) as Socket, '/viewers', 'right'), 200);
});

test('connections of a proxy are those of many: no bound for its address', async (t) => {
  const { open, app } = await stage(t, { trustedProxies: ['127.0.0.0/8'] });
  for (let i = 0; i < 8; i++) assert.equal(await ask(await open(), '/anybody'), 200);
  assert.equal(app.connections.size, 8);
  assert.equal(await ask(await open(), '/anybody'), 200);
  await until('the oldest made space', () => app.connections.size === 8);
});

for (const tls of [false, true]) {
  test(`closed connections leave nothing, and silent ones are closed in time${tls ? ', before the TLS handshake too' : ''}`, async (t) => {
    const { cert, key } = selfSignedCertificate('a');
    const { app, open } = await stage(t, {
      ...(tls ? { tls: { certificate: cert, key } } : {}),
      timeouts: { ...TIMEOUTS, requestMs: 300, headersMs: 300, handshakeMs: 300, checkMs: 50 },
    });
    const silent = [await open(), await open()];
    // The client goes away by itself after the time limit; a place that it kept would never be free again.
    silent[0]?.pause();
    await until('the server has let go of both', () => app.connections.size === 0);
    const count = await new Promise((resolve) => app.server.getConnections((_, open) => resolve(open)));
    assert.equal(count, 0);
    const flood = await Promise.all(Array.from({ length: 30 }, () => open()));
    await until('the bound holds', () => flood.filter(({ closed }) => closed).length >= 28);
  });
}
