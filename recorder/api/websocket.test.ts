// Live streams over real WebSockets.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { connect as connectTo, type AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { WebSocket } from 'ws';
import { silentLog } from '../../base/log.ts';
import { MemoryBudget } from '../../base/memory-budget.ts';
import { LiveLimits } from '../live/limits.ts';
import type { LiveLimitOptions } from '../live/limits.ts';
import { until } from '../../test/support/until.ts';
import { FRAME_TICKS, LiveStream, parseMessage, run, SampleMaker } from '../live/test-support.ts';
import type { TokenReview as Review } from '../cluster/token-reviews.ts';
import { archiveStatus, build, cameraStatus, token, type ApiChanges } from './test-support.ts';

async function setup(t: TestContext, limits: LiveLimitOptions = {}, changes: ApiChanges = {}) {
  const { app, clock, cameras, auth } = await build(t, changes);
  const memory = new MemoryBudget(64 * 1024 ** 2);
  const hub = new LiveStream({ cameraId: 'gate', limits: new LiveLimits(limits, memory), clock, log: silentLog });
  cameras.push({ status: cameraStatus(), archive: archiveStatus(), live: hub });
  cameras.push({
    status: cameraStatus({ id: 'off', name: 'Off', state: 'stopped' }),
    archive: undefined,
    live: undefined,
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const maker = new SampleMaker();
  const send = (frame: number, bytes: number | Buffer = 10, sync = true): void => {
    const sample = maker.make({ dts: frame * FRAME_TICKS, sync }, bytes);
    hub.sample(sample);
    sample.data.slab.release();
  };
  const connect = (path: string, options: { headers?: Record<string, string>; origin?: string } = {}): WebSocket => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/websocket/${path}`, options);
    t.after(() => socket.terminate());
    return socket;
  };
  return { app, hub, memory, clock, send, connect, port, auth };
}

/** Collects messages; `next` waits until there are `count`. */
function inbox(socket: WebSocket): { messages: Buffer[]; until(count: number): Promise<Buffer[]> } {
  const messages: Buffer[] = [];
  socket.on('message', (data: Buffer, isBinary: boolean) => {
    assert.ok(isBinary);
    messages.push(data);
  });
  return {
    messages,
    async until(count) {
      while (messages.length < count) await once(socket, 'message');
      return messages;
    },
  };
}

async function closeOf(socket: WebSocket): Promise<[code: number, reason: string]> {
  const [code, reason] = (await once(socket, 'close')) as [number, Buffer];
  return [code, String(reason)];
}

const basic = { authorization: `Basic ${Buffer.from('me:viewer').toString('base64')}` };

test('a viewer gets the initialization segment, then fragments, all as binary messages', async (t) => {
  const { hub, send, connect } = await setup(t);
  hub.begin(run());
  send(0);
  const socket = connect('gate?access_token=viewer');
  const box = inbox(socket);
  await box.until(2);
  send(1, Buffer.from('frame'), false);
  const kinds = (await box.until(3)).map((message) => parseMessage(message));
  assert.deepEqual(
    kinds.map(({ kind, sync }) => [kind, sync]),
    [
      ['init', false],
      ['video', true],
      ['video', false],
    ],
  );
  assert.equal(String(kinds[2]?.payload), 'frame');
});

test('a token is accepted in the header as well', async (t) => {
  const { hub, connect } = await setup(t);
  hub.begin(run());
  for (const headers of [{ authorization: 'Bearer viewer' }, basic]) {
    await inbox(connect('gate', { headers })).until(1);
  }
});

const refusals: {
  name: string;
  path: string;
  options?: Parameters<Awaited<ReturnType<typeof setup>>['connect']>[1];
  close: [number, string];
}[] = [
  { name: 'no token', path: 'gate', close: [4401, 'a token is needed'] },
  { name: 'a wrong token', path: 'gate?access_token=guess', close: [4401, 'a token is needed'] },
  { name: 'an unknown camera', path: 'nobody?access_token=viewer', close: [4404, 'unknown camera'] },
  { name: 'a camera that is not recorded', path: 'off?access_token=viewer', close: [4503, 'the camera is stopped'] },
  {
    name: 'a page of another origin with credentials that the browser added',
    path: 'gate',
    options: { headers: basic, origin: 'https://elsewhere.example' },
    close: [4403, 'pages of this origin may not watch: name it in cors.origins'],
  },
  {
    name: 'a page of another origin with a token of its own',
    path: 'gate?access_token=viewer',
    options: { origin: 'https://elsewhere.example' },
    close: [4403, 'pages of this origin may not watch: name it in cors.origins'],
  },
];
for (const { name, path, options, close } of refusals) {
  test(`refused with a close code: ${name}`, async (t) => {
    const { hub, connect } = await setup(t);
    hub.begin(run());
    assert.deepEqual(await closeOf(connect(path, options)), close);
    assert.equal(hub.stats.viewers, 0);
  });
}

test('a page of an origin that is named may watch; where every one is, only with a token of its own', async (t) => {
  const origin = 'https://elsewhere.example';
  const named = await setup(t, {}, { origins: [origin] });
  named.hub.begin(run());
  await inbox(named.connect('gate?access_token=viewer', { origin })).until(1);
  await inbox(named.connect('gate', { headers: basic, origin })).until(1);
  const any = await setup(t, {}, { origins: ['*'] });
  any.hub.begin(run());
  await inbox(any.connect('gate?access_token=viewer', { origin })).until(1);
  assert.equal((await closeOf(any.connect('gate', { headers: basic, origin })))[0], 4403);
  assert.equal((await closeOf(any.connect('gate?access_token=viewer', { origin: 'null' })))[0], 4403);
});

test('an address with wrong tokens has to wait; a token that was right from there before passes, and no other', async (t) => {
  const { hub, connect } = await setup(t);
  hub.begin(run());
  await inbox(connect('gate?access_token=viewer')).until(1);
  for (let i = 0; i < 10; i++) assert.equal((await closeOf(connect(`gate?access_token=guess${i}`)))[0], 4401);
  for (const other of ['guess', 'admin']) {
    assert.deepEqual(await closeOf(connect(`gate?access_token=${other}`)), [4429, 'too many wrong tokens']);
  }
  await inbox(connect('gate?access_token=viewer')).until(1);
});

test('a viewer ends with its token, and with the scope that its camera was in; others look on', async (t) => {
  const all = token('viewer', 'all');
  const few = { ...token('viewer', 'few'), cameras: ['ga*'] };
  const { hub, connect, auth } = await setup(t, {}, { auth: { mode: 'token', tokens: [all, few, token('viewer')] } });
  hub.begin(run());
  const [kept, gone, narrowed] = ['all', 'viewer', 'few'].map((text) => connect(`gate?access_token=${text}`));
  for (const socket of [kept, gone, narrowed]) await inbox(socket as WebSocket).until(1);
  const closed = [closeOf(gone as WebSocket), closeOf(narrowed as WebSocket)];
  auth.replaceTokens([all, { ...few, cameras: ['yard'] }]);
  assert.deepEqual(await Promise.all(closed), [
    [4401, 'the token is no longer valid'],
    [4404, 'unknown camera'],
  ]);
  assert.equal(kept?.readyState, WebSocket.OPEN);
  assert.equal(hub.stats.viewers, 1);
});

test('a viewer whose token the API server knows ends with its right, also one whose camera is taken away', async (t) => {
  const reviews = new Map<string, Review>();
  const reviewer = { review: async (text: string): Promise<Review> => reviews.get(text) ?? { kind: 'wrong' } };
  const person = (cameras?: readonly string[]): Review => ({
    kind: 'known',
    name: 'anna',
    role: 'viewer',
    cameras: cameras && new Set(cameras),
  });
  for (const text of ['kept', 'gone', 'powerless']) reviews.set(text, person());
  reviews.set('narrowed', person(['gate']));
  const { hub, clock, connect } = await setup(t, {}, { auth: { mode: 'kubernetes', tokens: [], reviewer } });
  hub.begin(run());
  const sockets = ['kept', 'gone', 'powerless', 'narrowed'].map((text) => connect(`gate?access_token=${text}`));
  for (const socket of sockets) await inbox(socket).until(1);
  const closed = sockets.slice(1).map(closeOf);
  reviews.delete('gone');
  reviews.set('powerless', { ...person(), role: undefined } as Review);
  reviews.set('narrowed', person(['yard']));
  for (let second = 0; second < 30; second++) {
    clock.advance(1_000);
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual(await Promise.all(closed), [
    [4401, 'the token is no longer valid'],
    [4401, 'the token is no longer valid'],
    [4404, 'unknown camera'],
  ]);
  assert.equal(sockets[0]?.readyState, WebSocket.OPEN);
  assert.equal(hub.stats.viewers, 1);
});

test('a viewer that goes while the API server is asked about its token leaves nothing behind', async (t) => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<Review>();
  const reviewer = {
    review: (): Promise<Review> => {
      asked.resolve();
      return answer.promise;
    },
  };
  const { app, hub, connect } = await setup(t, {}, { auth: { mode: 'kubernetes', tokens: [], reviewer } });
  hub.begin(run());
  const socket = connect('gate?access_token=token');
  await Promise.all([asked.promise, once(socket, 'open')]);
  const [served] = app.websocketServer.clients;
  assert.ok(served);
  socket.terminate();
  await once(served, 'close');
  answer.resolve({ kind: 'known', name: 'anna', role: 'viewer', cameras: undefined });
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(hub.stats.viewers, 0);
});

test('while tokens cannot be checked, a viewer has to try again later', async (t) => {
  const reviewer = { review: async (): Promise<Review> => ({ kind: 'unavailable', problem: 'nobody answers' }) };
  const { connect } = await setup(t, {}, { auth: { mode: 'kubernetes', tokens: [], reviewer } });
  assert.deepEqual(await closeOf(connect('gate?access_token=token')), [4503, 'the token cannot be checked now']);
});

test('without tokens only the own page may watch, also behind a proxy that renames the recorder', async (t) => {
  const { hub, connect, port } = await setup(t, {}, { auth: { mode: 'none', tokens: [] } });
  hub.begin(run());
  assert.equal((await closeOf(connect('gate', { origin: 'https://elsewhere.example' })))[0], 4403);
  assert.equal((await closeOf(connect('gate', { origin: 'null' })))[0], 4403);
  await inbox(connect('gate', { origin: `http://127.0.0.1:${port}` })).until(1);
  const headers = { 'x-forwarded-host': 'nvr.example' };
  await inbox(connect('gate', { origin: 'https://nvr.example', headers })).until(1);
  await inbox(connect('gate')).until(1);
});

test('a camera without stream lets its viewers wait, then go', async (t) => {
  const { hub, clock, connect } = await setup(t);
  const socket = connect('gate?access_token=viewer');
  await once(socket, 'open');
  while (hub.stats.viewers === 0) await new Promise((resolve) => setImmediate(resolve));
  const closed = closeOf(socket);
  clock.advance(10_000);
  assert.deepEqual(await closed, [4503, 'the camera is offline']);
});

test('the connection of a viewer with a token is no place of a stranger', async (t) => {
  const { app, hub, connect } = await setup(t);
  const identified = t.mock.method(app.connections, 'identify');
  hub.begin(run());
  await inbox(connect('gate?access_token=viewer')).until(1);
  assert.deepEqual(
    identified.mock.calls.map(({ arguments: [, caller] }) => caller?.name),
    ['viewer'],
  );
});

test('too many viewers are turned away', async (t) => {
  const { hub, connect } = await setup(t, { maxViewersPerCamera: 1 });
  hub.begin(run());
  await inbox(connect('gate?access_token=viewer')).until(1);
  assert.equal((await closeOf(connect('gate?access_token=viewer')))[0], 4429);
});

test('one token takes no place of others who watch the camera, and where no token is required nobody is bounded', async (t) => {
  const limits = { maxViewersPerCaller: 1 };
  const { hub, connect } = await setup(t, limits);
  hub.begin(run());
  await inbox(connect('gate?access_token=viewer')).until(1);
  assert.deepEqual(await closeOf(connect('gate?access_token=viewer')), [4429, 'you have 1 viewers of this camera']);
  await inbox(connect('gate?access_token=operator')).until(1);
  const open = await setup(t, limits, { auth: { mode: 'none', tokens: [] } });
  open.hub.begin(run());
  for (let i = 0; i < 3; i++) await inbox(open.connect('gate')).until(1);
});

test('a stranger who was refused and does not answer the close has no place after a second', async (t) => {
  const { app, clock, port } = await setup(t);
  const socket = connectTo(port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.write(
    'GET /websocket/gate HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  );
  let got = '';
  socket.on('data', (data: Buffer) => (got += data.toString('latin1')));
  await until('it was refused', () => got.includes('a token is needed'));
  assert.equal(app.connections.size, 1);
  clock.advance(1_000);
  await once(socket, 'close');
  await until('its place is free', () => app.connections.size === 0);
});

test('a viewer that leaves is forgotten', async (t) => {
  const { hub, connect } = await setup(t);
  hub.begin(run());
  const socket = connect('gate?access_token=viewer');
  await inbox(socket).until(1);
  assert.equal(hub.stats.viewers, 1);
  socket.close();
  await until('the viewer is forgotten', () => hub.stats.viewers === 0);
});

test('a viewer that does not read holds a bounded amount of memory, and continues at a key frame', async (t) => {
  const MiB = 1024 * 1024;
  const { hub, send, connect } = await setup(t, { maxViewerBytes: 4 * MiB });
  hub.begin(run());
  const slow = connect('gate?access_token=viewer');
  const box = inbox(slow);
  await box.until(1);
  slow.pause();
  const fast = inbox(connect('gate?access_token=viewer'));
  await fast.until(1);
  // 60 MB: more than the sockets of the kernel and the bound together can take.
  for (let frame = 0; frame < 300; frame++) {
    send(frame, 200_000, frame % 25 === 0);
    await fast.until(frame + 2);
  }
  assert.ok(hub.stats.droppedFrames > 100, `${hub.stats.droppedFrames} dropped`);
  slow.resume();
  // Whatever is on its way arrives, and then the stream goes on from a key frame to the end.
  let frame = 300;
  const last = (): boolean => parseMessage(box.messages.at(-1) as Buffer).payload.equals(Buffer.from('last'));
  while (!last()) {
    send(frame++, Buffer.from('last'), frame % 25 === 0);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const seen = box.messages.map(parseMessage).filter(({ kind }) => kind === 'video');
  for (let i = 1; i < seen.length; i++) {
    const [before, now] = [seen[i - 1], seen[i]];
    if (!before || !now || now.decodeTime - before.decodeTime <= FRAME_TICKS) continue;
    assert.equal(now.sync, true, 'after a hole comes a key frame');
  }
});

test('when memory is short, a viewer that reads nothing is disconnected with all that waits for it', async (t) => {
  const { hub, memory, clock, send, connect } = await setup(t, { maxViewerBytes: 32 * 1024 ** 2 });
  const writing = memory.open('writing', { maxBytes: memory.limitBytes });
  hub.begin(run());
  const stuck = connect('gate?access_token=viewer');
  await inbox(stuck).until(1);
  stuck.pause();
  const fast = inbox(connect('gate?access_token=viewer'));
  await fast.until(1);
  // 30 MB in one group of pictures: more than the kernel takes, less than may wait.
  for (let frame = 0; frame < 150; frame++) {
    send(frame, 200_000, frame === 0);
    await fast.until(frame + 2);
  }
  const [viewers] = memory.accounts;
  assert.ok((viewers?.usedBytes ?? 0) > 10e6, 'it waits');
  assert.ok(writing.take(memory.limitBytes - 2e6));
  assert.ok((viewers?.usedBytes ?? 0) < 2e6);
  assert.equal(hub.stats.viewers, 2, 'its connection has not ended yet');
  // It does not read that it was closed.
  clock.advance(5_000);
  await until('it is forgotten', () => hub.stats.viewers === 1);
  assert.equal(viewers?.usedBytes, 0);
  send(150);
  assert.equal(parseMessage((await fast.until(152)).at(-1) as Buffer).kind, 'video', 'another goes on');
});

test('a viewer whose network is gone is found out by its silence', async (t) => {
  const { hub, clock, connect } = await setup(t);
  hub.begin(run());
  const alive = connect('gate?access_token=viewer');
  await inbox(alive).until(1);
  const gone = connect('gate?access_token=viewer');
  await inbox(gone).until(1);
  gone.pause(); // answers no ping
  const pinged = once(alive, 'ping');
  clock.advance(20_000);
  await pinged;
  // The pong arrives before the next ping is due; nothing tells when, but the stream goes on behind it.
  const answered = once(alive, 'pong');
  alive.ping();
  await answered;
  clock.advance(20_000);
  while (hub.stats.viewers > 1) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(alive.readyState, WebSocket.OPEN);
});

test('what a viewer sends is ignored, and too much of it ends the connection', async (t) => {
  const { hub, connect } = await setup(t);
  hub.begin(run());
  const socket = connect('gate?access_token=viewer');
  await inbox(socket).until(1);
  socket.send('hello');
  const closed = closeOf(socket);
  socket.send(Buffer.alloc(2_000));
  await closed;
});

test('an upgrade that is no WebSocket is answered with a problem, too', async (t) => {
  const { port } = await setup(t);
  for (const [key, version, detail] of [
    ['none', '13', /Sec-WebSocket-Key/],
    ['dGhlIHNhbXBsZSBub25jZQ==', '7', /Sec-WebSocket-Version/],
  ] as const) {
    const asked = request({
      port,
      path: '/websocket/gate',
      headers: {
        connection: 'upgrade',
        upgrade: 'websocket',
        'sec-websocket-key': key,
        'sec-websocket-version': version,
      },
    }).end();
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    const { code, detail: told } = (await json(answer)) as { code: string; detail: string };
    assert.deepEqual([answer.statusCode, code], [400, 'malformed-request']);
    assert.equal(answer.headers['content-type'], 'application/problem+json');
    assert.equal(answer.headers['sec-websocket-version'], '13', 'RFC 6455 section 4.4');
    assert.match(told, detail);
  }
});

test('closing the server ends live streams at once', async (t) => {
  const { app, cameras, clock } = await build(t);
  const hub = new LiveStream({ cameraId: 'gate', limits: new LiveLimits(), clock, log: silentLog });
  cameras.push({ status: cameraStatus(), archive: archiveStatus(), live: hub });
  hub.begin(run());
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const socket = new WebSocket(`ws://127.0.0.1:${port}/websocket/gate?access_token=viewer`);
  await inbox(socket).until(1);
  const closed = closeOf(socket);
  hub.close();
  await Promise.all([app.close(), closed]);
});
