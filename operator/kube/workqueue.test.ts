import { test } from 'node:test';
import assert from 'node:assert/strict';
import fc from '../../test/support/fast-check.ts';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { ApiError } from './api.ts';
import { LEASE } from './resources.ts';
import { MemoryApi } from './test-support.ts';
import { writesOfLeader } from './writes-of-leader.ts';
import { runWorkers, WorkQueue, type Outcome, type QueueObserver, type RateLimits } from './workqueue.ts';

/** Runs every promise callback that is ready. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const NO_BUCKET: RateLimits = { firstMs: 5, maxMs: 1_000_000, perSecond: 1e9, burst: 1e9 };

function queueOf(limits?: RateLimits): { queue: WorkQueue; clock: VirtualClock } {
  const clock = new VirtualClock();
  return { queue: new WorkQueue({ clock, ...(limits && { limits }) }), clock };
}

test('a key that is added many times waits once', async () => {
  const { queue } = queueOf();
  for (const key of ['a', 'b', 'a', 'a']) queue.add(key);
  assert.equal(queue.depth, 2);
  assert.deepEqual([await queue.take(), await queue.take()], ['a', 'b']);
});

test('a key that a worker has is given to no other, and comes again when it was added meanwhile', async () => {
  const { queue } = queueOf();
  queue.add('a');
  await queue.take();
  queue.add('a');
  queue.add('a');
  assert.equal(queue.depth, 0);
  queue.done('a');
  assert.equal(queue.depth, 1);
  assert.equal(await queue.take(), 'a');
  queue.done('a');
  assert.equal(queue.depth, 0);
});

test('in any order of additions and work, a key has one worker and every addition is followed by a look', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 30 }), fc.nat(3), async (keys, more) => {
      const { queue, clock } = queueOf();
      const working = new Set<string>();
      const unseen = new Set<string>();
      const stop = new AbortController();
      const workers = runWorkers(
        {
          queue,
          clock,
          workers: 1 + more,
          log: silentLog,
          reconcile: async (key) => {
            assert.ok(!working.has(key), `two workers have ${key}`);
            working.add(key);
            unseen.delete(key);
            await settle();
            working.delete(key);
          },
        },
        stop.signal,
      );
      for (const [i, key] of keys.entries()) {
        unseen.add(key);
        queue.add(key);
        if (i % 3 === 0) await settle();
      }
      for (let i = 0; i < 100; i++) await settle();
      assert.deepEqual([...unseen], []);
      stop.abort();
      await workers;
    }),
    { numRuns: 50 },
  );
});

test('a key that fails comes back after 5 ms, doubling up to 1000 s, and success begins again', () => {
  const { queue, clock } = queueOf(NO_BUCKET);
  const delays: number[] = [];
  const delayOf = (): number => {
    queue.retry('a');
    const fromMs = clock.monotonicMs();
    while (queue.depth === 0) clock.advance(2.5);
    void queue.take();
    queue.done('a');
    return clock.monotonicMs() - fromMs;
  };
  for (let i = 0; i < 10; i++) delays.push(delayOf());
  assert.deepEqual(delays, [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560]);
  for (let i = 0; i < 12; i++) delays.push(delayOf());
  assert.deepEqual(delays.slice(-2), [1_000_000, 1_000_000]);
  queue.forget('a');
  assert.equal(delayOf(), 5);
});

test('keys that fail together are let through 10 a second after a burst of 100', () => {
  const { queue, clock } = queueOf();
  for (let i = 0; i < 150; i++) queue.retry(`key-${i}`);
  clock.advance(5);
  assert.equal(queue.depth, 100);
  clock.advance(1_000);
  assert.equal(queue.depth, 110);
  clock.advance(4_000);
  assert.equal(queue.depth, 150);
});

test('a new event does not wait for the back-off of its key', () => {
  const { queue, clock } = queueOf();
  for (let i = 0; i < 15; i++) {
    queue.retry('a');
    clock.advance(1_000_000);
    void queue.take();
    queue.done('a');
  }
  queue.retry('a');
  assert.equal(queue.depth, 0);
  queue.add('a');
  assert.equal(queue.depth, 1);
});

test('of several times for a key the earliest counts, and it comes once', () => {
  const { queue, clock } = queueOf();
  queue.addAfter('a', 1_000);
  queue.addAfter('a', 300);
  queue.addAfter('a', 500);
  clock.advance(299);
  assert.equal(queue.depth, 0);
  clock.advance(1);
  assert.equal(queue.depth, 1);
  void queue.take();
  queue.done('a');
  clock.advance(10_000);
  assert.equal(queue.depth, 0);
});

/** Runs one worker; `outcomes` are the results of its calls of `reconcile`, in order. */
function withWorker(outcomes: (Outcome | Error | undefined)[], limits = NO_BUCKET) {
  const { queue, clock } = queueOf(limits);
  const looks: number[] = [];
  const counted: string[] = [];
  const stop = new AbortController();
  const finished = runWorkers(
    {
      queue,
      clock,
      workers: 1,
      log: silentLog,
      observe: (outcome) => counted.push(outcome),
      reconcile: async () => {
        looks.push(clock.monotonicMs());
        const outcome = outcomes.shift();
        if (outcome instanceof Error) throw outcome;
        return outcome;
      },
    },
    stop.signal,
  );
  return { queue, clock, looks, counted, stop, finished };
}

test('a server that asks us to wait is not asked before', async () => {
  const busy = new ApiError(429, 'TooManyRequests', 'slow down', { retryAfterMs: 3_000 });
  const { queue, clock, looks, counted, stop, finished } = withWorker([busy, undefined]);
  queue.add('a');
  await settle();
  clock.advance(2_999);
  await settle();
  assert.equal(looks.length, 1);
  clock.advance(1);
  await settle();
  assert.equal(looks.length, 2);
  assert.deepEqual(counted, ['error', 'success']);
  stop.abort();
  await finished;
});

test('after a success the next failure is the first again', async () => {
  const failed = new Error('no');
  const { queue, clock, looks, stop, finished } = withWorker([failed, failed, failed, undefined, failed, undefined]);
  const look = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await settle();
  };
  queue.add('a');
  await settle();
  for (const ms of [5, 10, 20]) await look(ms);
  assert.equal(looks.length, 4);
  queue.add('a');
  await settle();
  await look(5);
  assert.equal(looks.length, 6);
  stop.abort();
  await finished;
});

test('a look may ask for another although nothing failed', async () => {
  const { queue, clock, looks, stop, finished } = withWorker([{ recheckMs: 700 }, undefined]);
  queue.add('a');
  await settle();
  clock.advance(700);
  await settle();
  clock.advance(100_000);
  await settle();
  assert.equal(looks.length, 2);
  stop.abort();
  await finished;
});

test('a stop takes nothing more, and waits for what workers have', async () => {
  const { queue, clock } = queueOf();
  const stop = new AbortController();
  let release: (() => void) | undefined;
  const looks: string[] = [];
  const finished = runWorkers(
    {
      queue,
      clock,
      workers: 1,
      log: silentLog,
      reconcile: async (key) => {
        looks.push(key);
        await new Promise<void>((resolve) => (release = resolve));
      },
    },
    stop.signal,
    new AbortController().signal,
  );
  queue.add('a');
  queue.add('b');
  await settle();
  stop.abort();
  let isFinished = false;
  void finished.then(() => (isFinished = true));
  await settle();
  assert.equal(isFinished, false);
  release?.();
  await finished;
  assert.deepEqual(looks, ['a']);
});

test('a write that is refused because another replica may lead ends the work: no other key is tried, and nothing is logged', async () => {
  const { queue, clock } = queueOf();
  const warned: string[] = [];
  const looks: string[] = [];
  for (let i = 0; i < 10_000; i++) queue.add(`camera-${i}`);
  const guarded = writesOfLeader(new MemoryApi(), () => false);
  const stop = new AbortController();
  const log = { ...silentLog, warn: (_: object, message: string) => void warned.push(message) };
  const reconcile = async (key: string): Promise<void> => {
    looks.push(key);
    await guarded.create(LEASE, { metadata: { namespace: 'home', name: key } });
  };
  let isOver = false;
  const working = runWorkers({ queue, clock, workers: 8, log, reconcile }, stop.signal).then(() => (isOver = true));
  await settle();
  assert.ok(isOver, 'the workers go on');
  stop.abort();
  await working;
  assert.ok(looks.length <= 8, `${looks.length} keys`);
  assert.deepEqual(warned, []);
});

test('depth, additions, retries, waiting and working times are reported', async () => {
  const clock = new VirtualClock();
  const told: string[] = [];
  const observer: QueueObserver = {
    depth: (count) => told.push(`depth ${count}`),
    added: () => told.push('added'),
    retried: () => told.push('retried'),
    taken: (waitedMs) => told.push(`waited ${waitedMs}`),
    finished: (workedMs) => told.push(`worked ${workedMs}`),
  };
  const queue = new WorkQueue({ clock, observer });
  queue.add('a');
  clock.advance(20);
  await queue.take();
  clock.advance(30);
  assert.equal(queue.unfinishedMs, 30);
  queue.retry('a');
  queue.done('a');
  assert.equal(queue.unfinishedMs, 0);
  assert.deepEqual(told, ['added', 'depth 1', 'waited 20', 'depth 0', 'retried', 'worked 30']);
});
