// Records files from numbered pictures, joins them, and decodes the result with ffmpeg.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { decodePictures } from '../../test/camera/frame-numbers.ts';
import { encodeAudio } from '../../test/support/encoded-samples.ts';
import {
  between,
  join,
  numberedVideo,
  recordedPart,
  wallWindow,
  WALL_START_MS,
} from '../../test/support/joined-file.ts';
import { probe } from '../../test/support/probe.ts';
import { JoinError } from './join-error.ts';

const directory = mkdtempSync(joinPath(tmpdir(), 'join-'));
after(() => rmSync(directory, { recursive: true, force: true }));

const run = promisify(execFile);
const SECOND = 90_000;
const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

let files = 0;
async function shown(bytes: Buffer): Promise<{ numbers: number[]; complaints: string; seconds: number; file: string }> {
  const file = joinPath(directory, `${files++}.mp4`);
  writeFileSync(file, bytes);
  const decoded = await decodePictures(file);
  return { ...decoded, seconds: (await probe(file)).durationSeconds, file };
}

/** A decoder that starts at the key frame of an open group reports missing pictures that are not needed. */
const complaintsOf = ({ complaints }: { complaints: string }): string =>
  complaints.replace(/^\[h264 @ 0x[0-9a-f]+\] mmco: unref short failure$/gm, '').trim();

const plain = numberedVideo(directory);
const reordered = numberedVideo(directory, { encoder: 'keyint=25:min-keyint=25:scenecut=0:bframes=3:b-adapt=0' });
const openGroups = numberedVideo(directory, {
  encoder: 'keyint=25:min-keyint=25:scenecut=0:bframes=3:b-adapt=0:open-gop=1',
});
const later = numberedVideo(directory, { firstNumber: 1000 });
const larger = numberedVideo(directory, { firstNumber: 2000, size: '320x192' });
const aac = encodeAudio(directory, 'aac', 4);

for (const [name, video] of Object.entries({ plain, 'with B-frames': reordered, 'with open groups': openGroups })) {
  test(`${name}: a window within one file shows exactly its pictures, for exactly its time`, async () => {
    const file = recordedPart(video);
    for (const [fromMs, toMs, first, end] of [
      [0, 4000, 0, 100],
      [1000, 2000, 25, 50],
      [1520, 3080, 38, 77],
      // The picture on screen at 1.53 s is the one captured at 1.52 s.
      [1530, 3090, 38, 78],
      [2960, 3000, 74, 75],
    ] as const) {
      const { plan, bytes } = await join([file], wallWindow(fromMs, toMs));
      const seen = await shown(bytes);
      assert.deepEqual(seen.numbers, numbers(first, end), `${fromMs} to ${toMs}`);
      assert.equal(complaintsOf(seen), '');
      assert.equal(Math.round(seen.seconds * 1000), toMs - fromMs);
      assert.equal(Math.round(plan.durationMs), toMs - fromMs);
      assert.deepEqual(plan.gaps, []);
      assert.equal(plan.sizeBytes, bytes.length);
    }
  });

  test(`${name}: over the border of two files of one run no picture is lost, doubled or moved`, async () => {
    const first = recordedPart(between(video, 0, 2 * SECOND), { sequence: 4 });
    const second = recordedPart(between(video, 2 * SECOND, 9 * SECOND), {
      sequence: 5,
      wallStartMs: WALL_START_MS + 2000,
    });
    const { plan, bytes } = await join([first, second], wallWindow(1520, 3080));
    const seen = await shown(bytes);
    assert.deepEqual(seen.numbers, numbers(38, 77));
    assert.equal(Math.round(seen.seconds * 1000), 1560);
    assert.deepEqual(plan.gaps, []);
    const whole = await shown((await join([recordedPart(video)], wallWindow(1520, 3080))).bytes);
    assert.deepEqual(await presentationTimes(seen.file), await presentationTimes(whole.file));
  });

  test(`${name}: what follows a gap comes after the last picture before it`, async () => {
    const first = recordedPart(between(video, 0, 2 * SECOND));
    const second = recordedPart(later, { run: 'b', wallStartMs: WALL_START_MS + 60_000 });
    const { plan, bytes } = await join([first, second], wallWindow(1520, 62_000));
    const seen = await shown(bytes);
    assert.deepEqual(seen.numbers, [...numbers(38, 50), ...numbers(1000, 1050)]);
    assert.equal(complaintsOf(seen), '');
    const endMs = Math.round((plan.gaps[0]?.fromMs ?? 0) - WALL_START_MS);
    assert.deepEqual(plan.gaps, [{ fromMs: WALL_START_MS + endMs, toMs: WALL_START_MS + 60_000 }]);
    assert.equal(endMs, 2000);
    assert.equal(Math.round(seen.seconds * 1000), 480 + 2000);
  });
}

test('a stream that reorders after one that does not: no picture is held for long, none is lost', async () => {
  const first = recordedPart(later);
  const second = recordedPart(reordered, { run: 'b', wallStartMs: WALL_START_MS + 5_000 });
  const { bytes } = await join([first, second], wallWindow(0, 9_000));
  const seen = await shown(bytes);
  assert.deepEqual(seen.numbers, [...numbers(1000, 1100), ...numbers(0, 100)]);
  assert.equal(Math.round(seen.seconds * 1000), 8000);
  const times = await presentationTimes(seen.file);
  times.forEach((seconds, i) => assert.ok(Math.abs(seconds - i / 25) < 0.001, `picture ${i} at ${seconds} s`));
});

test('another resolution is followed within one track, whose size is the larger', async () => {
  const parts = [
    recordedPart(later),
    recordedPart(larger, { run: 'b', wallStartMs: WALL_START_MS + 10_000 }),
    recordedPart(plain, { run: 'c', wallStartMs: WALL_START_MS + 20_000 }),
  ];
  const { bytes } = await join(parts, wallWindow(0, 24_000));
  const seen = await shown(bytes);
  assert.deepEqual(seen.numbers, [...numbers(1000, 1100), ...numbers(2000, 2100), ...numbers(0, 100)]);
  assert.equal(seen.complaints, '');
  const tkhd = bytes.indexOf('tkhd');
  assert.deepEqual([bytes.readUInt32BE(tkhd + 80) / 65_536, bytes.readUInt32BE(tkhd + 84) / 65_536], [320, 192]);
});

test('picture parameters that a camera changed in band are in force where a window begins behind the change', async () => {
  const encoder = 'keyint=25:min-keyint=25:scenecut=0:bframes=1:b-adapt=0';
  const before = numberedVideo(directory, { frames: 50, encoder: `${encoder}:cabac=0` });
  const behind = numberedVideo(directory, { frames: 100, firstNumber: 50, encoder: `${encoder}:cabac=1` });
  assert.deepEqual(behind.parameters.sps, before.parameters.sps);
  const pps = behind.parameters.pps[0] as Buffer;
  assert.notDeepEqual(pps, before.parameters.pps[0]);
  const size = Buffer.alloc(4);
  size.writeUInt32BE(pps.length);
  // As an encoder sends it: with the first key frame that needs it, and not repeated.
  const changed = behind.samples.map((sample, i) => {
    const bytes = i === 0 ? Buffer.concat([size, pps, sample.bytes]) : sample.bytes;
    return { ...sample, bytes, size: bytes.length, dts: sample.dts + 2 * SECOND };
  });
  const file = recordedPart({ parameters: before.parameters, samples: [...before.samples, ...changed] });
  const next = recordedPart(before, { run: 'b', wallStartMs: WALL_START_MS + 10_000 });
  const inside = await shown((await join([file], wallWindow(3_520, 5_000))).bytes);
  assert.deepEqual([inside.numbers, inside.complaints], [numbers(88, 125), '']);
  const over = await shown((await join([file, next], wallWindow(1_520, 12_000))).bytes);
  assert.deepEqual([over.numbers, over.complaints], [[...numbers(38, 150), ...numbers(0, 50)], '']);
});

test('H.265 is cut and joined as well', async () => {
  const video = numberedVideo(directory, { codec: 'h265', encoder: 'keyint=25:min-keyint=25:scenecut=0:bframes=2' });
  const parts = [recordedPart(video), recordedPart(video, { run: 'b', wallStartMs: WALL_START_MS + 10_000 })];
  const { bytes } = await join(parts, wallWindow(1520, 11_000));
  const seen = await shown(bytes);
  assert.deepEqual(seen.numbers, [...numbers(38, 100), ...numbers(0, 25)]);
});

test('another video codec is refused with the time of the change', async () => {
  const video = numberedVideo(directory, { codec: 'h265', frames: 25 });
  const parts = [recordedPart(plain), recordedPart(video, { run: 'b', wallStartMs: WALL_START_MS + 10_000 })];
  await assert.rejects(join(parts, wallWindow(0, 11_000)), (err) => {
    assert.ok(err instanceof JoinError);
    assert.deepEqual([err.code, err.wallMs], ['CODEC_CHANGED', WALL_START_MS + 10_000]);
    return true;
  });
});

test('a window in which nothing is on screen is refused', async () => {
  for (const [from, to] of [
    [-2000, 0],
    [4000, 5000],
  ] as const) {
    await assert.rejects(join([recordedPart(plain)], wallWindow(from, to)), { code: 'NO_FOOTAGE' });
  }
});

test('sound stays with its pictures over a gap and over a part without sound', async () => {
  const parts = [
    recordedPart(plain, { audio: aac }),
    recordedPart(later, { run: 'b', wallStartMs: WALL_START_MS + 10_000 }),
    recordedPart(plain, { run: 'c', wallStartMs: WALL_START_MS + 20_000, audio: aac }),
  ];
  const { plan, bytes } = await join(parts, wallWindow(1530, 23_000));
  const seen = await shown(bytes);
  assert.deepEqual(seen.numbers, [...numbers(38, 100), ...numbers(1000, 1100), ...numbers(0, 75)]);
  assert.equal(seen.complaints, '');
  const times = await presentationTimes(seen.file, 'a');
  const frame = 1024 / 48_000;
  const third = plan.parts[2]?.movieStartMs ?? 0;
  assert.ok(Math.abs((times[0] ?? 1) - 0) <= frame, `sound begins at ${times[0]}`);
  const back = times.find((seconds) => seconds > 4) ?? 0;
  assert.ok(Math.abs(back - third / 1000) <= frame, `sound is back at ${back} s for ${third} ms`);
  // A player may start within the first frame; all other frames are where they were recorded.
  for (const seconds of times.slice(1)) {
    const source = seconds < 4 ? seconds + 1.53 : seconds - third / 1000;
    const off = source / frame - Math.round(source / frame);
    assert.ok(Math.abs(off) * frame < 0.001, `a frame of sound at ${seconds} s`);
  }
});

test('sound that begins in a later part begins there', async () => {
  const parts = [
    recordedPart(plain),
    recordedPart(later, { run: 'b', wallStartMs: WALL_START_MS + 10_000, audio: aac }),
  ];
  const { bytes } = await join(parts, wallWindow(1000, 14_000));
  const seen = await shown(bytes);
  assert.equal(Math.round(seen.seconds * 1000), 7000);
  const [first = 0] = await presentationTimes(seen.file, 'a');
  assert.ok(Math.abs(first - 3) < 0.022, `sound begins at ${first} s`);
});

test('sound with other parameters is left out, and the plan says so', async () => {
  const opus = encodeAudio(directory, 'opus', 4);
  const parts = [
    recordedPart(plain, { audio: aac }),
    recordedPart(later, { run: 'b', wallStartMs: WALL_START_MS + 10_000, audio: opus }),
  ];
  const { plan, bytes } = await join(parts, wallWindow(0, 14_000));
  assert.deepEqual(
    plan.parts.map(({ soundLeftOut }) => soundLeftOut),
    [false, true],
  );
  assert.equal((await shown(bytes)).numbers.length, 200);
});

/** Times at which frames are shown or heard, in seconds. */
async function presentationTimes(file: string, kind: 'v' | 'a' = 'v'): Promise<number[]> {
  const args = ['-v', 'error', '-select_streams', kind, '-show_entries', 'frame=pts_time', '-of', 'csv=p=0', file];
  const { stdout } = await run('ffprobe', args);
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map(parseFloat);
}
