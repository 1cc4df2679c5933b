// What a server says to bytes that are no request, or too much of one: over real connections.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { silentLog } from '../../base/log.ts';
import { buildServer, type ServerOptions } from './server.ts';

async function stage(t: TestContext, options: Partial<ServerOptions> = {}) {
  const app = buildServer({ log: silentLog, maxConnections: 100, ...options });
  app.get('/name/:name', async ({ ip, protocol, hostname }) => ({ ip, protocol, hostname }));
  app.post('/body', async ({ body }) => body ?? null);
  app.get('/page/*', async () => 'page');
  await app.listen({ host: '127.0.0.1', port: 0 });
  t.after(() => app.close());
  const open = (): Socket => {
    const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
    t.after(() => socket.destroy());
    // A server that has said all that it will may reset the connection.
    socket.on('error', () => {});
    return socket;
  };
  return { app, open };
}

interface Answer {
  readonly status: number;
  readonly code: string | undefined;
  readonly type: string | undefined;
}

/** Everything that comes until the connection ends, as one answer. */
async function answerTo(socket: Socket, bytes: string): Promise<Answer> {
  let text = '';
  socket.on('data', (data: Buffer) => (text += data.toString('latin1')));
  socket.write(bytes);
  await once(socket, 'close');
  const [head = '', body = ''] = text.split('\r\n\r\n');
  const code = /"code":"([^"]*)"/.exec(body)?.[1];
  const type = /^content-type: ([^;\r]*)/im.exec(head)?.[1];
  return { status: Number(head.split(' ')[1]), code, type };
}

const REQUESTS: readonly { name: string; bytes: string; status: number; code: string }[] = [
  { name: 'no HTTP at all', bytes: '\x16\x03\x01\x02\x00\x01', status: 400, code: 'malformed-request' },
  { name: 'a header without name', bytes: 'GET / HTTP/1.1\r\n: a\r\n\r\n', status: 400, code: 'malformed-request' },
  {
    name: 'two lengths of a body (request smuggling)',
    bytes: 'POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    status: 400,
    code: 'malformed-request',
  },
  {
    name: 'headers of more than 16 KiB',
    bytes: `GET / HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(17_000)}\r\n\r\n`,
    status: 431,
    code: 'headers-too-large',
  },
  {
    name: 'an address of more than 16 KiB',
    bytes: `GET /${'x'.repeat(17_000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
    status: 431,
    code: 'headers-too-large',
  },
  {
    name: 'an expectation that nobody meets',
    bytes: 'GET /page/x HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n',
    status: 417,
    code: 'expectation-failed',
  },
  {
    name: 'a body of more than 64 KiB',
    bytes:
      'POST /body HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 65537\r\nConnection: close\r\n\r\n',
    status: 413,
    code: 'body-too-large',
  },
  {
    name: 'a body of a type that is not understood',
    bytes:
      'POST /body HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx',
    status: 415,
    code: 'unsupported-media-type',
  },
  {
    name: 'no Host',
    bytes: 'GET /name/a HTTP/1.1\r\nConnection: close\r\n\r\n',
    status: 400,
    code: 'malformed-request',
  },
  {
    name: 'a body that is no JSON',
    bytes:
      'POST /body HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1\r\nConnection: close\r\n\r\n{',
    status: 400,
    code: 'invalid-request',
  },
  {
    name: 'a part of the address of more than 1024 characters',
    bytes: `GET /name/${'x'.repeat(1025)} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
    status: 414,
    code: 'url-too-long',
  },
  {
    name: 'an address with a broken escape',
    bytes: 'GET /name/%zz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    status: 400,
    code: 'invalid-request',
  },
  {
    name: 'an address that there is not',
    bytes: 'GET /nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    status: 404,
    code: 'not-found',
  },
  {
    name: 'a method that an address has not',
    bytes: 'DELETE /body HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    status: 405,
    code: 'method-not-allowed',
  },
  {
    name: 'a method that hardly anybody knows',
    bytes: 'PROPFIND /page/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    status: 405,
    code: 'method-not-allowed',
  },
];
for (const { name, bytes, status, code } of REQUESTS) {
  test(`every refusal is a problem with a code: ${name}`, async (t) => {
    const { open } = await stage(t);
    assert.deepEqual(await answerTo(open(), bytes), { status, code, type: 'application/problem+json' });
  });
}

/** A client that sends one byte, and nothing more. */
async function timed(t: TestContext, bytes: string): Promise<Answer> {
  const { open } = await stage(t, {
    timeouts: { headersMs: 200, requestMs: 400, strangerBodyMs: 400, handshakeMs: 200, checkMs: 50 },
  });
  return answerTo(open(), bytes);
}

for (const [name, bytes] of [
  ['nothing', ''],
  ['half of a first line', 'GET /'],
  ['a first line and half of the headers', 'GET / HTTP/1.1\r\nHost: a\r\n'],
  [
    'half of a body',
    'POST /body HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"a',
  ],
] as const) {
  test(`a client that sends ${name} and then nothing gets an answer, and is closed`, async (t) => {
    const answer = await timed(t, bytes);
    assert.deepEqual(answer, { status: 408, code: 'request-timeout', type: 'application/problem+json' });
  });
}

const forwarded = { 'x-forwarded-for': '203.0.113.7', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'nvr.example' };
const seenBy = async (app: FastifyInstance): Promise<unknown> =>
  (await app.inject({ url: '/name/a', headers: { host: 'a', ...forwarded }, remoteAddress: '10.1.2.3' })).json();

test('what a proxy says of its clients is believed of those that are named, and of nobody else', async (t) => {
  const { app } = await stage(t);
  assert.deepEqual(await seenBy(app), { ip: '10.1.2.3', protocol: 'http', hostname: 'a' });
  const behind = await stage(t, { trustedProxies: ['10.1.0.0/16'] });
  assert.deepEqual(await seenBy(behind.app), { ip: '203.0.113.7', protocol: 'https', hostname: 'nvr.example' });
  const another = await stage(t, { trustedProxies: ['10.2.0.0/16'] });
  assert.deepEqual(await seenBy(another.app), { ip: '10.1.2.3', protocol: 'http', hostname: 'a' });
});

test('no answer is mistaken for another type, and no address is told to other sites', async (t) => {
  const { app } = await stage(t);
  for (const url of ['/page/x', '/nothing', '/name/%zz']) {
    const { headers } = await app.inject(url);
    assert.equal(headers['x-content-type-options'], 'nosniff', url);
    assert.equal(headers['referrer-policy'], 'no-referrer', url);
  }
});

test('no answer repeats a token of the address', async (t) => {
  const { app } = await stage(t);
  for (const url of ['/name/%zz', '/%', '/name/a%ff', '/nothing', `/name/${'x'.repeat(2000)}`]) {
    const answer = await app.inject(`${url}?access_token=secret-token`);
    assert.ok(answer.statusCode >= 400, url);
    assert.doesNotMatch(answer.body, /secret-token/, url);
    assert.doesNotMatch(JSON.stringify(answer.headers), /secret-token/, url);
  }
});

test('nothing is kept by caches unless a route says so, and TLS stays TLS', async (t) => {
  const { app } = await stage(t);
  const { headers } = await app.inject('/page/x');
  assert.equal(headers['cache-control'], 'no-store');
  assert.equal(headers['strict-transport-security'], undefined);
  const behind = await stage(t, { trustedProxies: ['127.0.0.1'] });
  const secure = await behind.app.inject({ url: '/page/x', headers: { 'x-forwarded-proto': 'https' } });
  assert.equal(secure.headers['strict-transport-security'], 'max-age=31536000');
});

test('a body that is packed is refused: its bytes would be taken for what they are not', async (t) => {
  const { app } = await stage(t);
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
  const answer = await app.inject({ method: 'POST', url: '/body', headers, payload: '{}' });
  assert.deepEqual([answer.statusCode, answer.json<{ code: string }>().code], [415, 'unsupported-media-type']);
});

test('keys of a body that would change every object are passed over, as other unknown keys are', async (t) => {
  const { app } = await stage(t);
  const payload = '{"id": "gate", "__proto__": {"admin": true}, "constructor": {"prototype": {"admin": true}}}';
  const answer = await app.inject({
    method: 'POST',
    url: '/body',
    headers: { 'content-type': 'application/json' },
    payload,
  });
  assert.equal(answer.statusCode, 200);
  assert.deepEqual(Object.keys(answer.json<object>()), ['id']);
  assert.equal(({} as { admin?: boolean }).admin, undefined);
});
