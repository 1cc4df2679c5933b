import assert from 'node:assert/strict';
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { VirtualClock } from '../../base/clock.ts';
import { systemError, temporaryDirectory, TestFileSystem, TestLog } from '../archive/test-support.ts';
import { filenameOf, formatLine, parseLine, type RowChange } from './row.ts';
import { RowQueue } from './row-queue.ts';
import { PATIENCE_MS } from '../../test/support/until.ts';

const row = (n: number): RowChange => ({
  kind: 'add',
  row: {
    filename: `2026/01/02/Gate_gate_20260102_${String(n).padStart(9, '0')}.mp4`,
    cameraId: 'gate',
    sequence: n,
    runId: '00000000000000aa',
    startMs: n,
    endMs: n + 1000,
    sizeBytes: 1,
    mtimeMs: n,
    codecs: [{ kind: 'video', codec: 'avc1.42c00a', width: 1, height: 1 }],
    gapBeforeMs: 0,
    lostPackets: 0,
  },
});
const removal = (n: number): RowChange => ({ kind: 'remove', filename: `${n}`, cameraId: 'gate' });

interface Stage {
  readonly directory: string;
  readonly fs: TestFileSystem;
  readonly clock: VirtualClock;
  readonly log: TestLog;
  readonly open: (maxFileBytes?: number) => Promise<RowQueue>;
}

function stage(directory: string): Stage {
  const fs = new TestFileSystem(directory);
  const clock = new VirtualClock();
  const log = new TestLog();
  return {
    directory,
    fs,
    clock,
    log,
    open: async (maxFileBytes) => {
      const options = { directory: join(directory, 'work/rows'), fs, clock, log };
      const queue = new RowQueue(maxFileBytes === undefined ? options : { ...options, maxFileBytes });
      await queue.open();
      return queue;
    },
  };
}

/** Applies everything, a few changes at a time, as the database does. */
async function drain(queue: RowQueue, atOnce = 3): Promise<RowChange[]> {
  const taken: RowChange[] = [];
  while (queue.length > 0) {
    await queue.filled(AbortSignal.timeout(PATIENCE_MS));
    const batch = queue.peek(atOnce);
    assert.ok(batch.length > 0, 'what is counted can be taken');
    taken.push(...batch.map(({ change }) => change));
    queue.applied(batch);
  }
  return taken;
}

test('changes that were not applied are there after a restart, in their order', async (t) => {
  const { open } = stage(temporaryDirectory(t));
  const queue = await open();
  const changes = [row(1), row(2), removal(1), row(3)];
  for (const change of changes) queue.push(change);
  await queue.settled();
  queue.applied(queue.peek(1));
  // The process dies here: nothing is closed.
  const again = await open();
  // What was applied just before may be returned again; applying it again changes nothing.
  assert.deepEqual(await drain(again), changes);
  await again.close();
});

test('a change is on the disk, and synced, when the queue says that it is settled', async (t) => {
  const { open, fs, directory } = stage(temporaryDirectory(t));
  const queue = await open();
  queue.push(row(1));
  await queue.settled();
  const names = fs.operations.map(({ name }) => name);
  assert.ok(names.lastIndexOf('syncData') > names.lastIndexOf('write'));
  assert.ok(names.lastIndexOf('syncDirectory') > names.lastIndexOf('create'));
  const [file = ''] = readdirSync(join(directory, 'work/rows'));
  assert.equal(readFileSync(join(directory, 'work/rows', file), 'utf8'), formatLine(row(1)));
});

test('a line torn by a crash or spoilt by the disk costs only itself', async (t) => {
  const { open, directory } = stage(temporaryDirectory(t));
  const queue = await open();
  for (const n of [1, 2, 3]) queue.push(row(n));
  await queue.settled();
  const [name = ''] = readdirSync(join(directory, 'work/rows'));
  const file = join(directory, 'work/rows', name);
  const lines = readFileSync(file, 'utf8').split('\n');
  lines[1] = (lines[1] as string).replace('"sequence":2', '"sequence":7');
  writeFileSync(file, lines.join('\n'));
  appendFileSync(file, formatLine(row(4)).slice(0, -5));
  assert.deepEqual(await drain(await open()), [row(1), row(3)]);
});

test('weeks without the database cost no memory: what is between the oldest and the newest waits on the disk', async (t) => {
  const { open, directory } = stage(temporaryDirectory(t));
  const queue = await open(2_000);
  const changes = Array.from({ length: 100 }, (_, n) => row(n));
  for (const change of changes) {
    queue.push(change);
    await queue.settled();
  }
  assert.equal(queue.length, 100);
  assert.equal(queue.pending(), undefined, 'not all of them are in memory');
  assert.ok(queue.peek(1_000).length < 20);
  assert.ok(readdirSync(join(directory, 'work/rows')).length > 5);
  assert.deepEqual(await drain(queue), changes);
  assert.deepEqual(queue.pending(), []);
  await queue.close();
  assert.deepEqual(readdirSync(join(directory, 'work/rows')), [], 'nothing is left of what was applied');
});

test('a disk that refuses holds up nothing: rows go to the database from memory, and to the disk when it works', async (t) => {
  const { open, fs, clock, log } = stage(temporaryDirectory(t));
  const queue = await open();
  let full = true;
  fs.before = ({ name }) => {
    if (full && name === 'write') throw systemError('ENOSPC');
  };
  for (const n of [1, 2, 3]) queue.push(row(n));
  await queue.settled();
  assert.deepEqual(
    queue.peek(1).map(({ change }) => change),
    [row(1)],
  );
  queue.applied(queue.peek(1));
  assert.deepEqual(queue.pending(), [row(2), row(3)]);
  assert.equal(log.lines.filter(({ level }) => level === 'warn').length, 1);
  full = false;
  clock.advance(5_000);
  await fs.idle();
  assert.deepEqual(await drain(await open()), [row(2), row(3)]);
});

test('a queue that cannot even be opened takes changes, and is opened when the disk works', async (t) => {
  const { open, fs, clock } = stage(temporaryDirectory(t));
  fs.before = ({ name }) => {
    if (name === 'makeDirectory') throw systemError('EROFS');
  };
  const queue = await open();
  queue.push(row(1));
  assert.equal(queue.length, 1);
  assert.deepEqual(queue.peek(1), [], 'older ones may be on the disk');
  fs.before = () => {};
  clock.advance(5_000);
  await fs.idle();
  assert.deepEqual(await drain(queue), [row(1)]);
});

test('a change waits no longer than the next one that is pushed', async (t) => {
  const { open } = stage(temporaryDirectory(t));
  const queue = await open();
  const filled = queue.filled(AbortSignal.timeout(PATIENCE_MS));
  queue.push(row(1));
  await filled;
  assert.equal(queue.peek(10).length, 1);
  const stop = new AbortController();
  queue.applied(queue.peek(1));
  const stopped = queue.filled(stop.signal);
  stop.abort();
  await stopped;
});

test('whatever order of pushes, applications and crashes: nothing is lost, and order is kept', async (t) => {
  const root = temporaryDirectory(t);
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.oneof(
          fc.record({ kind: fc.constant('push' as const), count: fc.integer({ min: 1, max: 30 }) }),
          fc.record({ kind: fc.constant('apply' as const), count: fc.integer({ min: 1, max: 20 }) }),
          fc.record({ kind: fc.constantFrom('crash' as const, 'close' as const), count: fc.constant(0) }),
        ),
        { maxLength: 25 },
      ),
      async (steps) => {
        const { open } = stage(join(root, String(run++)));
        let queue = await open(1_500);
        let pushed = 0;
        // The highest number in the database; a replay starts at or before its successor.
        let applied = -1;
        const apply = (numbers: readonly number[]): void => {
          for (const n of numbers) {
            assert.ok(n <= applied + 1, `${n} came before ${applied + 1}`);
            applied = Math.max(applied, n);
          }
        };
        const take = async (count: number): Promise<void> => {
          if (queue.length === 0) return;
          await queue.filled(AbortSignal.timeout(PATIENCE_MS));
          const batch = queue.peek(count);
          apply(batch.map(({ change }) => (change.kind === 'add' ? change.row.sequence : -1)));
          queue.applied(batch);
        };
        for (const { kind, count } of steps) {
          if (kind === 'push') for (let i = 0; i < count; i++) queue.push(row(pushed++));
          else if (kind === 'apply') await take(count);
          else {
            if (kind === 'close') await queue.close();
            else await queue.settled();
            queue = await open(1_500);
          }
        }
        while (queue.length > 0) await take(7);
        assert.equal(applied, pushed - 1);
        await queue.close();
      },
    ),
    { numRuns: 60 },
  );
});

test('a line of the queue says what was put in, and nothing else is mistaken for one', () => {
  for (const change of [row(5), removal(6)]) assert.deepEqual(parseLine(formatLine(change).trimEnd()), change);
  fc.assert(fc.property(fc.string(), (text) => assert.equal(parseLine(text), undefined)));
});

interface Step {
  readonly kind: 'add' | 'remove' | 'apply' | 'fail' | 'mend' | 'settle' | 'crash';
  readonly count: number;
}
const step = (kind: Step['kind'], count = 0): Step => ({ kind, count });

test('whatever the disk takes and forgets, in the end the database has the last change of each file', async (t) => {
  const root = temporaryDirectory(t);
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.oneof<fc.Arbitrary<Step>[]>(
          fc.record({
            kind: fc.constantFrom('add' as const, 'remove' as const),
            count: fc.integer({ min: 1, max: 9 }),
          }),
          fc.record({ kind: fc.constant('apply' as const), count: fc.integer({ min: 1, max: 20 }) }),
          fc.record({
            kind: fc.constantFrom('fail' as const, 'mend' as const, 'settle' as const, 'crash' as const),
            count: fc.constant(0),
          }),
        ),
        { maxLength: 40 },
      ),
      async (steps: readonly Step[]) => {
        const { open, fs, clock } = stage(join(root, String(run++)));
        let queue = await open(1_500);
        const wanted = new Set<string>();
        const rows = new Set<string>();
        const take = async (count: number): Promise<void> => {
          const batch = queue.peek(count);
          for (const { change } of batch) {
            if (change.kind === 'add') rows.add(filenameOf(change));
            else rows.delete(filenameOf(change));
          }
          queue.applied(batch);
        };
        let failing = false;
        fs.before = ({ name }) => {
          if (failing && (name === 'write' || name === 'create')) throw systemError('EIO');
        };
        const mend = async (): Promise<void> => {
          failing = false;
          // What failed is waiting for its next attempt by now.
          await fs.idle();
          clock.advance(5_000);
          await fs.idle();
          await queue.settled();
        };
        for (const { kind, count } of steps) {
          if (kind === 'add') {
            const change = row(count);
            wanted.add(filenameOf(change));
            queue.push(change);
          } else if (kind === 'remove') {
            const filename = filenameOf(row(count));
            wanted.delete(filename);
            queue.push({ kind: 'remove', filename, cameraId: 'gate' });
          } else if (kind === 'apply') await take(count);
          else if (kind === 'fail') failing = true;
          else if (kind === 'settle') await queue.settled();
          else if (kind === 'mend') await mend();
          else {
            await mend();
            queue = await open(1_500);
          }
        }
        await mend();
        while (queue.length > 0) {
          await queue.filled(AbortSignal.timeout(PATIENCE_MS));
          await take(7);
        }
        assert.deepEqual([...rows].sort(), [...wanted].sort());
        await queue.close();
      },
    ),
    {
      numRuns: 200,
      examples: [
        // Applied before it is written, while the previous change is on the disk.
        [[step('add', 3), step('remove', 3), step('apply', 1), step('apply', 1), step('crash')]],
        // Applied while the previous change is being written to a file that is read later.
        [[step('add', 1), step('crash'), step('add', 1), step('remove', 1), step('apply', 3)]],
      ],
    },
  );
});
