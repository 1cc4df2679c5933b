// What of a request reaches the other node, what of its answer reaches the caller, and when both end: with a node that the test plays.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { test, type TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { WebSocket } from 'ws';
import { until } from '../../test/support/until.ts';
import { as, build, fakeCluster, token } from '../api/test-support.ts';
import type { PeerAnswer, PeerRequest, PeerSender } from '../peers/peer-requests.ts';
import { installRelay } from './relay.ts';

const auth = { mode: 'token', tokens: [token('viewer'), token('admin')] } as const;

/** The node answers nothing, until its caller gives up. */
const SILENT: Partial<PeerAnswer> = {};

async function stage(t: TestContext, answer: Partial<PeerAnswer> = {}) {
  const requests: PeerRequest[] = [];
  const sockets: { readonly far: Socket; readonly own: Socket }[] = [];
  const peers = {
    request: async (_nodeId: string, request: PeerRequest) => {
      requests.push(request);
      if (answer === SILENT) return new Promise((_, reject) => request.signal?.addEventListener('abort', reject));
      return { status: 200, headers: {}, body: Readable.from(['{}']), ...answer };
    },
    upgrade: async (_nodeId: string, request: PeerRequest) => {
      requests.push(request);
      const [far, own] = await pair(t);
      sockets.push({ far, own });
      const key = String(request.headers?.['sec-websocket-key']);
      return { headers: { 'sec-websocket-accept': acceptOf(key) }, socket: own };
    },
  } as unknown as PeerSender;
  const places = () => [
    { nodeId: 'node-1', url: 'http://one.example' },
    { nodeId: 'node-2', url: 'http://two.example' },
  ];
  const playback = {
    routes: async (at: FastifyInstance) =>
      installRelay(at, {
        nodeId: 'node-1',
        listener: 'playback',
        peers,
        places,
        auth: { vouchedFor: () => undefined, followed: (_caller, location) => location },
      }),
  };
  const { app } = await build(t, { auth, cluster: fakeCluster('node-1', { places }), peers, playback });
  return { app, requests, sockets };
}

/** The two ends of a connection; the first one is that of the program on the other node. */
async function pair(t: TestContext): Promise<[Socket, Socket]> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const own = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [far] = (await once(server, 'connection')) as [Socket];
  server.close();
  t.after(() => far.destroy());
  t.after(() => own.destroy());
  return [far.on('error', () => {}).resume(), own];
}

/** RFC 6455 §4.2.2. */
const acceptOf = (key: string): string =>
  createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');

const url = '/node/node-2/api/cameras?a=b';

test('a request reaches the node with a statement of who its caller is, and without what is of one connection', async (t) => {
  const { app, requests } = await stage(t);
  const headers = {
    ...as('viewer'),
    host: 'nvr.example',
    accept: 'application/json',
    range: 'bytes=0-1',
    connection: 'keep-alive, x-hop',
    'x-hop': '1',
    te: 'trailers',
    expect: '100-continue',
    'proxy-authorization': 'Basic x',
  };
  assert.equal((await app.inject({ url, headers })).statusCode, 200);
  const [request] = requests;
  assert.deepEqual([request?.method, request?.path, request?.listener], ['GET', '/api/cameras?a=b', 'api']);
  const of = { token: token('viewer').sha256 };
  const vouched = { name: 'viewer', cameras: ['*'], of, session: undefined };
  // The credential is for a node that cannot be asked as a member.
  assert.deepEqual(request?.caller, { kind: 'itself', credential: 'Bearer viewer', vouched });
  const { 'x-request-id': id, 'user-agent': _, ...passed } = request?.headers ?? {};
  assert.match(String(id), /^[\w-]{8,}$/);
  assert.deepEqual(passed, { accept: 'application/json', range: 'bytes=0-1', 'x-forwarded-host': 'nvr.example' });
});

test('a caller cannot state to the other node that it is somebody else', async (t) => {
  const { app, requests } = await stage(t);
  const statement = Buffer.from(JSON.stringify({ name: 'root', cameras: ['*'] })).toString('base64url');
  await app.inject({ url, headers: { ...as('viewer'), 'kube-nvr-caller': statement } });
  for (const { headers = {} } of requests) assert.equal(headers['kube-nvr-caller'], undefined);
  assert.equal(requests.length, 1);
});

test('headers about a body that a GET does not have are not passed on', async (t) => {
  const { app, requests } = await stage(t);
  await app.inject({ url, headers: { ...as('viewer'), 'content-type': 'text/plain', 'content-language': 'de' } });
  const names = Object.keys(requests[0]?.headers ?? {});
  assert.deepEqual(
    names.filter((name) => name.startsWith('content-')),
    [],
  );
});

test('playback is passed on for reading only: a change or a WebSocket is refused, and reaches no node', async (t) => {
  const { app, requests } = await stage(t);
  const playback = '/playback/node/node-2/list/gate';
  const upgrade = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
  for (const [method, headers, status] of [
    ['POST', {}, 405],
    ['DELETE', {}, 405],
    ['GET', upgrade, 404],
  ] as const) {
    const answer = await app.inject({ url: playback, method, headers: { ...as('admin'), ...headers } });
    assert.equal(answer.statusCode, status, `${method} ${answer.body}`);
  }
  assert.deepEqual(requests, []);
  assert.equal((await app.inject({ url: playback, headers: as('viewer') })).statusCode, 200);
  assert.deepEqual(
    requests.map(({ listener, path }) => [listener, path]),
    [['playback', '/list/gate']],
  );
});

test('an address without a path of a node says what it should be', async (t) => {
  const { app, requests } = await stage(t);
  for (const path of ['/node/node-2//evil.example/x', '/node//api/cameras']) {
    const answer = await app.inject({ url: path, headers: as('viewer') });
    assert.equal(answer.statusCode, 404, path);
    assert.match(answer.json<{ detail: string }>().detail, /\/node\/\{node_id\}\/ and a path/, path);
  }
  assert.deepEqual(requests, []);
});

test('what another node passed on is not passed on again', async (t) => {
  const { app, requests } = await stage(t);
  const answer = await app.inject({ url, headers: { ...as('viewer'), 'kube-nvr-relayed-by': 'node-3' } });
  assert.equal(answer.statusCode, 404);
  assert.deepEqual(requests, []);
});

test('an answer cannot act in the origin of this node: it sets no cookies, allows no pages, and has no scripts', async (t) => {
  const { app } = await stage(t, {
    headers: {
      'content-type': 'text/html',
      etag: '"1"',
      'set-cookie': ['kube_nvr_session=stolen'],
      'access-control-allow-origin': '*',
      'access-control-allow-credentials': 'true',
      'strict-transport-security': 'max-age=1',
      'alt-svc': 'h2=":443"',
      'content-security-policy': "script-src 'unsafe-inline'",
      connection: 'x-hop',
      'x-hop': '1',
    },
    body: Readable.from(['<script>']),
  });
  const { headers, body } = await app.inject({ url, headers: as('viewer') });
  assert.equal(body, '<script>');
  assert.equal(headers['content-type'], 'application/octet-stream');
  assert.equal(headers.etag, '"1"');
  assert.equal(headers['content-security-policy'], "default-src 'none'; sandbox");
  const dropped = ['set-cookie', 'access-control-allow-origin', 'access-control-allow-credentials', 'alt-svc', 'x-hop'];
  for (const name of [...dropped, 'strict-transport-security']) assert.equal(headers[name], undefined, name);
});

test('a playlist has the token of its caller again, which the node did not get, however the playlist arrives', async (t) => {
  const text = 'a.mp4?access_token=not-passed-on\n#EXT-X-MAP:URI="b?access_token=not-passed-on"\naccess_token=not';
  const pieces = text.split('').map((letter) => Buffer.from(letter));
  for (const body of [Readable.from([Buffer.from(text)]), Readable.from(pieces, { objectMode: false })]) {
    const { app } = await stage(t, {
      headers: { 'content-type': 'application/vnd.apple.mpegurl', 'content-length': String(text.length) },
      body,
    });
    const answer = await app.inject({ url: '/node/node-2/playback/hls/gate/index.m3u8?access_token=viewer' });
    assert.equal(answer.body, text.replaceAll('access_token=not-passed-on', 'access_token=viewer'));
    assert.equal(answer.headers['content-length'], undefined);
  }
});

/** A place to which the node redirects, and that to which the caller is. */
const REDIRECTS = [
  ['/api/cameras/gate', '/node/node-2/api/cameras/gate'],
  ['http://two.example/api/x?y=z', '/node/node-2/api/x?y=z'],
  ['http://one.example/api/x', '/api/x'],
  ['http://two.example.evil/api', 'http://two.example.evil/api'],
  ['//evil.example/x', '//evil.example/x'],
] as const;

for (const [location, seen] of REDIRECTS) {
  test(`a redirect of the node to ${location} leads the caller to ${seen}`, async (t) => {
    const { app } = await stage(t, { status: 307, headers: { location } });
    const answer = await app.inject({ url, headers: as('viewer') });
    assert.deepEqual([answer.statusCode, answer.headers.location], [307, seen]);
  });
}

test('when the caller leaves, the request to the other node ends', async (t) => {
  const body = new PassThrough();
  body.write('the beginning');
  const { app, requests } = await stage(t, { body });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const leaving = new AbortController();
  const answer = await fetch(`http://127.0.0.1:${port}${url}`, { headers: as('viewer'), signal: leaving.signal });
  assert.equal(requests[0]?.signal?.aborted, false);
  leaving.abort();
  await assert.rejects(answer.text());
  await until('the request is ended', () => requests[0]?.signal?.aborted === true);
  await until('the answer is given back', () => body.destroyed);
});

test('a caller that leaves before the node answers is no failure of this node', async (t) => {
  const { app, requests } = await stage(t, SILENT);
  const failures: unknown[] = [];
  app.addHook('onError', async (_request, _reply, error) => void failures.push(error));
  const handled = new Promise<void>((resolve) => {
    app.server.once('request', (_request, response) => response.once('close', resolve));
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const leaving = new AbortController();
  const asked = fetch(`http://127.0.0.1:${port}${url}`, { headers: as('viewer'), signal: leaving.signal });
  await until('the node is asked', () => requests.length === 1);
  leaving.abort();
  await assert.rejects(asked);
  await handled;
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(failures, []);
});

for (const [who, end] of [
  ['the caller', (caller: WebSocket) => caller.terminate()],
  ['the node', (_: WebSocket, far: Socket) => far.destroy()],
  ['the connection to the node', (_: WebSocket, __: Socket, own: Socket) => own.destroy()],
  [
    'the connection to the node, with an error,',
    (_: WebSocket, __: Socket, own: Socket) => own.destroy(new Error('broken')),
  ],
] as const) {
  test(`a live stream that ${who} ends is closed on both sides`, async (t) => {
    const { app, sockets } = await stage(t);
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    const caller = new WebSocket(`ws://127.0.0.1:${port}/node/node-2/websocket/gate?access_token=viewer`);
    t.after(() => caller.terminate());
    caller.on('error', () => {});
    await once(caller, 'open');
    const { far, own } = sockets[0] as (typeof sockets)[0];
    // A text frame of one byte, unmasked as servers send them (RFC 6455 §5.2).
    far.write(Buffer.from([0x81, 1, 0x61]));
    assert.equal(String((await once(caller, 'message'))[0]), 'a');
    end(caller, far, own);
    await until('the connection to the node is closed', () => own.destroyed);
    await until('the connection of the caller is closed', () => caller.readyState === WebSocket.CLOSED);
  });
}
