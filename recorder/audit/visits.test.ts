import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import type { AuditEntry } from './entry.ts';
import { Visits, type VisitFacts } from './visits.ts';

const FROM = Date.UTC(2026, 0, 1, 9);
const FACTS: VisitFacts = { what: 'playback', caller: 'guard', role: 'viewer', address: '10.0.0.7', camera: 'gate' };

function stage({ views = true } = {}) {
  const clock = new VirtualClock();
  const lines: AuditEntry[] = [];
  const visits = new Visits({ audit: { write: (entry) => void lines.push(entry) }, views, clock });
  return { clock, lines, visits };
}

test('a hundred parts of one playback are one visit: a line for the start, one for the end with footage, time and bytes', () => {
  const { clock, lines, visits } = stage();
  for (let i = 0; i < 100; i++) {
    const end = visits.begin({
      ...FACTS,
      fromMs: FROM + i * 4_000,
      toMs: FROM + i * 4_000 + 4_000,
      requestId: `r${i}`,
    });
    clock.advance(1_000);
    end(50_000);
    clock.advance(3_000);
  }
  const start = {
    what: 'playback',
    caller: 'guard',
    role: 'viewer',
    address: '10.0.0.7',
    camera: 'gate',
    phase: 'start',
  };
  const footage = { from: '2026-01-01T09:00:00.000Z', to: '2026-01-01T09:00:04.000Z' };
  assert.deepEqual(lines, [{ ...start, ...footage, requestId: 'r0' }]);
  clock.advance(70_000);
  assert.equal(lines.length, 2);
  const whole = { ...footage, to: '2026-01-01T09:06:40.000Z' };
  assert.deepEqual(lines[1], { ...start, phase: 'end', ...whole, seconds: 397, requests: 100, bytes: 5_000_000 });
  assert.equal(clock.timers, 0);
});

test('what is still sent continues, however long it is quiet', () => {
  const { clock, lines, visits } = stage();
  const end = visits.begin({ ...FACTS, what: 'live' });
  clock.advance(3_600_000);
  assert.equal(lines.length, 1);
  end(1_000);
  end(1_000);
  clock.advance(70_000);
  assert.deepEqual([lines[1]?.['phase'], lines[1]?.['seconds'], lines[1]?.['bytes']], ['end', 3_600, 1_000]);
});

test('other callers, addresses, cameras, jobs and windows are other visits', () => {
  const { lines, visits } = stage();
  const window = { ...FACTS, what: 'window', fromMs: FROM, toMs: FROM + 1 } as const;
  const all: VisitFacts[] = [
    FACTS,
    { ...FACTS, caller: 'ops' },
    { ...FACTS, address: '10.0.0.8' },
    { ...FACTS, camera: 'dock' },
    { ...FACTS, what: 'download', job: 'e1' },
    { ...FACTS, what: 'download', job: 'e2' },
    window,
    { ...window, toMs: FROM + 2 },
  ];
  for (const facts of [...all, ...all]) visits.begin(facts)(1);
  assert.equal(lines.length, all.length);
  visits.close();
  assert.equal(lines.length, 2 * all.length);
  assert.ok(lines.slice(all.length).every((line) => line['phase'] === 'end' && line['bytes'] === 2));
});

test('without views nobody is written down who looks; who takes a file is', () => {
  const { lines, visits } = stage({ views: false });
  for (const what of ['playback', 'live', 'still', 'download', 'window'] as const) visits.begin({ ...FACTS, what })(1);
  assert.deepEqual(
    lines.map(({ what }) => what),
    ['download', 'window'],
  );
});

test('a caller that takes ever more windows writes a bounded number of lines, and its bytes are counted', () => {
  const { lines, visits } = stage();
  for (let i = 0; i < 10_000; i++) visits.begin({ ...FACTS, what: 'window', fromMs: FROM + i, toMs: FROM + i + 1 })(10);
  assert.equal(lines.length, 201);
  assert.equal(lines.at(-1)?.['camera'], null);
  visits.begin({ ...FACTS, caller: 'ops' });
  assert.equal(lines.at(-1)?.['camera'], 'gate');
  visits.close();
  const bytes = lines.reduce((sum, line) => sum + ((line['bytes'] as number | undefined) ?? 0), 0);
  assert.equal(bytes, 100_000);
});
