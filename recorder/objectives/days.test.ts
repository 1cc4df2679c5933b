import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { CameraLedger } from '../archive/gaps/camera-ledger.ts';
import type { LedgerRecord } from '../archive/gaps/record.ts';
import { GAP_CAUSES, type LedgerState } from '../contract/gap-cause.ts';
import { recordedIn, sumOf } from './days.ts';
import { balanceOf } from './objective.ts';

const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2026, 9, 24);
/** Of 24, 25 and 23 hours. */
const DAYS = [24, 25, 23].reduce<{ fromMs: number; toMs: number }[]>((days, hours) => {
  const fromMs = days.at(-1)?.toMs ?? START_MS;
  return [...days, { fromMs, toMs: fromMs + hours * HOUR_MS }];
}, []);
const END_MS = START_MS + 72 * HOUR_MS;

const moment = fc.integer({ min: START_MS - 5 * HOUR_MS, max: END_MS + 5 * HOUR_MS });
const state: fc.Arbitrary<LedgerState> = fc.constantFrom('recording', 'recording', 'absent', ...GAP_CAUSES);
const record: fc.Arbitrary<LedgerRecord> = fc.oneof(
  fc.record({ kind: fc.constant('state' as const), state, atMs: moment }),
  fc
    .record({
      kind: fc.constant('missed' as const),
      fromMs: moment,
      lengthMs: fc.integer({ min: 1, max: 9 * HOUR_MS }),
      cause: fc.constantFrom(...GAP_CAUSES),
    })
    .map(({ lengthMs, ...same }) => ({ ...same, toMs: same.fromMs + lengthMs })),
);
const footage = fc.array(
  fc.tuple(moment, fc.integer({ min: 1, max: 9 * HOUR_MS })).map(([fromMs, ms]) => ({ fromMs, toMs: fromMs + ms })),
  { maxLength: 20 },
);
const timeOf = (record: LedgerRecord): number => ('atMs' in record ? record.atMs : record.fromMs);

test('days, and their sums, are those of the ledger to the millisecond, whatever it knows', () => {
  fc.assert(
    fc.property(fc.array(record, { maxLength: 30 }), footage, moment, (records, files, nowMs) => {
      const ledger = new CameraLedger();
      for (const one of records.sort((a, b) => timeOf(a) - timeOf(b))) ledger.apply(one);
      const whole = ledger.report(START_MS, END_MS, nowMs, files);
      const days = recordedIn(DAYS, whole);
      const missingMs = whole.gaps.reduce((sum, gap) => sum + gap.toMs - gap.fromMs, 0);
      const cut = whole.recorded.map(({ fromMs, toMs }) => Math.min(toMs, END_MS) - Math.max(fromMs, START_MS));
      const recordedMs = cut.reduce((sum, ms) => sum + Math.max(0, ms), 0);
      const sum = sumOf(days);
      assert.deepEqual([sum.missingMs, sum.recordedMs], [missingMs, recordedMs]);
      for (const day of [...days, sum])
        assert.equal(
          [...day.byCause.values()].reduce((all, ms) => all + ms, 0),
          day.missingMs,
        );
      for (const [i, { fromMs, toMs }] of DAYS.entries()) {
        assert.ok((days[i]?.recordedMs ?? 0) + (days[i]?.missingMs ?? 0) <= toMs - fromMs);
      }
    }),
  );
});

test('what the days of two halves of a month say is what one whole says', () => {
  fc.assert(
    fc.property(footage, moment, (files, middle) => {
      const at = Math.min(Math.max(middle, START_MS), END_MS);
      const recorded = new CameraLedger().report(START_MS, END_MS, END_MS, files).recorded;
      const parts = recordedIn(
        [
          { fromMs: START_MS, toMs: at },
          { fromMs: at, toMs: END_MS },
        ],
        { recorded, gaps: [] },
      );
      const [whole] = recordedIn([{ fromMs: START_MS, toMs: END_MS }], { recorded, gaps: [] });
      assert.equal(sumOf(parts).recordedMs, whole?.recordedMs);
    }),
  );
});

const recorded = (recordedMs: number, causes: Partial<Record<(typeof GAP_CAUSES)[number], number>> = {}) => {
  const byCause = new Map(GAP_CAUSES.flatMap((cause) => (causes[cause] ? [[cause, causes[cause]] as const] : [])));
  return { recordedMs, missingMs: [...byCause.values()].reduce((sum, ms) => sum + ms, 0), byCause };
};

test('the budget of an objective is the part that may be missing, and excused causes use nothing of it', () => {
  const objective = { target: 99.9, excused: ['stopped' as const] };
  assert.deepEqual(balanceOf(objective, [recorded(999_000, { 'disk-full': 400, stopped: 50_000 }), recorded(600)]), {
    recordedMs: 999_600,
    missingMs: 400,
    excusedMs: 50_000,
    achieved: 99.96,
    budgetMs: 1_000,
    budgetLeftMs: 600,
  });
});

test('one millisecond too much is not met, and never shown as 100 %', () => {
  const balance = balanceOf({ target: 99.9, excused: [] }, [recorded(999_000 - 1, { 'node-down': 1_001 })]);
  assert.deepEqual([balance.budgetMs, balance.budgetLeftMs], [1_000, -1]);
  const month = 31 * 24 * HOUR_MS * 1_000;
  const { achieved, budgetMs } = balanceOf({ target: 99.999, excused: [] }, [recorded(month, { 'node-down': 1 })]);
  assert.deepEqual([achieved, budgetMs], [99.9999, 26_784_000]);
});

test('without time that should be recorded there is nothing to say', () => {
  const { achieved, budgetLeftMs } = balanceOf({ target: 99.9, excused: ['unlicensed'] }, [
    recorded(0, { unlicensed: 5 }),
  ]);
  assert.deepEqual([achieved, budgetLeftMs], [null, 0]);
});
