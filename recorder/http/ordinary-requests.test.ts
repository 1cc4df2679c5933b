// Requests that clients send as ordinary ones, although they offer another protocol or end their side of the connection.

import assert from 'node:assert/strict';
import { connect, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { silentLog } from '../../base/log.ts';
import { build } from '../api/test-support.ts';
import { buildServer } from './server.ts';

/** Sends `request` on a connection of its own, and returns everything until the connection ends. */
async function exchange(app: FastifyInstance, request: string, { halfClose = false } = {}): Promise<string> {
  const { port } = app.server.address() as AddressInfo;
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
  if (halfClose) socket.end(request);
  else socket.write(request);
  const answer = await text(socket);
  socket.destroy();
  return answer;
}

async function listening(t: TestContext, app: FastifyInstance): Promise<FastifyInstance> {
  t.after(() => app.close());
  await app.listen({ host: '127.0.0.1', port: 0 });
  return app;
}

const head = (...lines: readonly string[]): string => ['Host: 127.0.0.1', ...lines, '', ''].join('\r\n');
const H2C = [
  'Connection: Upgrade, HTTP2-Settings',
  'Upgrade: h2c',
  'HTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA',
];

const servers: readonly [string, (t: TestContext) => Promise<FastifyInstance>][] = [
  ['the API, which has WebSockets', async (t) => (await build(t, { auth: { mode: 'none', tokens: [] } })).app],
  ['a listener without WebSockets', () => Promise.resolve(buildServer({ log: silentLog, maxConnections: 10 }))],
];
for (const [what, make] of servers) {
  test(`${what}: a request that offers HTTP/2 is an ordinary one, also with a body`, async (t) => {
    const app = await make(t);
    app.post('/echo', async (request) => ({ got: request.body }));
    app.get('/hello', async () => ({ hello: true }));
    await listening(t, app);
    const got = await exchange(app, `GET /hello HTTP/1.1\r\n${head(...H2C)}`, { halfClose: true });
    assert.match(got, /^HTTP\/1\.1 200 /);
    const body = '{"a":1}';
    const length = `Content-Length: ${body.length}`;
    const posted = await exchange(
      app,
      `POST /echo HTTP/1.1\r\n${head(...H2C, 'Content-Type: application/json', length)}${body}`,
      { halfClose: true },
    );
    assert.match(posted, /^HTTP\/1\.1 200 [\s\S]*\{"got":\{"a":1\}\}$/);
  });

  test(`${what}: a client that ends its side after the request gets the answer`, async (t) => {
    const app = await make(t);
    const { promise: wait, resolve: go } = Promise.withResolvers<void>();
    app.get('/slow', async () => {
      await wait;
      return { slow: true };
    });
    await listening(t, app);
    app.server.on('connection', (socket) => socket.once('end', go));
    const got = await exchange(app, `GET /slow HTTP/1.1\r\n${head()}`, { halfClose: true });
    assert.match(got, /\{"slow":true\}$/);
  });

  test(`${what}: two Host lines are refused`, async (t) => {
    const app = await listening(t, await make(t));
    const got = await exchange(app, `GET / HTTP/1.1\r\n${head('host: 127.0.0.1', 'Connection: close')}`);
    assert.match(got, /^HTTP\/1\.1 400 [\s\S]*Host: is there twice/);
  });
}
