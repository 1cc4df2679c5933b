import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Interval } from '../../../base/interval.ts';
import type { GapCause } from '../../contract/gap-cause.ts';
import type { Gap } from '../../contract/gap-report.ts';
import { as, build, noGaps } from '../test-support.ts';

type MadeGap = Interval & { readonly cause?: GapCause };

async function stage(t: TestContext, footage: readonly Interval[], gaps: readonly MadeGap[] = []) {
  const { app } = await build(t, {
    site: { name: '', timeZone: 'Europe/Berlin' },
    times: {
      refresh: async () => {},
      of: async (cameraId, fromMs, toMs) => ({
        keptFromMs: undefined,
        footage: cameraId === 'gate' ? footage : [],
        report: {
          ...(await noGaps.ofThisNode(cameraId, fromMs, toMs)),
          gaps: gaps.map((gap): Gap => ({ cause: 'disk-full', ...gap, isOpen: false, isProvisional: false })),
        },
      }),
    },
  });
  return (path: string) => app.inject({ url: `/api/archive/${path}`, headers: as('viewer') });
}

const day = (date: string): number => Date.parse(`${date}:00+01:00`);

test('each day with footage or gaps is listed, in the hours that it has', async (t) => {
  const ask = await stage(
    t,
    [
      { fromMs: Date.UTC(2026, 9, 24, 21, 59), toMs: Date.UTC(2026, 9, 25, 23) },
      { fromMs: day('2026-10-27T00:00'), toMs: day('2026-10-27T12:00') },
    ],
    [
      { fromMs: day('2026-10-27T23:00'), toMs: day('2026-10-28T00:30') },
      { fromMs: day('2026-10-28T01:00'), toMs: day('2026-10-28T03:00'), cause: 'stopped' },
    ],
  );
  const answer = await ask('gate/days?month=2026-10&tz=Europe/Berlin');
  assert.equal(answer.statusCode, 200, answer.body);
  const { time_zone, days } = answer.json();
  assert.equal(time_zone, 'Europe/Berlin');
  assert.deepEqual(
    days.map((one: Record<string, unknown>) => [
      one['date'],
      one['recorded_seconds'],
      one['missing_seconds'],
      one['stopped_seconds'],
      one['complete'],
    ]),
    [
      ['2026-10-24', 60, 0, 0, true],
      ['2026-10-25', 25 * 3600, 0, 0, true],
      ['2026-10-27', 12 * 3600, 3600, 0, false],
      ['2026-10-28', 0, 1800 + 7200, 7200, false],
    ],
  );
  assert.equal(days[1].end_ms - days[1].start_ms, 25 * 3_600_000);
  assert.equal((await ask('gate/days?month=2026-10')).json().time_zone, 'Europe/Berlin');
});

test('an unknown camera has no days, and wrong months and zones are named', async (t) => {
  const ask = await stage(t, [{ fromMs: day('2026-10-27T00:00'), toMs: day('2026-10-27T12:00') }]);
  assert.deepEqual((await ask('nobody/days?month=2026-10')).json().days, []);
  for (const [query, detail] of [
    ['', 'month: is missing'],
    ['month=2026-13', 'month: expected a month such as 2026-10'],
    ['month=2026-10&tz=Europe/Bonn', 'tz: expected a time zone such as Europe/Berlin'],
  ]) {
    assert.equal((await ask(`gate/days?${query}`)).json().detail, detail);
  }
});
