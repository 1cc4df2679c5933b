import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { LocalMachine } from './machine.ts';
import { dayAround, isoTime } from './times.ts';

test('processor use is measured from one question to the next, and not more than once a second', () => {
  const clock = new VirtualClock();
  const machine = new LocalMachine(clock);
  assert.equal(machine.cpuPercent(), 0);
  const untilMs = performance.now() + 150;
  while (performance.now() < untilMs) Math.sqrt(untilMs);
  assert.equal(machine.cpuPercent(), 0);
  clock.advance(1_000);
  const busy = machine.cpuPercent();
  assert.ok(busy > 0 && busy <= 100, `${busy} %`);
  assert.equal(machine.cpuPercent(), busy);
});

test('memory and disk are those of this machine', async () => {
  const machine = new LocalMachine(new VirtualClock());
  const memory = machine.memory();
  assert.ok(memory.usedBytes > 0 && memory.usedBytes < memory.totalBytes);
  const disk = await machine.disk(tmpdir());
  assert.ok(disk.usedBytes >= 0 && disk.freeBytes >= 0 && disk.usedBytes + disk.freeBytes > 0);
  assert.ok(disk.usedBytes + disk.freeBytes <= disk.totalBytes);
  await assert.rejects(machine.disk('/nowhere/at/all'));
});

test('times carry their offset', () => {
  assert.equal(isoTime(Date.UTC(2026, 10, 21, 3, 4, 5, 6)), '2026-11-21T03:04:05.006+00:00');
});

test('the day of a viewer east and west of UTC', () => {
  const now = Date.UTC(2026, 0, 1, 23, 30);
  const hour = 3_600_000;
  assert.deepEqual(dayAround(now, 60), { fromMs: Date.UTC(2026, 0, 1, 23), toMs: Date.UTC(2026, 0, 2, 23) });
  assert.deepEqual(dayAround(now, -840), {
    fromMs: Date.UTC(2026, 0, 1) + 14 * hour,
    toMs: Date.UTC(2026, 0, 2) + 14 * hour,
  });
});

test('a day of 26 hours is a list of its last 25', () => {
  // The clock of this zone goes from 3:00 back to 1:00 on the last Sunday of October.
  const code = `import { dayAround } from ${JSON.stringify(new URL('./times.ts', import.meta.url).href)};
    console.log(JSON.stringify(dayAround(Date.UTC(2026, 9, 25, 12), undefined)));`;
  const env = { TZ: 'Antarctica/Troll' };
  const said = execFileSync(process.execPath, ['--input-type=module', '--eval', code], { env, encoding: 'utf8' });
  const { fromMs, toMs } = JSON.parse(said) as { fromMs: number; toMs: number };
  assert.equal(toMs, Date.UTC(2026, 9, 26));
  assert.equal(toMs - fromMs, 25 * 3_600_000);
});
