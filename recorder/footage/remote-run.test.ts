import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import type { ByteRange } from './holder.ts';
import { HolderLost } from './remote-file.ts';
import { RemoteRun } from './remote-run.ts';

const BYTES = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 7 + (i >> 9)) % 251));
const END = 90_000;

/** A run from `from` to `END`; `answers` to the requests that are not answered in full. */
function remote(answers: readonly ((range: ByteRange) => Readable)[] = [], from = 0) {
  const clock = new VirtualClock();
  const asked: ByteRange[] = [];
  const bodies: Readable[] = [];
  const whole = ({ from, to }: ByteRange): Readable => {
    const starts = Array.from({ length: Math.ceil((to - from) / 1_000) }, (_, i) => from + 1_000 * i);
    return Readable.from(
      starts.map((at) => BYTES.subarray(at, Math.min(to, at + 1_000))),
      { objectMode: false },
    );
  };
  const run = new RemoteRun(
    async (range) => {
      const body = (answers[asked.length] ?? whole)(range);
      asked.push(range);
      bodies.push(body);
      return body;
    },
    { from, to: END },
    clock,
  );
  const read = async (position: number, length: number): Promise<void> => {
    const buffer = Buffer.alloc(length);
    await run.readInto(buffer, position, length);
    assert.ok(buffer.equals(BYTES.subarray(position, position + length)), `${position}`);
  };
  return { run, clock, asked, bodies, read };
}

test('pieces that follow one another, and the holes between them, are one request, whose answer is read to its end', async () => {
  const { read, asked, bodies } = remote([], 10);
  assert.equal(asked.length, 1, 'before the first piece is read');
  for (const [position, length] of [
    [10, 5_000],
    [5_010, 1],
    [9_000, 30_500],
    [39_500, END - 39_500],
  ] as const) {
    await read(position, length);
  }
  assert.deepEqual(asked, [{ from: 10, to: END }]);
  assert.ok(bodies[0]?.readableEnded);
});

test('an answer that breaks or ends early is lost, and the next read asks for what is missing', async () => {
  const breaking = Readable.from(
    (async function* () {
      yield BYTES.subarray(0, 3_000);
      throw new Error('ECONNRESET');
    })(),
    { objectMode: false },
  );
  const { read, asked } = remote([() => breaking, () => Readable.from([BYTES.subarray(2_000, 2_500)])]);
  await read(0, 2_000);
  await assert.rejects(read(2_000, 2_000), HolderLost);
  await assert.rejects(read(2_000, 2_000), HolderLost);
  await read(2_000, 2_000);
  assert.deepEqual(
    asked.map(({ from }) => from),
    [0, 2_000, 2_000],
  );
});

test('an answer with more bytes than the range is refused', async () => {
  const { read } = remote([({ from, to }) => Readable.from([BYTES.subarray(from, to + 1)])], END - 10);
  await assert.rejects(read(END - 10, 10), HolderLost);
});

test('a holder that sends nothing for ten seconds is lost', async () => {
  const { read, clock } = remote([() => new Readable({ read: () => setImmediate(() => clock.advance(10_000)) })]);
  await assert.rejects(read(0, 10), HolderLost);
});

test('the memory of a piece that was read is returned at once, unless something else lies in it', async () => {
  const own = Buffer.from(BYTES.buffer.slice(BYTES.byteOffset, BYTES.byteOffset + 600));
  const shared = BYTES.subarray(600, 1_000);
  const { read } = remote([() => Readable.from([own, shared])], 0);
  await read(0, 1_000);
  assert.deepEqual([own.length, shared.length], [0, 400]);
});

test('a run that is closed ends its request', async () => {
  const { run, read, bodies } = remote();
  await read(0, 10);
  run.close();
  await once(bodies[0] as Readable, 'close');
});
