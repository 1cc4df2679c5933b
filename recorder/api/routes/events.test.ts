// `GET /api/events` over real connections, with a clock that stands still.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { EventReader } from '../../../test/support/event-reader.ts';
import { workspace } from '../../../test/support/workspace.ts';
import { VirtualClock } from '../../../base/clock.ts';
import { silentLog } from '../../../base/log.ts';
import { MemoryBudget, unlimitedMemory, type MemoryAccount } from '../../../base/memory-budget.ts';
import type { TokenConfig } from '../../config/schema.ts';
import { EventStreams } from '../../events/event-stream.ts';
import { EventJournal } from '../../events/journal.ts';
import type { Authenticator } from '../../http/auth.ts';
import { as, build, token } from '../test-support.ts';

interface Node {
  readonly url: string;
  readonly journal: EventJournal;
  readonly streams: EventStreams;
  readonly auth: Authenticator;
  readonly clock: VirtualClock;
  close(): Promise<void>;
}

const GATE = { ...token('viewer', 'gate'), name: 'gate', cameras: ['gate'] };
const TOKENS = [token('viewer'), GATE];

/** A process on `directory`. */
async function start(
  t: TestContext,
  directory: string,
  clock = new VirtualClock(),
  changes: { readonly memory?: MemoryAccount; readonly maxStreams?: number } = {},
): Promise<Node> {
  const { memory = unlimitedMemory('streams'), maxStreams = 10 } = changes;
  const options = { directory, node: 'rack-1', clock, log: silentLog, memory: unlimitedMemory('events') };
  const journal = await EventJournal.open(options);
  const streams = new EventStreams({ clock, memory, maxStreams });
  const { app, auth } = await build(t, {
    auth: { mode: 'token', tokens: TOKENS },
    events: { journal, streams },
    clock,
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const close = async (): Promise<void> => {
    await app.close();
    await journal.close();
  };
  t.after(close);
  return {
    url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/api/events`,
    journal,
    streams,
    auth,
    clock,
    close,
  };
}

const tell = ({ journal }: Node, number: number, cameraId: string | undefined = 'gate'): void =>
  journal.tell({ type: 'job.progress', cameraId, data: { number } });

const numbersOf = ({ events }: EventReader): unknown[] => events.map(({ data }) => data.data['number']);

const numbered = (number: number) => (event: EventReader['events'][number]) => event.data.data['number'] === number;

test('an event is a CloudEvent, sent under its id and type', async (t) => {
  const node = await start(t, workspace(t));
  const reader = await EventReader.open(node.url, as('viewer'));
  await reader.begun();
  tell(node, 1);
  const { id, type, data } = await reader.until(numbered(1));
  assert.equal(type, 'job.progress');
  assert.deepEqual(data, {
    specversion: '1.0',
    id,
    source: '/nodes/rack-1',
    type: 'dev.kube-nvr.job.progress',
    subject: 'gate',
    time: '2026-01-01T12:00:00.000Z',
    datacontenttype: 'application/json',
    data: { camera_id: 'gate', number: 1 },
  });
});

test('a client that was away for an hour, and over restarts of the recorder, misses nothing and gets nothing twice', async (t) => {
  const directory = workspace(t);
  const clock = new VirtualClock();
  let node = await start(t, directory, clock);
  const first = await EventReader.open(node.url, as('viewer'));
  await first.begun();
  tell(node, 1);
  tell(node, 2);
  await first.until(numbered(2));
  await first.leave();
  for (let number = 3; number <= 60; number++) {
    clock.advance(60_000);
    tell(node, number);
    if (number % 20 !== 0) continue;
    // What was told is in the file before anybody reads it.
    const look = await EventReader.open(`${node.url}?last_event_id=0`, as('viewer'));
    await look.until(numbered(number));
    await node.close();
    node = await start(t, directory, clock);
  }
  const second = await EventReader.open(node.url, { ...as('viewer'), 'last-event-id': first.lastEventId });
  tell(node, 61);
  await second.until(numbered(61));
  assert.deepEqual(
    [...numbersOf(first), ...numbersOf(second)],
    Array.from({ length: 61 }, (_, i) => i + 1),
  );
});

test('a client that was away for longer is informed, before what is left', async (t) => {
  const node = await start(t, workspace(t));
  const first = await EventReader.open(node.url, as('viewer'));
  await first.begun();
  tell(node, 1);
  await first.until(numbered(1));
  await first.leave();
  tell(node, 2);
  node.clock.advance(3_600_001);
  tell(node, 3);
  const second = await EventReader.open(node.url, { ...as('viewer'), 'last-event-id': first.lastEventId });
  await second.until(numbered(3));
  assert.deepEqual(
    second.events.map(({ type }) => type),
    ['events.missed', 'job.progress'],
  );
  assert.equal(second.events[0]?.data.data['after'], first.lastEventId);
});

test('a connection shows that it stands, and where it is, without an event', async (t) => {
  const node = await start(t, workspace(t));
  const reader = await EventReader.open(`${node.url}?types=camera.*`, as('viewer'));
  await reader.begun();
  assert.equal(reader.lastEventId, '0');
  tell(node, 1);
  const look = await EventReader.open(`${node.url}?last_event_id=0`, as('viewer'));
  const { id } = await look.until(numbered(1));
  node.clock.advance(15_000);
  // Who comes back from here after an hour has missed nothing that it wants.
  while (reader.lastEventId !== id) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(reader.events, []);
});

test('a token for some cameras gets no event of another; what changes its cameras counts at once', async (t) => {
  const node = await start(t, workspace(t));
  const reader = await EventReader.open(node.url, { authorization: 'Bearer gate' });
  await reader.begun();
  tell(node, 1, 'yard');
  tell(node, 2, 'gate');
  node.journal.tell({ type: 'warning.raised', data: { code: 'disk-exhausted', number: 3 } });
  await reader.until(numbered(3));
  assert.deepEqual(numbersOf(reader), [2, 3]);
  const replace = (tokens: readonly TokenConfig[]): void => node.auth.replaceTokens(tokens);
  replace([token('viewer'), { ...GATE, cameras: ['yard'] }]);
  tell(node, 4, 'gate');
  tell(node, 5, 'yard');
  await reader.until(numbered(5));
  assert.deepEqual(numbersOf(reader), [2, 3, 5]);
  replace([token('viewer')]);
  await reader.ended;
  tell(node, 6, 'yard');
  assert.equal(node.streams.size, 0);
});

test('events about a case go to callers who may see all of its cameras, over a restart too', async (t) => {
  const directory = workspace(t);
  const before = await start(t, directory);
  const cameras = ['gate', 'yard'];
  before.journal.tell({ type: 'job.done', cameraId: 'gate', cameras, data: { number: 1 } });
  tell(before, 2, 'gate');
  await before.close();
  const { url } = await start(t, directory);
  const read = async (headers: Record<string, string>, query = '') => {
    const reader = await EventReader.open(`${url}?seconds=0&last_event_id=0${query}`, headers);
    await reader.ended;
    return reader.events.map(({ data }) => [data.data['number'], data.data['cameras']]);
  };
  assert.deepEqual(await read({ authorization: 'Bearer gate' }), [[2, undefined]]);
  assert.deepEqual(await read(as('viewer')), [
    [1, cameras],
    [2, undefined],
  ]);
  assert.deepEqual(await read(as('viewer'), '&cameras=yard'), [[1, cameras]]);
});

test('a client that asks for some types and cameras gets these, in the order in which they happened', async (t) => {
  const node = await start(t, workspace(t));
  tell(node, 1, 'gate');
  node.journal.tell({ type: 'camera.state', cameraId: 'gate', data: { number: 2 } });
  tell(node, 3, 'yard');
  tell(node, 4, 'gate-2');
  await node.journal.close();
  const read = async (query: string): Promise<unknown[]> => {
    const reader = await EventReader.open(`${node.url}?seconds=0&last_event_id=0&${query}`, as('viewer'));
    await reader.ended;
    return numbersOf(reader);
  };
  assert.deepEqual(await read(''), [1, 2, 3, 4]);
  assert.deepEqual(await read('types=job.*'), [1, 3, 4]);
  assert.deepEqual(await read('cameras=gate*'), [1, 2, 4]);
  assert.deepEqual(await read('types=camera.state,job.done&cameras=gate,yard'), [2]);
});

test('what makes no sense is refused, and the parameter named', async (t) => {
  const { url } = await start(t, workspace(t));
  const ask = async (query: string, headers = {}) => {
    const answer = await fetch(`${url}?${query}`, { headers: { ...as('viewer'), ...headers } });
    assert.equal(answer.status, 400, query);
    return ((await answer.json()) as { detail: string }).detail;
  };
  assert.match(await ask('types=camera.states'), /^types: no event has such a type/);
  assert.match(await ask('types=,'), /^types: expected types of events/);
  assert.match(await ask('seconds=soon'), /^seconds: expected a whole number/);
  assert.match(await ask('last_event_id=x'), /^last_event_id: expected the id of an event/);
  assert.match(await ask('', { 'last-event-id': '-1' }), /^Last-Event-ID: expected the id of an event/);
});

test('HEAD says what GET would answer, and holds nothing', async (t) => {
  const { url, streams } = await start(t, workspace(t));
  const answer = await fetch(url, { method: 'HEAD', headers: as('viewer') });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  assert.equal(streams.size, 0);
});

test('more streams than may be open are refused', async (t) => {
  const { url } = await start(t, workspace(t), undefined, { maxStreams: 1 });
  const first = await EventReader.open(url, as('viewer'));
  const second = await fetch(url, { headers: as('viewer') });
  assert.equal(second.status, 503);
  assert.equal(((await second.json()) as { code: string }).code, 'too-many-event-streams');
  await first.leave();
});

test('a client that reads nothing costs the others nothing, is bounded, and is given up', async (t) => {
  const memory = new MemoryBudget(Infinity).open('streams', { maxBytes: 64 * 1024 });
  const node = await start(t, workspace(t), undefined, { memory });
  const { hostname, port } = new URL(node.url);
  const deaf = connect({ host: hostname, port: Number(port) });
  deaf.on('error', () => {});
  deaf.write(`GET /api/events HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer viewer\r\n\r\n`);
  // The first bytes of the answer: it follows from here on. Then it reads no more.
  await once(deaf, 'readable');
  const gone = once(deaf, 'close');
  const reader = await EventReader.open(node.url, as('viewer'));
  await reader.begun();
  // More than the buffers of the system between the two take.
  const text = 'x'.repeat(10_000);
  const COUNT = 2_000;
  for (let number = 1; number <= COUNT; number++) {
    node.journal.tell({ type: 'job.progress', cameraId: 'gate', data: { number, text } });
    if (number % 200 === 0) await reader.until(numbered(number));
    assert.ok(memory.usedBytes <= 64 * 1024);
  }
  assert.deepEqual(
    numbersOf(reader),
    Array.from({ length: COUNT }, (_, i) => i + 1),
  );
  assert.equal(node.streams.size, 2);
  assert.ok(memory.usedBytes > 0, 'something waits for the one who does not read');
  node.clock.advance(15_000);
  node.clock.advance(30_000);
  deaf.resume();
  await gone;
  await reader.leave();
  while (node.streams.size > 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(memory.usedBytes, 0);
});
