// Properties of the planner for arbitrary recordings and windows: the planned movie is playable and has the right contents.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import type { Encoded } from '../../test/support/encoded-samples.ts';
import { join, recordedPart, WALL_START_MS } from '../../test/support/joined-file.ts';
import { fakeAudio, fakeVideo, meta } from '../../test/support/recorded-file.ts';
import type { NalParameters } from '../codec/access-unit.ts';
import { JoinError } from './join-error.ts';
import { userData } from './meta.ts';
import { MOVIE_TIMESCALE } from './movie.ts';
import { parseSampleIndex } from './sample-index.ts';

const FRAME_MS = 40;
/** Makes the plan readable as a file of the archive. */
const described = (): Buffer =>
  userData({ ...meta, wallDurationMs: 0, mediaDurationMs: 0, lostPackets: 0, tracks: [] });

/** Pictures whose bytes contain the numbers of their part and their position. */
function pictures(part: number, count: number, reorder: number, group: number): Encoded<NalParameters> {
  const { parameters, samples } = fakeVideo(count);
  return {
    parameters,
    samples: samples.map((sample, i) => {
      const bytes = Buffer.alloc(12 + ((i * 7) % 50));
      bytes.writeUInt32BE(bytes.length - 4);
      bytes.writeUInt8(0x65, 4);
      bytes.writeUInt8(part, 5);
      bytes.writeUInt16BE(i, 6);
      const place = i % group;
      // Pairs of pictures are decoded in the reverse order of display.
      const swap =
        reorder === 0 || place === 0 || (place === group - 1 && place % 2 === 1) ? 0 : place % 2 === 1 ? 1 : -1;
      const last = swap === 1 && i + 1 >= count;
      const sync = place === 0;
      return { ...sample, bytes, size: bytes.length, sync, compositionOffset: (reorder + (last ? 0 : swap)) * 3600 };
    }),
  };
}

const partOptions = fc.record({
  frames: fc.integer({ min: 1, max: 60 }),
  reorder: fc.constantFrom(0, 1),
  group: fc.integer({ min: 1, max: 30 }),
  sound: fc.boolean(),
  gapMs: fc.integer({ min: 0, max: 5_000 }),
});

test('every plan has its window, its pictures once and in order, and bytes that are where it says', async () => {
  const cases = fc.tuple(
    fc.array(partOptions, { minLength: 1, maxLength: 4 }),
    fc.integer({ min: -2_000, max: 12_000 }),
    fc.integer({ min: 1, max: 12_000 }),
  );
  await fc.assert(
    fc.asyncProperty(cases, async ([options, offsetMs, lengthMs]) => {
      let wallStartMs = WALL_START_MS;
      const window = { fromMs: WALL_START_MS + offsetMs, toMs: WALL_START_MS + offsetMs + lengthMs };
      const expected: number[] = [];
      let coveredMs = 0;
      const parts = options.map(({ frames, reorder, group, sound, gapMs }, part) => {
        const video = pictures(part, frames, reorder, group);
        const origin = reorder * 3600;
        video.samples
          .map(({ dts, compositionOffset }, i) => ({
            i,
            shownMs: wallStartMs + (dts + compositionOffset - origin) / 90,
          }))
          .sort((a, b) => a.shownMs - b.shownMs)
          .forEach(({ i, shownMs }) => {
            if (shownMs >= window.toMs || shownMs + FRAME_MS <= window.fromMs) return;
            expected.push(part * 1000 + i);
          });
        const endMs = wallStartMs + frames * FRAME_MS;
        coveredMs += Math.max(0, Math.min(endMs, window.toMs) - Math.max(wallStartMs, window.fromMs));
        const audio = sound ? fakeAudio(Math.ceil((frames * FRAME_MS * 48) / 1024)) : undefined;
        const bytes = recordedPart(video, { run: 'abcd'[part] ?? 'a', wallStartMs, audio });
        wallStartMs = endMs + gapMs;
        return bytes;
      });
      const joined = await join(parts, window, { describe: described }).catch((err: unknown) => err);
      if (joined instanceof JoinError) return assert.deepEqual(expected, []);
      if (joined instanceof Error) throw joined;
      const { plan, bytes } = joined as Awaited<ReturnType<typeof join>>;
      assert.equal(bytes.length, plan.sizeBytes);

      const moovAt = bytes.indexOf('moov') - 4;
      const moov = bytes.subarray(moovAt, moovAt + bytes.readUInt32BE(moovAt));
      const tracks = parseSampleIndex(moov, bytes.length).tracks;
      const [video] = tracks;
      assert.ok(video);
      // The movie's time 0 is given by its edit list; decoding times must increase.
      const endTicks = (plan.durationMs * MOVIE_TIMESCALE) / 1000;
      const seen = Array.from(video.offsets, (offset, i) => ({
        number: bytes.readUInt8(offset + 5) * 1000 + bytes.readUInt16BE(offset + 6),
        ticks: (video.dts[i] as number) + (video.compositionOffsets[i] as number),
      }))
        .filter(({ ticks }) => ticks >= 0 && ticks < endTicks)
        .sort((a, b) => a.ticks - b.ticks);
      assert.deepEqual(
        seen.map(({ number }) => number),
        expected,
      );
      assert.equal(new Set(seen.map(({ ticks }) => ticks)).size, seen.length, 'no two pictures at one time');
      for (const { dts, endDts } of tracks) {
        dts.forEach((time, i) => assert.ok(i === 0 || time > (dts[i - 1] as number), 'decoding times grow'));
        assert.ok(endDts > (dts.at(-1) as number));
      }
      assert.ok(Math.abs(plan.durationMs - coveredMs) < 1, `${plan.durationMs} ms for ${coveredMs}`);
      const gapMs = plan.gaps.reduce((sum, gap) => sum + gap.toMs - gap.fromMs, 0);
      // Gaps shorter than 100 ms are not listed.
      assert.ok(Math.abs(gapMs + plan.durationMs - lengthMs) < 100 * (parts.length + 1));
      const [first] = seen;
      assert.equal(first?.ticks, 0, 'a picture is on screen when the movie begins');
    }),
    { numRuns: 150 },
  );
});
