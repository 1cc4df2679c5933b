import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Interval } from '../../base/interval.ts';
import type { GapReport } from '../contract/gap-report.ts';
import { footageTimes, gapReporter } from './footage-times.ts';

const part = (fromMs: number, toMs: number): Interval => ({ fromMs, toMs });
const REPORT: GapReport = {
  fromMs: 0,
  toMs: 100_000,
  knownUntilMs: 90_000,
  gaps: [{ ...part(60_000, 70_000), cause: 'camera-unreachable', isOpen: false, isProvisional: false }],
  wantedMs: 90_000,
  recordedMs: 80_000,
  recorded: [part(0, 60_000), part(70_000, 95_000)],
  degraded: [],
  filled: [],
};

/** `files`: what the disks that are there have. */
function stage(files: readonly Interval[], lackingFromMs: number | undefined) {
  const archive = {
    lackingFromMs: () => lackingFromMs,
    catalogue: {
      refresh: async () => {},
      oldestStartMs: () => files[0]?.fromMs,
      columns: () => ({
        startsMs: files.map(({ fromMs }) => fromMs),
        endsMs: files.map(({ toMs }) => toMs),
        nextMs: Infinity,
      }),
      endOf: async () => undefined,
    },
  } as unknown as Parameters<typeof footageTimes>[0];
  const gaps = { written: () => [...REPORT.recorded], report: () => REPORT };
  const times = footageTimes(archive, gaps);
  return { times, reporter: gapReporter(archive, gaps, times) };
}

const gapsOf = ({ gaps }: GapReport): unknown[] => gaps.map(({ fromMs, toMs, cause }) => [fromMs, toMs, cause]);
const sum = (parts: readonly Interval[]): number => parts.reduce((all, one) => all + one.toMs - one.fromMs, 0);

test('time that was recorded to a disk that is away is a gap with that cause, and still adds up', async () => {
  const { times, reporter } = stage([part(0, 20_000), part(40_000, 60_000), part(70_000, 95_000)], 0);
  const { report } = await times.of('gate', 0, 100_000);
  assert.deepEqual(gapsOf(report), [
    [20_000, 40_000, 'on-disk-away'],
    [60_000, 70_000, 'camera-unreachable'],
  ]);
  assert.equal(report.recordedMs + sum(report.gaps), report.wantedMs);
  assert.deepEqual(report.recorded, [part(0, 20_000), part(40_000, 60_000), part(70_000, 95_000)]);
  assert.deepEqual(await reporter.report('gate', 0, 100_000, []), report);
});

test('footage that may not be kept any more is not looked for on a disk that is away', async () => {
  const { times } = stage([part(40_000, 60_000), part(70_000, 95_000)], 30_000);
  assert.deepEqual(gapsOf((await times.of('gate', 0, 100_000)).report)[0], [30_000, 40_000, 'on-disk-away']);
});

test('when every disk is there, footage without a file was removed: that is no gap', async () => {
  const { times, reporter } = stage([part(70_000, 95_000)], undefined);
  assert.equal((await times.of('gate', 0, 100_000)).report, REPORT);
  assert.equal(await reporter.report('gate', 0, 100_000, []), REPORT);
});
