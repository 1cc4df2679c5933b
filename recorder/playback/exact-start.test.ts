import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from '../../test/support/fast-check.ts';
import { startAt } from './exact-start.ts';
import type { TimedSample } from '../footage/sample-runs.ts';

const FRAME = 3600;

/** Pictures in decoding order; `shown` are their places in the order in which they are shown. */
const pictures = (shown: readonly number[], keys: readonly number[] = [0]): TimedSample[] =>
  shown.map((place, i) => ({
    size: 100,
    duration: FRAME,
    compositionOffset: (place - i + 2) * FRAME,
    sync: keys.includes(i),
    dts: i * FRAME,
    offset: i * 100,
  }));

/** When each picture of a stream is shown, by its place in the file. */
function shownTimes(samples: ReturnType<typeof startAt>['samples']): Map<number, number> {
  const times = new Map<number, number>();
  let dts = 0;
  for (const { duration, compositionOffset, offset } of samples) {
    times.set(offset / 100, dts + compositionOffset);
    dts += duration;
  }
  return times;
}

test('pictures before the asked time are shown for a tick each, those after it at their time', () => {
  const { samples, shift } = startAt(pictures([0, 1, 2, 3, 4, 5]), 5.5 * FRAME);
  assert.deepEqual(
    [...shownTimes(samples)],
    [
      [0, 0],
      [1, 1],
      [2, 2],
      // On screen at the asked time.
      [3, 3],
      [4, 3 + FRAME / 2],
      [5, 3 + 1.5 * FRAME],
    ],
  );
  assert.equal(shift, 3 - 5.5 * FRAME);
});

test('a time at a key frame needs nothing before it', () => {
  const { samples } = startAt(pictures([0, 1, 2, 3], [0, 2]), 4 * FRAME);
  assert.deepEqual(
    [...shownTimes(samples)],
    [
      [2, 0],
      [3, FRAME],
    ],
  );
});

test('decoding begins at the last key frame shown before the time', () => {
  const { samples } = startAt(pictures([0, 1, 2, 3, 4, 5], [0, 3]), 6.2 * FRAME);
  assert.deepEqual([...shownTimes(samples).keys()], [3, 4, 5]);
});

test('with reordered pictures: order of display stays, times never go back, and what is asked for is first', () => {
  // Groups of B-frames around the asked time: each P before the Bs that are shown before it.
  const group = fc.integer({ min: 0, max: 3 });
  fc.assert(
    fc.property(
      fc.array(group, { minLength: 1, maxLength: 10 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (groups, part) => {
        const order = [0];
        for (const bs of groups) {
          const next = order.length;
          order.push(next + bs, ...Array.from({ length: bs }, (_, i) => next + i));
        }
        const list = pictures(order);
        const last = (order.length - 1 + 2) * FRAME;
        const time = Math.round(2 * FRAME + part * (last - 2 * FRAME));
        const { samples, shift } = startAt(list, time);
        const times = shownTimes(samples);
        const inFile = (i: number): number => (list[i] as TimedSample).dts + (list[i] as TimedSample).compositionOffset;
        const byDisplay = [...times.keys()].sort((a, b) => inFile(a) - inFile(b));
        const shown = byDisplay.map((i) => times.get(i) as number);
        for (let i = 1; i < shown.length; i++) assert.ok((shown[i] as number) > (shown[i - 1] as number));
        const zero = time + shift;
        assert.ok(zero >= 0 && zero < FRAME, `the stream begins ${zero} ticks late`);
        for (const i of byDisplay) {
          const at = times.get(i) as number;
          if (inFile(i) > time) assert.equal(at, inFile(i) + shift);
          else assert.ok(at <= zero);
        }
        const onScreen = byDisplay.filter((i) => inFile(i) <= time).at(-1) as number;
        assert.equal(times.get(onScreen), zero);
        for (const { duration } of samples) assert.ok(duration >= 1);
      },
    ),
  );
});
