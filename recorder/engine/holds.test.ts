// What is said of work that kept everything else waiting.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { cameraStatus } from '../api/test-support.ts';
import { todoOf } from '../api/todo.ts';
import { Holds } from './holds.ts';

function stage() {
  const clock = new VirtualClock();
  const registry = new Registry();
  let cpuMs = 0;
  let longestHoldMs = 0;
  const gate = cameraStatus({ id: 'gate' });
  const list = () => [
    { status: { ...gate, counters: { ...gate.counters, longestHoldMs } } },
    { status: cameraStatus({ id: 'yard' }) },
  ];
  const withheld = { stolenMs: 0, throttledMs: 0 };
  const holds = new Holds({
    cameras: { list },
    registry,
    clock,
    log: silentLog,
    cpuMs: () => cpuMs,
    withheld: () => ({ ...withheld }),
  });
  holds.tick();
  return {
    clock,
    holds,
    withheld,
    /** Nothing else runs for so long, of which this thread has a processor for `cpu`. */
    pass: (ms: number, cpu: number, ofGate = 0) => {
      clock.advance(ms);
      cpuMs += cpu;
      longestHoldMs = ofGate;
      holds.tick();
      return holds.warnings().map(({ code, cameraId }) => [code, cameraId]);
    },
    seconds: async (name = 'kube_nvr_held_seconds_total') => {
      const { values } = (await registry.getSingleMetric(name)?.get()) ?? { values: [] };
      return Object.fromEntries(values.map(({ labels, value }) => [labels['by'], value]));
    },
  };
}

test('the camera whose bytes held everything for two seconds is named, for ten minutes, with what to do', async () => {
  const { clock, holds, pass, seconds } = stage();
  assert.deepEqual(pass(250, 250), []);
  assert.deepEqual(pass(1_900, 1_900, 1_900), []);
  assert.deepEqual(pass(2_500, 2_400, 2_300), [['recorder-held', 'gate']]);
  assert.match(holds.warnings()[0]?.message ?? '', /^what the camera sent held the recorder for 2\.5 s until 20/);
  assert.match(todoOf('recorder-held') ?? '', /camera/);
  assert.deepEqual(await seconds(), { camera: 2.5, other: 0 });
  clock.advance(599_000);
  assert.equal(holds.warnings().length, 1);
  clock.advance(1_000);
  assert.equal(holds.warnings().length, 0);
});

test('work that is not of a camera is told without one', async () => {
  const { pass, seconds } = stage();
  assert.deepEqual(pass(4_000, 3_900, 100), [['recorder-held', undefined]]);
  assert.deepEqual(await seconds(), { camera: 0, other: 4 });
});

test('a process that was stopped, or had no processor, was held by nobody', async () => {
  const { pass, seconds } = stage();
  assert.deepEqual(pass(3_000, 1_400), []);
  assert.deepEqual(pass(60_000, 10), [['machine-frozen', undefined]]);
  assert.deepEqual(await seconds(), { camera: 0, other: 0 });
});

test('a machine that does not let the recorder run for five seconds is a warning with the reason, and counts from two seconds on', async () => {
  const { clock, holds, withheld, pass, seconds } = stage();
  assert.deepEqual(pass(3_000, 0), []);
  withheld.throttledMs += 7_000;
  assert.deepEqual(pass(8_000, 100), [['machine-frozen', undefined]]);
  const message = () => holds.warnings()[0]?.message ?? '';
  assert.match(
    message(),
    /^the recorder stood still for 8\.0 s until 20.*: its control group had used up its processor/,
  );
  assert.match(todoOf('machine-frozen') ?? '', /limit/);
  // What was withheld before does not count.
  withheld.stolenMs += 60_000;
  for (let i = 0; i < 12; i++) pass(250, 250);
  pass(20_000, 0);
  assert.match(message(), /stood still for 20\.0 s .*: it was stopped, its machine was paused/);
  withheld.stolenMs += 6_000;
  pass(6_000, 0);
  assert.match(message(), /: the hypervisor gave the processors to others$/);
  assert.deepEqual(await seconds('kube_nvr_machine_frozen_seconds_total'), { throttled: 8, stolen: 6, other: 23 });
  clock.advance(600_000);
  assert.equal(holds.warnings().length, 0);
});
