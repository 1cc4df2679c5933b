import assert from 'node:assert/strict';
import { createServer, request, type ServerResponse } from 'node:http';
import { mkdtempSync, rmSync, writeFileSync, mkdirSync, truncateSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { systemClock } from '../../base/clock.ts';
import { MemoryBudget, type MemoryAccount } from '../../base/memory-budget.ts';
import { until } from '../../test/support/until.ts';
import { parsePath, type SegmentName } from '../archive/disk/names.ts';
import { ArchiveFiles, type ArchiveFile } from '../footage/archive-file.ts';
import { SendAborted, Sender } from './sender.ts';

const PATH = '2026/01/01/Gate_gate_20260101_120000000.mp4';
const SIZE = 40 * 1024 * 1024;

interface Client {
  readonly received: () => number;
  readonly read: () => void;
  readonly stop: () => void;
}

interface Bench {
  readonly sender: Sender;
  readonly file: ArchiveFile;
  readonly path: string;
  /** Awake now, as far as the event loop was told. */
  readonly awake: () => number;
  readonly outcomes: ('sent' | 'aborted')[];
  /** A client that reads when it is told to. */
  readonly connect: () => Promise<Client>;
}

/** A server that sends one file to everyone. */
async function bench(t: TestContext, memory?: MemoryAccount): Promise<Bench> {
  const root = mkdtempSync(join(tmpdir(), 'sender-'));
  const path = join(root, PATH);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, Buffer.alloc(SIZE, 'footage'));
  const file = await new ArchiveFiles(root).open(parsePath(PATH) as SegmentName);
  assert.ok(file);
  let awake = 0;
  const keepAwake = (): (() => void) => {
    let held = true;
    awake++;
    return () => {
      if (held) awake--;
      held = false;
    };
  };
  const sender = new Sender({ clock: systemClock, memory, keepAwake });
  const outcomes: ('sent' | 'aborted')[] = [];
  const send = async (response: ServerResponse): Promise<void> => {
    try {
      await sender.send(response, file, [{ offset: 0, size: SIZE }]);
      outcomes.push('sent');
      response.end();
    } catch (err) {
      assert.ok(err instanceof SendAborted, String(err));
      outcomes.push('aborted');
      response.destroy();
    }
  };
  const server = createServer((_request, response) => void send(response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await file.close();
    rmSync(root, { recursive: true });
  });
  const { port } = server.address() as AddressInfo;
  return {
    sender,
    file,
    path,
    awake: () => awake,
    outcomes,
    connect: () =>
      new Promise((resolve, reject) => {
        request({ port, agent: false }, (response) => {
          let received = 0;
          response.on('error', () => {});
          response.pause();
          resolve({
            received: () => received,
            read: () => void response.on('data', (chunk: Buffer) => (received += chunk.length)).resume(),
            stop: () => response.socket.destroy(),
          });
        })
          .on('error', reject)
          .end();
      }),
  };
}

const turns = (count: number): Promise<void> =>
  count === 0 ? Promise.resolve() : new Promise<void>((resolve) => setImmediate(resolve)).then(() => turns(count - 1));

test('every byte arrives, and the event loop rests again', async (t) => {
  const { sender, connect, outcomes, awake } = await bench(t);
  const client = await connect();
  client.read();
  while (outcomes.length === 0) await turns(1);
  while (client.received() < SIZE) await turns(1);
  assert.deepEqual([outcomes, sender.bytesSent, sender.active, awake()], [['sent'], SIZE, 0, 0]);
});

test('a client that does not read holds two chunks and no thread, and does not keep the process awake', async (t) => {
  const { connect, outcomes, awake, sender } = await bench(t);
  const stalled = await Promise.all(Array.from({ length: 20 }, connect));
  while (awake() > 0 || sender.bytesSent === 0) await turns(5);
  const waiting = sender.bytesSent;
  // What sockets take, and no more.
  assert.ok(waiting < 20 * 12 * 1024 * 1024, `${waiting} bytes`);
  const client = await connect();
  client.read();
  while (client.received() < SIZE) await turns(1);
  assert.deepEqual(outcomes, ['sent']);
  for (const { stop } of stalled) stop();
  while (outcomes.length < 21) await turns(1);
  assert.deepEqual([sender.active, awake()], [0, 0]);
});

test('clients that read at once get the same', async (t) => {
  const { connect, outcomes } = await bench(t);
  const clients = await Promise.all(Array.from({ length: 30 }, connect));
  for (const { read } of clients) read();
  while (clients.reduce((sum, { received }) => sum + received(), 0) < 15 * SIZE) await turns(1);
  const received = clients.map((client) => client.received()).sort((a, b) => a - b);
  const [least = 0] = received;
  const most = received.at(-1) ?? 0;
  assert.ok(most < 1.5 * least + 4 * 1024 * 1024, `${least} to ${most} bytes`);
  while (outcomes.length < 30) await turns(1);
});

test('a file that is cut off meanwhile ends the connection instead of the body', async (t) => {
  const { connect, outcomes, path, awake } = await bench(t);
  const client = await connect();
  truncateSync(path, SIZE / 2);
  client.read();
  while (outcomes.length === 0) await turns(1);
  assert.deepEqual([outcomes, awake()], [['aborted'], 0]);
  assert.ok(client.received() <= SIZE / 2);
});

/** A client that takes a chunk in so many turns of the event loop, and a file that ends behind `readable` bytes of ten chunks. */
function slowClient(t: TestContext, readable: number, turnsPerChunk: number) {
  const listeners = new Set<number>();
  const response = new Writable({
    highWaterMark: 1,
    write(_chunk, _encoding, done) {
      listeners.add(response.listenerCount('close'));
      let left = turnsPerChunk;
      const wait = (): void => void (left-- > 0 ? setImmediate(wait) : done());
      wait();
    },
  });
  t.after(() => response.destroy());
  const file = {
    readInto: (_buffer: Buffer, at: number, length: number) =>
      Promise.resolve(Math.max(0, Math.min(length, readable - at))),
  } as unknown as ArchiveFile;
  const sender = new Sender({ clock: systemClock });
  const sent = sender.send(response as unknown as ServerResponse, file, [{ offset: 0, size: 10 * 256 * 1024 }]);
  return { sent, listeners, response };
}

test('a read ahead that fails while the client is slow is said to the sender alone', async (t) => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', note);
  t.after(() => process.off('unhandledRejection', note));
  // A rejection that nobody heard is announced a turn after it came to be.
  const { sent } = slowClient(t, 256 * 1024, 10);
  await assert.rejects(sent, SendAborted);
  assert.deepEqual(unhandled, []);
});

test('a response has as many listeners after its last chunk as before its first', async (t) => {
  const { sent, listeners, response } = slowClient(t, Infinity, 1);
  await sent;
  assert.equal(response.listenerCount('close'), 0);
  assert.deepEqual([...listeners], [1]);
});

test('where memory is short nothing is read ahead, clients take turns, and each gets all of its file', async (t) => {
  const chunk = 256 * 1024;
  const memory = new MemoryBudget(Infinity).open('playback', { maxBytes: 2 * chunk });
  const { outcomes, connect } = await bench(t, memory);
  const clients = await Promise.all([1, 2, 3, 4].map(() => connect()));
  assert.ok(memory.usedBytes <= 2 * chunk);
  for (const client of clients) client.read();
  await until('all have got it', () => outcomes.length === 4);
  assert.deepEqual(outcomes, ['sent', 'sent', 'sent', 'sent']);
  assert.equal(memory.usedBytes, 0);
});

test('clients that go away give back what they held', async (t) => {
  const memory = new MemoryBudget(Infinity).open('playback', { maxBytes: 64 * 1024 ** 2 });
  const { outcomes, connect } = await bench(t, memory);
  const clients = await Promise.all([1, 2, 3].map(() => connect()));
  assert.ok(memory.usedBytes > 0);
  for (const client of clients) client.stop();
  await until('all are gone', () => outcomes.length === 3);
  assert.equal(memory.usedBytes, 0);
});
