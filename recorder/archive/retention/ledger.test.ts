import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { dayStartMs } from '../disk/names.ts';
import { parseTotals, UsageLedger, type DayCount } from './ledger.ts';

const DAY_MS = 86_400_000;
const T0 = Date.UTC(2026, 0, 1);
const at = (cameraId: string, startMs: number) => ({ name: 'X', cameraId, startMs });

/** Numbers of names, as the archive would give them. */
function counts(files: ReadonlyMap<string, { cameraId: string; startMs: number }>): DayCount[] {
  const found = new Map<string, DayCount>();
  for (const { cameraId, startMs } of files.values()) {
    const dayMs = dayStartMs(startMs);
    const key = `${cameraId} ${dayMs}`;
    found.set(key, { cameraId, dayStartMs: dayMs, count: (found.get(key)?.count ?? 0) + 1 });
  }
  return [...found.values()];
}

type Files = Map<string, { cameraId: string; startMs: number; bytes: number }>;
const total = (files: Files): number => [...files.values()].reduce((sum, { bytes }) => sum + bytes, 0);

const action = fc.record({
  kind: fc.constantFrom('close' as const, 'close' as const, 'remove' as const, 'restart' as const),
  cameraId: fc.constantFrom('a', 'b'),
  day: fc.integer({ min: 0, max: 3 }),
  slot: fc.integer({ min: 0, max: 20 }),
  bytes: fc.integer({ min: 0, max: 1_000 }),
});

test('whatever is closed and removed, and whenever it starts anew, its sums are those of the files', () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
      let ledger = new UsageLedger();
      const files: Files = new Map();
      for (const { kind, cameraId, day, slot, bytes } of actions) {
        const startMs = T0 + day * DAY_MS + slot * 1000;
        const key = `${cameraId} ${startMs}`;
        const file = files.get(key);
        if (kind === 'close' && !file) {
          files.set(key, { cameraId, startMs, bytes });
          ledger.add(at(cameraId, startMs), bytes);
        } else if (kind === 'remove' && file) {
          files.delete(key);
          ledger.remove(at(cameraId, startMs), file.bytes);
        } else if (kind === 'restart') {
          const saved = ledger.format();
          ledger = new UsageLedger();
          ledger.reconcile(counts(files), parseTotals(saved));
        }
        assert.equal(ledger.bytes, total(files));
        assert.ok(ledger.isComplete);
      }
      for (const cameraId of ['a', 'b']) {
        const own: Files = new Map([...files].filter(([, file]) => file.cameraId === cameraId));
        assert.equal(ledger.bytesOf(cameraId), total(own));
      }
      assert.deepEqual([...ledger.cameras()].sort(), [...new Set([...files.values()].map((f) => f.cameraId))].sort());
    }),
  );
});

test('days that differ from what was saved are measured, and count for no more than they hold until then', () => {
  const first = new UsageLedger();
  for (let i = 0; i < 10; i++) first.add(at('a', T0 + i), 100);
  first.add(at('a', T0 + DAY_MS), 50);
  const saved = parseTotals(first.format());

  const ledger = new UsageLedger();
  const day = (dayMs: number, count: number): DayCount => ({ cameraId: 'a', dayStartMs: dayMs, count });
  // Five were removed by rm, one was added on the other day, and a third day is new.
  ledger.reconcile([day(T0, 5), day(T0 + DAY_MS, 2), day(T0 + 2 * DAY_MS, 1)], saved);
  assert.equal(ledger.isComplete, false);
  assert.equal(ledger.bytes, 500 + 50);
  const sizes: Record<number, number> = { [T0]: 480, [T0 + DAY_MS]: 90, [T0 + 2 * DAY_MS]: 10 };
  for (let next = ledger.nextUnmeasured(); next; next = ledger.nextUnmeasured()) {
    const { cameraId, dayStartMs: dayMs } = next;
    const { count } = ledger.day(cameraId, dayMs);
    const version = ledger.versionOf(cameraId, dayMs);
    assert.ok(ledger.measured(cameraId, dayMs, { count, bytes: sizes[dayMs] ?? 0 }, version));
  }
  assert.equal(ledger.bytes, 480 + 90 + 10);
  assert.ok(ledger.isComplete);
});

test('a measurement during which a segment was closed or removed counts for nothing', () => {
  const ledger = new UsageLedger();
  ledger.reconcile([{ cameraId: 'a', dayStartMs: T0, count: 2 }]);
  const version = ledger.versionOf('a', T0);
  ledger.add(at('a', T0 + 5), 7);
  assert.equal(ledger.measured('a', T0, { count: 2, bytes: 100 }, version), false);
  assert.equal(ledger.isComplete, false);
  assert.equal(ledger.measured('a', T0, { count: 3, bytes: 107 }, ledger.versionOf('a', T0)), true);
  assert.equal(ledger.bytes, 107);
  assert.ok(ledger.isComplete);
});

test('a day without names any more is gone, and what was not measured is not saved', () => {
  const ledger = new UsageLedger();
  ledger.add(at('a', T0), 5);
  ledger.reconcile([{ cameraId: 'b', dayStartMs: T0, count: 1 }]);
  assert.deepEqual([...ledger.cameras()], ['b']);
  assert.equal(ledger.bytes, 0);
  assert.deepEqual(parseTotals(ledger.format()), new Map());
  ledger.reconcile([]);
  assert.ok(ledger.isComplete, 'a day that was to be measured is not waited for when it is gone');
});

test('what a file of totals should not hold is ignored', () => {
  for (const text of ['', '{', 'null', '[]', '{"version":2,"days":{}}', '{"version":1}', '{"version":1,"days":[]}']) {
    assert.deepEqual(parseTotals(text), new Map());
  }
  const bad = { '2026/02/30': { a: [1, 2] }, '2026/01/01': { a: [1], b: [-1, 2], c: 'x', d: [2, 3] }, x: null };
  const read = parseTotals(JSON.stringify({ version: 1, days: bad }));
  assert.deepEqual(read, new Map([['d', new Map([[T0, { count: 2, bytes: 3 }]])]]));
});
