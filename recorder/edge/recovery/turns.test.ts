import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import { silentLog } from '../../../base/log.ts';
import type { EdgeMemory } from '../memory.ts';
import { EdgeRecovery } from './recovery.ts';

const MINUTE_MS = 60_000;

test('cameras whose memories never end an answer take turns: no camera waits for them for ever', async () => {
  const clock = new VirtualClock();
  const started: string[] = [];
  const memoryOf = (id: string): EdgeMemory => ({
    clock: async () => undefined,
    recordings: (signal) =>
      new Promise((_, reject) => {
        started.push(id);
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      }),
    replay: () => assert.fail('nothing is replayed'),
  });
  const cameras = ['a', 'b', 'c', 'd'].map((id) => ({
    id,
    name: id,
    record: { format: 'fmp4', segmentDurationMs: 10_000 } as const,
    isRecording: true,
    memory: memoryOf(id),
    maxBitrate: 1e6,
    video: undefined,
    clockAheadMs: undefined,
  }));
  const fromMs = clock.wallMs() - 10 * MINUTE_MS;
  const gap = { fromMs, toMs: fromMs + MINUTE_MS, cause: 'node-down', isOpen: false, isProvisional: false } as const;
  const report = { gaps: [gap], filled: [], recorded: [], knownUntilMs: 0, wantedMs: 0, recordedMs: 0 };
  const unused = () => assert.fail('nothing is written');
  const recovery = new EdgeRecovery({
    archive: { list: async () => ({ segments: [] }), picturesAt: unused, extend: unused, fillerFor: unused } as never,
    gaps: { report: () => report, notFilled: unused } as never,
    cameras: () => cameras,
    keptMs: () => undefined,
    oldestMs: () => undefined,
    unwrittenMs: 7_000,
    clock,
    log: silentLog,
  });
  for (let minutes = 0; minutes < 31; minutes += 0.05) {
    recovery.tick();
    clock.advance(0.05 * MINUTE_MS);
    for (let i = 0; i < 4; i++) await turn();
  }
  assert.deepEqual(started, ['a', 'b', 'c', 'd', 'a', 'b', 'c', 'd']);
  await recovery.close();
});
