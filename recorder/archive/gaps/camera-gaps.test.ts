import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import { silentLog } from '../../../base/log.ts';
import { newCounters } from '../../camera/status.ts';
import { CameraGaps } from './camera-gaps.ts';
import { CameraLedger } from './camera-ledger.ts';
import type { LedgerRecord } from './record.ts';

const S = 1_000;

test('a file that ends before its last picture was thought to be: the same account now and after a restart', () => {
  const clock = new VirtualClock();
  const startMs = clock.wallMs();
  const records: LedgerRecord[] = [];
  const gaps = new CameraGaps({ clock, log: silentLog, journal: (record) => records.push(record) });
  gaps.want('recording', { cause: 'process-down', aliveMs: undefined });
  const observe = (...written: { fromMs: number; toMs: number }[]): void =>
    gaps.observe({
      camera: { state: 'recording', reason: undefined, counters: newCounters() },
      archive: { state: 'writing', reason: undefined, framesWritten: 1, framesDropped: new Map() },
      written,
    });
  const first = { fromMs: startMs + 0.25, toMs: startMs + 46 * S };
  const next = { fromMs: startMs + 45 * S, toMs: startMs + 60 * S };
  observe();
  clock.advance(60 * S);
  observe(first);
  gaps.recorded(first.fromMs, startMs + 31 * S);
  observe(next);
  gaps.recorded(next.fromMs, next.toMs);
  const expected = [[31, 45, 'clock-step']];
  const again = new CameraLedger();
  for (const record of records) again.apply(record);
  for (const ledger of [gaps.ledger, again]) {
    const { gaps: told } = ledger.report(startMs, startMs + 60 * S, startMs + 60 * S);
    assert.deepEqual(
      told.map(({ fromMs, toMs, cause }) => [(fromMs - startMs) / S, (toMs - startMs) / S, cause]),
      expected,
    );
  }
});
