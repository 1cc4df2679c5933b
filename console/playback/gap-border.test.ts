import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import type { GapSpan } from './footage.ts';
import { gapBorder, LEAST_GAP_MS } from './gap-border.ts';
import type { Range } from './scale.ts';

const HOUR_MS = 3_600_000;

const gap = (startMs: number, endMs: number): GapSpan => ({
  startMs,
  endMs,
  cause: 'disk-full',
  isOpen: false,
  notFilled: undefined,
  count: 1,
  missingMs: endMs - startMs,
});

/** As the API answers: cut to the range, and those within the resolution as one. */
function told(gaps: readonly GapSpan[], { fromMs, toMs }: Range, resolutionMs: number): GapSpan[] {
  const joined: GapSpan[] = [];
  for (const { startMs, endMs } of gaps) {
    const one = gap(Math.max(startMs, fromMs), Math.min(endMs, toMs));
    if (one.startMs >= one.endMs) continue;
    const last = joined.at(-1);
    if (last && one.endMs - last.startMs <= resolutionMs) {
      const sum = { count: last.count + 1, missingMs: last.missingMs + one.missingMs };
      joined[joined.length - 1] = { ...last, endMs: one.endMs, ...sum };
    } else joined.push(one);
  }
  return joined;
}

test('whatever is shown, going to the next or previous gap stops at each border of each gap', async () => {
  const lengths = fc.array(fc.array(fc.integer({ min: 1, max: 200_000 }), { minLength: 2, maxLength: 40 }), {
    minLength: 1,
    maxLength: 3,
  });
  const resolution = fc.integer({ min: 1, max: HOUR_MS });
  await fc.assert(
    fc.asyncProperty(lengths, resolution, resolution, async (cameras, shownMs, coarsestMs) => {
      const ofCameras = cameras.map((parts) => {
        const gaps: GapSpan[] = [];
        let atMs = 10_000;
        for (const [i, length] of parts.entries()) {
          if (i % 2 === 1) gaps.push(gap(atMs, atMs + length));
          atMs += length;
        }
        return gaps;
      });
      const endMs = Math.max(...cameras.map((parts) => parts.reduce((sum, length) => sum + length, 20_000)));
      const range = { fromMs: 0, toMs: endMs };
      const toldOfAll = (asked: Range, resolutionMs: number): GapSpan[] =>
        ofCameras.flatMap((gaps) => told(gaps, asked, resolutionMs));
      const sources = {
        known: { range, gaps: toldOfAll(range, shownMs) },
        // Where there are very many gaps, the answer is coarser than was asked for.
        read: async (asked: Range) =>
          toldOfAll(asked, asked.toMs - asked.fromMs > 2 * coarsestMs ? coarsestMs : LEAST_GAP_MS),
      };
      const borders = ofCameras
        .flat()
        .filter(({ missingMs }) => missingMs >= LEAST_GAP_MS)
        .flatMap(({ startMs, endMs: end }) => [startMs, end]);
      const wanted = [...new Set(borders)].toSorted((a, b) => a - b);
      const walk = async (from: number, end: number): Promise<number[]> => {
        const stops: number[] = [];
        for (let at: number | undefined = from; ;) {
          at = await gapBorder(at, end, sources);
          if (at === undefined) return stops;
          stops.push(at);
        }
      };
      const exactly = new Set(wanted);
      const forward = await walk(0, endMs);
      assert.deepEqual(
        forward.filter((at) => exactly.has(at)),
        wanted,
      );
      const backward = await walk(endMs, 0);
      assert.deepEqual(backward.filter((at) => exactly.has(at)).toReversed(), wanted);
    }),
    { numRuns: 300 },
  );
});
