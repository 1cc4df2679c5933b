import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import type { TimelineCamera } from '../app/answers.ts';
import { unknownMs } from './changes.ts';
import { toFootage } from './footage.ts';
import { quietUntil } from './quiet.ts';
import { withFound } from './search.ts';

const SECOND = 1_000;
const span = (from: number, to: number) => ({ start_ms: from * SECOND, end_ms: to * SECOND });
type Bands = NonNullable<TimelineCamera['bands']>;
const band = (from: number, to: number, kind: Bands[number]['kind']): Bands[number] => ({ ...span(from, to), kind });
const gate = (changes: Partial<TimelineCamera>) =>
  toFootage({
    camera_id: 'gate',
    kept_from_ms: null,
    spans: [span(0, 100)],
    gaps: [],
    protections: [],
    elsewhere: [],
    ...changes,
  });
const untilOf = (at: number, ...cameras: Partial<TimelineCamera>[]): number | undefined => {
  const endMs = quietUntil(cameras.map(gate), at * SECOND);
  return endMs === undefined ? undefined : endMs / SECOND;
};

test('quiet time ends where something changes, where that cannot be told, and where nobody has looked', () => {
  assert.equal(untilOf(10, { bands: [band(0, 50, 'quiet'), band(50, 54, 'active')] }), 50);
  assert.equal(untilOf(10, { bands: [band(0, 50, 'quiet'), band(40, 60, 'unclear')] }), 40, 'another node cannot tell');
  assert.equal(untilOf(10, { bands: [band(0, 30, 'quiet')] }), 30);
  assert.equal(untilOf(51, { bands: [band(0, 50, 'quiet'), band(50, 54, 'active')] }), undefined);
  assert.equal(untilOf(10, {}), undefined);
});

test('quiet time ends where nothing is recorded', () => {
  const gaps = [{ ...span(40, 60), cause: 'camera-unreachable' as const, is_open: false }];
  assert.equal(untilOf(10, { gaps, bands: [band(0, 100, 'quiet')] }), 40);
  assert.equal(untilOf(50, { gaps, bands: [band(0, 100, 'quiet')] }), undefined);
});

test('what a camera or another system told is not quiet, also if the picture shows nothing', () => {
  const told = {
    id: '1',
    source: 'frigate',
    reported_by: 'frigate',
    type: 'person',
    start_ms: 40 * SECOND,
    end_ms: null,
  };
  assert.equal(untilOf(10, { bands: [band(0, 100, 'quiet')], events: [told] }), 40);
  assert.equal(untilOf(49, { bands: [band(0, 100, 'quiet')], events: [told] }), undefined);
  assert.equal(untilOf(50, { bands: [band(0, 100, 'quiet')], events: [told] }), 100);
});

test('of several cameras, time is quiet if it is quiet in each of them', () => {
  assert.equal(untilOf(10, { bands: [band(0, 50, 'quiet')] }, { bands: [band(0, 30, 'quiet')] }), 30);
  assert.equal(untilOf(10, { bands: [band(0, 50, 'quiet')] }, {}), undefined);
  assert.equal(untilOf(10), undefined);
});

test('no moment that is skipped lies outside of what every camera has recorded as quiet', () => {
  const bands = fc.array(
    fc
      .record({
        from: fc.integer({ min: 0, max: 100 }),
        long: fc.integer({ min: 1, max: 40 }),
        kind: fc.constantFrom('quiet' as const, 'quiet' as const, 'active' as const, 'unclear' as const),
      })
      .map(({ from, long, kind }) => band(from, from + long, kind)),
    { maxLength: 8 },
  );
  fc.assert(
    fc.property(fc.array(bands, { minLength: 1, maxLength: 3 }), fc.integer({ min: 0, max: 99 }), (all, at) => {
      const end = untilOf(at, ...all.map((one) => ({ bands: one })));
      for (let second = at; second < (end ?? at); second++) {
        for (const one of all) {
          const kinds = one.filter(({ start_ms, end_ms }) => start_ms <= second * SECOND && end_ms > second * SECOND);
          assert.ok(second < 100 && kinds.length > 0 && kinds.every(({ kind }) => kind === 'quiet'), `${second}`);
        }
      }
    }),
  );
});

test('a search says of how much footage it says nothing, and its changes take the place of those of the whole picture', () => {
  const bands = [band(0, 20, 'quiet'), band(20, 30, 'active'), band(30, 45, 'unclear')];
  const footage = gate({ bands });
  assert.deepEqual(unknownMs(footage, { fromMs: 0, toMs: 200 * SECOND }), { unclear: 15_000, unseen: 55_000 });
  assert.deepEqual(unknownMs(footage, { fromMs: 0, toMs: 40 * SECOND }), { unclear: 10_000, unseen: 0 });
  const found = { cameraId: 'gate', changes: [{ startMs: 5_000, endMs: 6_000 }], isMore: false };
  assert.deepEqual(
    withFound(footage, found)?.activity?.map(({ kind, startMs }) => [kind, startMs]),
    [
      ['quiet', 0],
      ['unclear', 30_000],
      ['active', 5_000],
    ],
  );
  assert.equal(withFound(footage, { ...found, cameraId: 'yard' }), footage);
});
