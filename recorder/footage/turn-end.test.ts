import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from '../../test/support/fast-check.ts';
import { AUDIO_TRACK_ID, VIDEO_TRACK_ID } from '../mp4/fragment.ts';
import type { SampleIndex, TrackIndex } from '../mp4/sample-index.ts';
import type { FileParts } from '../mp4/parts.ts';
import { VIDEO_TIMESCALE } from '../mp4/sample.ts';
import { timed, type SampleRun } from './sample-runs.ts';
import { indexInTurn, untilTurnEnds } from './turn-end.ts';

const START_MS = Date.UTC(2026, 0, 1);
const TICKS_A_MS = VIDEO_TIMESCALE / 1000;

interface Film {
  readonly pictures: number;
  /** Pictures from one key frame to the next. */
  readonly gop: number;
  readonly ticks: number;
}

const PARTS = {
  meta: { wallStartMs: START_MS, wallDurationMs: 0, mediaDurationMs: 0 },
  headers: [{ trackId: VIDEO_TRACK_ID, timescale: VIDEO_TIMESCALE }],
  shownFrom: 0,
} as unknown as FileParts;

/** In fragments of about a second; picture `i` has `i + 1` bytes. */
async function* fragmentsOf({ pictures, gop, ticks }: Film): AsyncGenerator<readonly SampleRun[]> {
  const each = Math.ceil(VIDEO_TIMESCALE / ticks);
  for (let from = 0; from < pictures; from += each) {
    const numbers = Array.from({ length: Math.min(each, pictures - from) }, (_, i) => from + i);
    const samples = numbers.map((i) => ({ size: i + 1, duration: ticks, compositionOffset: 0, sync: i % gop === 0 }));
    const pieces = [{ offset: 0, size: samples.reduce((sum, { size }) => sum + size, 0) }];
    yield [{ track: { trackId: VIDEO_TRACK_ID, baseDecodeTime: from * ticks, samples }, pieces }];
  }
}

/** `next`: the first pictures of the other node. */
async function playedOf(film: Film, toMs: number, next?: readonly number[]): Promise<number[]> {
  const numbers: number[] = [];
  for await (const runs of untilTurnEnds(fragmentsOf(film), PARTS, { toMs, ...(next && { next }) })) {
    numbers.push(...runs.flatMap(timed).map(({ size }) => size - 1));
  }
  return numbers;
}

/** The same as a sample index, with sound of 50 samples a second. */
function indexOf({ pictures, gop, ticks }: Film): SampleIndex {
  const sounds = Math.ceil((pictures * ticks) / VIDEO_TIMESCALE) * 50;
  const track = (
    trackId: number,
    timescale: number,
    count: number,
    duration: number,
    sync: (i: number) => boolean,
  ) => ({
    header: { trackId, timescale } as TrackIndex['header'],
    offsets: Float64Array.from({ length: count }, (_, i) => trackId * 1e9 + i * 1_000),
    sizes: Uint32Array.from({ length: count }, (_, i) => i + 1),
    dts: Float64Array.from({ length: count }, (_, i) => i * duration),
    compositionOffsets: new Int32Array(count),
    syncs: Uint8Array.from({ length: count }, (_, i) => Number(sync(i))),
    endDts: count * duration,
  });
  return {
    meta: PARTS.meta,
    tracks: [
      track(VIDEO_TRACK_ID, VIDEO_TIMESCALE, pictures, ticks, (i) => i % gop === 0),
      track(AUDIO_TRACK_ID, 8_000, sounds, 160, () => true),
    ],
  };
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

test('an export takes the pictures of a turn that are played, and their sound', async () => {
  const film = { pictures: 500, gop: 25, ticks: VIDEO_TIMESCALE / 25 };
  const starts = upTo(21);
  const headers = indexOf(film).tracks.map(({ header }) => header);
  const parts = { ...PARTS, headers, starts, times: starts.map((part) => part * VIDEO_TIMESCALE), complete: true };
  for (const [toS, next] of [
    [12, undefined],
    [12.1, upTo(8).map((i) => 300 + i + 1)],
    [11.8, upTo(8).map((i) => 300 + i + 1)],
    [12.52, undefined],
  ] as const) {
    const turn = { fromMs: START_MS + 2_500, toMs: START_MS + toS * 1_000, ...(next && { next }) };
    const played = (await playedOf(film, turn.toMs, next)).filter((i) => i >= 75);
    const [video, audio] = (await indexInTurn(indexOf(film), { parts, turn }))?.tracks ?? [];
    assert.deepEqual(
      Array.from(video?.sizes ?? [], (size) => size - 1),
      played,
      `${toS} s`,
    );
    assert.equal(video?.endDts, ((played.at(-1) as number) + 1) * film.ticks);
    assert.equal(audio?.dts[0], 3 * 8_000);
    assert.ok(Math.abs((audio?.endDts ?? 0) / 8_000 - ((played.at(-1) as number) + 1) / 25) < 0.55);
  }
  const over = { fromMs: START_MS + 20_000, toMs: START_MS + 30_000 };
  assert.equal(await indexInTurn(indexOf(film), { parts, turn: over }), undefined);
  const whole = indexOf(film);
  assert.equal(await indexInTurn(whole, { parts }), whole);
});

test('a turn ends before the key frame with which the other node begins, whatever the two clocks say', async () => {
  const film = fc.record({
    fps: fc.constantFrom(5, 12.5, 15, 25, 30, 60),
    gop: fc.integer({ min: 1, max: 250 }),
    gops: fc.integer({ min: 2, max: 12 }),
    last: fc.nat({ max: 200 }),
    seam: fc.nat(),
    skew: fc.double({ min: -0.999, max: 0.999, noNaN: true }),
  });
  await fc.assert(
    fc.asyncProperty(film, async ({ fps, gop, gops, last, seam, skew }) => {
      const ticks = VIDEO_TIMESCALE / fps;
      const begins = gop * (1 + (seam % gops));
      const pictures = Math.max(begins + 1, gop * gops + last);
      const gopMs = (gop * ticks) / TICKS_A_MS;
      const skewMs = skew * Math.min(gopMs / 2, 499);
      const untilMs = START_MS + (begins * ticks) / TICKS_A_MS + skewMs;
      assert.deepEqual(await playedOf({ pictures, gop, ticks }, untilMs), upTo(begins));
    }),
  );
});

test('the pictures with which the other node begins are found by their sizes where the two clocks are up to 2.5 s apart', async () => {
  const film = { pictures: 500, gop: 25, ticks: 3_600 };
  const begins = 250;
  const next = Array.from({ length: 8 }, (_, i) => begins + i + 1);
  for (const offMs of [-2_400, -700, 0, 700, 2_400]) {
    assert.deepEqual(await playedOf(film, START_MS + begins * 40 + offMs, next), upTo(begins), `${offMs} ms`);
  }
  // Those of another encoder, and two equal ones by chance.
  for (const other of [[7, 7, 7], next.slice(0, 2)]) {
    assert.deepEqual(await playedOf(film, START_MS + begins * 40 + 700, other), upTo(begins + 25));
  }
  // The file ends with the third of them, or with the second.
  const ending = (more: number) => playedOf({ ...film, pictures: begins + more }, START_MS + begins * 40 + 700, next);
  assert.deepEqual([(await ending(3)).length, (await ending(2)).length], [begins, begins + 2]);
});

test('without such a key frame it ends where the other node begins, within half a picture', async () => {
  const film = { pictures: 1_000, gop: 500, ticks: 3_600 };
  for (const offMs of [-19, 0, 19]) {
    assert.deepEqual(await playedOf(film, START_MS + 300 * 40 + offMs), upTo(300), `${offMs} ms`);
  }
});

test('a turn has a picture, and one without an end has all', async () => {
  const film = { pictures: 100, gop: 25, ticks: 3_600 };
  assert.deepEqual(await playedOf(film, START_MS + 30), upTo(1));
  assert.deepEqual(await playedOf(film, Infinity), upTo(100));
});
