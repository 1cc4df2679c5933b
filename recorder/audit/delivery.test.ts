import assert from 'node:assert/strict';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { until } from '../../test/support/until.ts';
import { workspace } from '../../test/support/workspace.ts';
import { Delivery, type Send } from './delivery.ts';
import type { SentLine } from './sent-line.ts';
import { AuditTrail } from './trail.ts';

/** An audit whose lines are sent to a collector that a test turns on and off. */
function stage(t: TestContext) {
  const directory = join(workspace(t), 'audit');
  const clock = new VirtualClock(Date.now());
  const rules = { maxAgeMs: 90 * 86_400_000, maxBytes: 2 ** 30 };
  const open = (maxFileBytes = 1_000_000) =>
    new AuditTrail({ directory, node: 'rack-1', ...rules, maxFileBytes, clock, log: silentLog });
  const collector = { received: [] as SentLine[], problem: undefined as string | undefined, asked: 0 };
  const take: Send = async (lines) => {
    collector.asked++;
    if (collector.problem !== undefined) throw new Error(collector.problem);
    collector.received.push(...lines);
  };
  /** A process: its audit, and what sends it. */
  function start({ trail = open(), send = take }: { trail?: AuditTrail; send?: Send } = {}) {
    const end = () => trail.end;
    const address = 'logs.example:6514';
    const delivery = new Delivery({ directory, to: 'syslog', address, send, end, clock, log: silentLog });
    delivery.start();
    return {
      trail,
      delivery,
      stop: () => Promise.all([trail.close(), delivery.close()]),
    };
  }
  const write = (trail: AuditTrail, count: number): void => {
    for (let i = 0; i < count; i++) trail.write({ what: 'export', caller: 'ops' });
  };
  const numbers = () => collector.received.map(({ n }) => n);
  /** Moves the clock until `count` lines were received. */
  const received = (count: number) =>
    until(`${count} lines`, () => {
      clock.advance(1_000);
      return collector.received.length >= count;
    });
  return { directory, clock, open, collector, start, write, numbers, received };
}

const upTo = (last: number, first = 1): number[] => Array.from({ length: last - first + 1 }, (_, i) => first + i);

test('a collector gets each line once, in order, over full files and restarts', async (t) => {
  const { open, start, write, numbers, received } = stage(t);
  const first = start({ trail: open(2_000) });
  write(first.trail, 50);
  await received(50);
  await first.stop();
  const second = start({ trail: open(2_000) });
  write(second.trail, 30);
  await received(80);
  await second.stop();
  assert.deepEqual(numbers(), upTo(80));
});

test('lines wait in the files while the collector is away, also those of an earlier process, and none is left out', async (t) => {
  const { collector, start, write, numbers, received, clock } = stage(t);
  collector.problem = 'connect ECONNREFUSED';
  const first = start();
  write(first.trail, 10);
  await until('it was asked', () => (clock.advance(1_000), collector.asked > 2));
  assert.equal(first.delivery.problem, 'connect ECONNREFUSED');
  await first.stop();
  const second = start();
  write(second.trail, 10);
  await until('it was asked again', () => (clock.advance(1_000), second.delivery.problem !== undefined));
  // Written after what waits was read.
  write(second.trail, 10);
  await until('they are written', () => second.trail.end.n === 30);
  collector.problem = undefined;
  await received(30);
  assert.deepEqual(numbers(), upTo(30));
  assert.equal(second.delivery.problem, undefined);
  await second.stop();
});

test('lines that were there before there was a collector are sent, too', async (t) => {
  const { open, start, write, numbers, received } = stage(t);
  const before = open(2_000);
  write(before, 25);
  await before.close();
  const { stop } = start();
  await received(25);
  await stop();
  assert.deepEqual(numbers(), upTo(25));
});

test('lines whose delivery was cut off are sent again with equal ids', async (t) => {
  const { collector, start, write, received } = stage(t);
  const hanging = Promise.withResolvers<never>();
  const first = start({
    send: async (lines, signal) => {
      collector.received.push(...lines);
      signal.addEventListener('abort', () => hanging.reject(signal.reason));
      await hanging.promise;
    },
  });
  write(first.trail, 3);
  await received(3);
  await first.stop();
  const second = start();
  await received(6);
  await second.stop();
  const [once, again] = [collector.received.slice(0, 3), collector.received.slice(3)];
  assert.deepEqual(
    again.map(({ id }) => id),
    once.map(({ id }) => id),
  );
  assert.equal(new Set(again.map(({ id }) => id)).size, 3);
});

test('another chain of lines is sent from its beginning, whatever number its predecessor had reached', async (t) => {
  const { directory, start, write, numbers, received } = stage(t);
  const first = start();
  write(first.trail, 5);
  await received(5);
  await first.stop();
  for (const name of readdirSync(directory)) if (name.startsWith('audit')) rmSync(join(directory, name));
  for (const [count, all] of [
    [3, 8],
    [9, 17],
  ] as const) {
    const next = start();
    write(next.trail, count);
    await received(all);
    await next.stop();
  }
  assert.deepEqual(numbers(), [...upTo(5), ...upTo(12)]);
});

test('how far a collector is behind grows from the newest line that it has, also while no line is written', async (t) => {
  const { clock, collector, start, write, received } = stage(t);
  const { trail, delivery, stop } = start();
  write(trail, 1);
  await received(1);
  await until('it is noted', () => delivery.accepted === 1);
  const writtenMs = collector.received[0]!.timeMs!;
  clock.advance(600_000);
  assert.equal(delivery.behindMs(), clock.wallMs() - writtenMs);
  await stop();
  // A later process knows it.
  const next = start();
  write(next.trail, 1);
  await until('it has begun', () => (clock.advance(1_000), next.delivery.accepted === 1));
  assert.ok(next.delivery.behindMs() < 600_000);
  await next.stop();
});

test('lines that a collector refuses for ever are counted, and the later ones are sent', async (t) => {
  const { start, write, clock } = stage(t);
  const { trail, delivery, stop } = start({ send: async () => ({ lines: 1, message: 'too old' }) });
  write(trail, 4);
  await until('they are sent', () => (clock.advance(1_000), delivery.accepted + delivery.refused === 4));
  assert.ok(delivery.refused >= 1);
  await stop();
});
