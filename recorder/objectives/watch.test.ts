import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { VirtualClock } from '../../base/clock.ts';
import type { Interval } from '../../base/interval.ts';
import { silentLog } from '../../base/log.ts';
import type { MeasuredObjective } from '../contract/measured-objective.ts';
import type { RecordedTime } from './days.ts';
import type { Objective } from './objective.ts';
import { ObjectiveWatch } from './watch.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const OBJECTIVE: Objective = {
  name: 'insurance',
  cameras: ['dock-*'],
  target: 99,
  windowMs: 10 * DAY_MS,
  excused: ['stopped'],
};

/** All has been recorded since ever, but `lostMs` of each camera that ended `agoMs` ago. */
function stage(lost: Readonly<Record<string, { readonly lostMs: number; readonly agoMs: number }>>) {
  const clock = new VirtualClock();
  clock.advance(100 * DAY_MS);
  const asked: { readonly ids: readonly string[]; readonly ms: number }[] = [];
  const is = { mine: true, objectives: [OBJECTIVE] };
  const accountOf = (id: string, { fromMs, toMs }: Interval): RecordedTime => {
    const { lostMs = 0, agoMs = 0 } = lost[id] ?? {};
    const gap = { fromMs: toMs - agoMs - lostMs, toMs: toMs - agoMs };
    return {
      recorded: [
        { fromMs, toMs: gap.fromMs },
        { fromMs: gap.toMs, toMs },
      ],
      gaps: lostMs > 0 ? [{ ...gap, cause: 'node-down' }] : [],
    };
  };
  const registry = new Registry();
  const told: (readonly MeasuredObjective[])[] = [];
  const watch = new ObjectiveWatch({
    objectives: () => is.objectives,
    cameraIds: async () => ['gate', 'dock-1', 'dock-2'],
    accounts: async (ids, interval) => {
      asked.push({ ids, ms: interval.toMs - interval.fromMs });
      return ids.map((id) => accountOf(id, interval));
    },
    isMine: () => is.mine,
    measured: (measured) => told.push(measured),
    registry,
    clock,
    log: silentLog,
  });
  const minute = async (): Promise<string> => {
    watch.tick();
    await watch.close();
    clock.advance(60_000);
    return registry.metrics();
  };
  return { clock, told, is, asked, minute };
}

test('burn rates say how fast the budget is used up in each window, budget and share are of the whole window', async () => {
  // Of two cameras, a minute of one is missing: 1/120 of the last hour, which has a budget of 1/100.
  const { minute, told, clock } = stage({ 'dock-1': { lostMs: 60_000, agoMs: 10 * 60_000 } });
  const text = await minute();
  const rate = (window: string): number =>
    Number(new RegExp(`burn_rate\\{objective="insurance",window="${window}"\\} (\\S+)`).exec(text)?.[1]);
  assert.equal(rate('5m'), 0);
  assert.ok(Math.abs(rate('1h') - 100 / 120) < 1e-9, text);
  assert.ok(Math.abs(rate('6h') - 100 / 720) < 1e-9, text);
  const budgetMs = (2 * OBJECTIVE.windowMs) / 100;
  assert.match(text, new RegExp(`budget_left_seconds\\{objective="insurance"\\} ${(budgetMs - 60_000) / 1_000}\n`));
  const [{ atMs, achieved, ...found } = assert.fail(), ...others] = told.flat();
  assert.deepEqual([atMs, achieved, others], [clock.wallMs() - 60_000, 99.9965, []]);
  assert.deepEqual(found, {
    name: 'insurance',
    cameras: 2,
    missingMs: 60_000,
    budgetMs,
    budgetLeftMs: budgetMs - 60_000,
    worst: [{ cameraId: 'dock-1', missingMs: 60_000 }],
  });
});

test('cameras that no objective covers are not asked for, and long windows only every five minutes', async () => {
  const { minute, asked } = stage({});
  for (let i = 0; i < 6; i++) await minute();
  assert.ok(asked.every(({ ids }) => ids.join() === 'dock-1,dock-2'));
  const longMs = OBJECTIVE.windowMs;
  assert.deepEqual(
    asked.map(({ ms }) => ms),
    [longMs, 6 * HOUR_MS, 6 * HOUR_MS, 6 * HOUR_MS, 6 * HOUR_MS, longMs],
  );
});

test('a node that no longer measures says nothing, and measures all anew when it leads again', async () => {
  const { minute, is, told, asked } = stage({});
  await minute();
  is.mine = false;
  assert.doesNotMatch(await minute(), /objective="insurance"/);
  assert.deepEqual(told.at(-1), []);
  is.mine = true;
  assert.match(await minute(), /budget_left_seconds\{objective="insurance"\}/);
  assert.deepEqual(
    asked.map(({ ms }) => ms),
    [OBJECTIVE.windowMs, OBJECTIVE.windowMs],
  );
});

test('where nothing may be missing, any missing time is infinitely too fast', async () => {
  const { minute, is } = stage({ 'dock-2': { lostMs: 1, agoMs: 0 } });
  is.objectives = [{ ...OBJECTIVE, target: 100 }];
  assert.match(await minute(), /burn_rate\{objective="insurance",window="1h"\} \+Inf/);
});

test('an objective that was changed is measured again at once', async () => {
  const { minute, is, told } = stage({ 'dock-1': { lostMs: 60_000, agoMs: 0 } });
  await minute();
  is.objectives = [{ ...OBJECTIVE, target: 100 }];
  assert.match(await minute(), /budget_left_seconds\{objective="insurance"\} -60\n/);
  assert.deepEqual(
    told.map(([one]) => one?.budgetLeftMs),
    [17_220_000, -60_000],
  );
});
