// When a node is left alone after failures, what is sent to it twice, and what becomes of the places of requests.

import assert from 'node:assert/strict';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate as turnOfEvents } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { until } from '../../test/support/until.ts';
import { Members } from '../../test/support/members.ts';
import { buildServer } from '../http/server.ts';
import type { PeerCaller, PeerRequests } from './peer-requests.ts';

const guard: PeerCaller = { kind: 'viewer', name: 'guard', cameras: ['gate'] };

/** An address at which connections are taken, and nothing is answered. */
async function silence(t: TestContext): Promise<string> {
  const server = createServer((socket) => void socket.on('error', () => {}).resume());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return `https://127.0.0.1:${port}`;
}

/** An address at which nobody listens. */
async function nowhere(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `https://127.0.0.1:${port}`;
}

interface Stage {
  readonly requests: PeerRequests;
  readonly clock: VirtualClock;
  /** Of the requests that arrived: their methods. */
  readonly arrived: string[];
  /** Of all requests that arrived: the connections over which they came. */
  readonly connections: Set<Socket>;
  /** The questions that arrived whether node-2 answers. */
  readonly probes: readonly string[];
  /** What node-2 answers at `/film`. */
  readonly film: PassThrough;
  /** Sends a request; `tried`: it was sent to a node that does not answer; `resting`: it was not sent. */
  readonly ask: () => Promise<'answered' | 'tried' | 'resting'>;
  /** Whether node-2 answers from now on. */
  readonly turn: (answers: boolean) => void;
  /** From now on node-2 takes connections and says nothing. */
  readonly quiet: () => Promise<void>;
}

async function stage(t: TestContext): Promise<Stage> {
  const members = await Members.open(t);
  const arrived: string[] = [];
  const api = buildServer({ log: silentLog, maxConnections: 200 });
  const connections = new Set<Socket>();
  const probes: string[] = [];
  api.addHook('onRequest', async ({ raw, url }) => {
    connections.add(raw.socket);
    if (url === '/api/health/live') probes.push(url);
  });
  api.get('/short', async () => 'an answer');
  // The connection breaks, as that of a node that closes an idle connection when a request is on its way.
  api.all('/breaks', (request, reply) => {
    arrived.push(request.method);
    reply.hijack();
    reply.raw.destroy();
  });
  const film = new PassThrough();
  api.get('/film', (_request, reply) => reply.send(film));
  await members.listen('node-2', { api, playback: api });
  const address = members.nodes.get('node-2')?.mutual?.address ?? '';
  const away = await nowhere();
  const clock = new VirtualClock();
  const requests = await members.requestsOf('node-1', { clock });
  const ask = async () => {
    try {
      const { body } = await requests.request('node-2', { listener: 'api', caller: guard, path: '/short' });
      assert.equal(await text(body), 'an answer');
      return 'answered';
    } catch (err) {
      return /did not answer just now/.test((err as Error).message) ? 'resting' : 'tried';
    }
  };
  const turn = (answers: boolean): void => members.place('node-2', answers ? address : away);
  const quiet = async (): Promise<void> => members.place('node-2', await silence(t));
  return { requests, clock, arrived, connections, probes, film, ask, turn, quiet };
}

/** How many seconds after a failure the node is asked again. */
async function restOf({ ask, clock }: Stage): Promise<number> {
  assert.equal(await ask(), 'resting');
  for (let seconds = 1; seconds <= 20; seconds++) {
    clock.advance(999);
    assert.equal(await ask(), 'resting');
    clock.advance(1);
    if ((await ask()) !== 'resting') return seconds;
  }
  throw new Error('it is never asked again');
}

test('a node that does not answer is left alone for 2 s, and at each failure for twice as long, up to 16 s', async (t) => {
  const one = await stage(t);
  one.turn(false);
  assert.equal(await one.ask(), 'tried');
  for (const seconds of [2, 4, 8, 16, 16]) assert.equal(await restOf(one), seconds);
});

test('requests that fail together are one failure', async (t) => {
  const one = await stage(t);
  one.turn(false);
  assert.deepEqual(await Promise.all(Array.from({ length: 8 }, one.ask)), Array(8).fill('tried'));
  assert.equal(await restOf(one), 2);
});

test('after an answer, a failure is the first one again', async (t) => {
  const one = await stage(t);
  one.turn(false);
  await one.ask();
  for (const seconds of [2, 4]) assert.equal(await restOf(one), seconds);
  one.turn(true);
  one.clock.advance(8_000);
  assert.equal(await one.ask(), 'answered');
  one.turn(false);
  assert.equal(await one.ask(), 'tried');
  assert.equal(await restOf(one), 2);
});

test('however many answers were read or thrown away, a node is not busy', async (t) => {
  const { requests, ask } = await stage(t);
  const request = { listener: 'api', caller: guard, path: '/short' } as const;
  for (let i = 0; i < 100; i++) assert.equal(await ask(), 'answered');
  for (let i = 0; i < 100; i++) {
    const { body } = await requests.request('node-2', request);
    body.on('error', () => {}).destroy();
  }
  assert.equal(await ask(), 'answered');
});

test('however often a node is asked whether it answers, it is not busy', async (t) => {
  const { requests, clock } = await stage(t);
  for (let i = 0; i < 100; i++) {
    assert.equal(await requests.answers('node-2'), true);
    clock.advance(2_000);
  }
  const request = { listener: 'api', caller: { kind: 'itself', credential: undefined }, path: '/short' } as const;
  assert.equal(await text((await requests.request('node-2', request)).body), 'an answer');
});

test('nobody waits for a node that was away just now: that it is back is known with the next answer', async (t) => {
  const { requests, clock, turn, quiet } = await stage(t);
  await quiet();
  const first = requests.answers('node-2');
  clock.advance(1_000);
  assert.equal(await first, false);
  for (let i = 0; i < 3; i++) {
    clock.advance(2_000);
    assert.equal(await Promise.race([requests.answers('node-2'), turnOfEvents('it waits')]), false);
  }
  turn(true);
  await until('it is known to be back', async () => {
    clock.advance(2_000);
    return requests.answers('node-2');
  });
  await quiet();
  clock.advance(20_000);
  const late = requests.answers('node-2');
  clock.advance(1_000);
  assert.equal(await late, false);
  turn(true);
  clock.advance(20_000);
  assert.equal(await requests.answers('node-2'), true, 'what was known long ago does not count');
});

test('a node is asked every two seconds whether it answers, however many want to know', async (t) => {
  const { requests, clock, probes } = await stage(t);
  for (let seconds = 0; seconds < 6; seconds++) {
    for (let i = 0; i < 10; i++) assert.equal(await requests.answers('node-2'), true);
    clock.advance(1_000);
  }
  assert.equal(probes.length, 3);
});

test('requests in turn use a connection again, and every connection ends with the sender of the requests', async (t) => {
  const { requests, ask, connections, film } = await stage(t);
  for (let i = 0; i < 20; i++) assert.equal(await ask(), 'answered');
  // A connection may be still busy with the end of the last answer when the next request comes.
  assert.ok(connections.size < 10, `${connections.size} connections`);
  // One that is idle ends by itself after a while: this one is not.
  film.write('the beginning');
  const { body } = await requests.request('node-2', { listener: 'api', caller: guard, path: '/film' });
  body.on('error', () => {});
  await requests.close();
  await until('the connections have ended', () => [...connections].every(({ destroyed }) => destroyed));
});

test('a node that takes longer than the long limit of one request is not left alone', async (t) => {
  const { requests, clock, ask, turn, quiet } = await stage(t);
  await quiet();
  const asked = requests.request('node-2', { listener: 'api', caller: guard, path: '/short', headMs: 60_000 });
  clock.advance(60_000);
  await assert.rejects(asked, /node-2 does not answer/);
  turn(true);
  assert.equal(await ask(), 'answered');
});

test('a node that the cluster does not have does not answer', async (t) => {
  const { requests } = await stage(t);
  assert.equal(await requests.answers('node-9'), false);
});

test('the time limit for an answer is that of its beginning: what has begun may take longer', async (t) => {
  const { requests, clock, film } = await stage(t);
  film.write('a long ');
  const { body } = await requests.request('node-2', { listener: 'api', caller: guard, path: '/film' });
  clock.advance(60_000);
  film.end('film');
  assert.equal(await text(body), 'a long film');
});

test('over a connection that breaks, what only reads is sent once more, and what changes something is not', async (t) => {
  const { requests, arrived, clock } = await stage(t);
  for (const [method, times] of [
    ['GET', 2],
    ['HEAD', 2],
    ['POST', 1],
    ['PUT', 1],
    ['DELETE', 1],
  ] as const) {
    arrived.length = 0;
    const asked = requests.request('node-2', {
      listener: 'api',
      caller: { kind: 'itself', credential: 'Bearer x' },
      path: '/breaks',
      method,
    });
    await assert.rejects(asked, /cannot be reached/);
    assert.deepEqual(arrived, Array(times).fill(method));
    clock.advance(16_000);
  }
});
