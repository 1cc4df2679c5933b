import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { silentLog } from '../../base/log.ts';
import { runOf, segmentPaths } from '../archive/test-support.ts';
import { openFootage } from '../footage/open.ts';
import { Authenticator } from '../http/auth.ts';
import { openPlayback } from './app.ts';
import type { KeyFrame } from './key-frame.ts';
import { stage, type Stage } from './test-support.ts';

type Options = Parameters<typeof stage>[1];

/** Milliseconds count from the first picture of the camera; it has a key frame every second. */
async function setup(t: TestContext, options: Options = {}) {
  const stand: Stage = await stage(t, { segmentDurationMs: 10_000, ...options });
  const { archive, clock, root } = stand;
  const auth = new Authenticator({ mode: 'none', tokens: [] }, { clock });
  const footage = openFootage({ recordPath: root, archive, clock, log: silentLog });
  const { keyFrameAt } = openPlayback({ version: '', footage, auth, clock, log: silentLog });
  const startMs = stand.start * 1000;
  const find = (atMs: number): Promise<KeyFrame | undefined> => keyFrameAt('gate', startMs + atMs);
  const timeAt = async (atMs: number): Promise<number | undefined> => {
    const found = await find(atMs);
    return found && found.timeMs - startMs;
  };
  /** As the picture itself says. */
  const carriedAt = async (atMs: number): Promise<number | undefined> => {
    const picture = await (await find(atMs))?.read();
    return picture && (picture.readUIntBE(5, 6) - 900_000) / 90;
  };
  return { ...stand, startMs, find, timeAt, carriedAt };
}

for (const format of ['fmp4', 'mp4'] as const) {
  test(`${format}: the picture of a moment is the newest key frame at or before it, in every file`, async (t) => {
    const { camera, fs, timeAt, carriedAt } = await setup(t, { format });
    camera.begin();
    await camera.play(35, fs);
    camera.end('camera-lost');
    await fs.idle();
    for (const atMs of [0, 1, 40, 999, 1_000, 1_001, 6_500, 9_999, 10_000, 10_001, 19_960, 27_123, 34_999]) {
      const expected = Math.floor(atMs / 1000) * 1000;
      assert.deepEqual([await timeAt(atMs), await carriedAt(atMs)], [expected, expected], `${atMs}`);
    }
  });
}

test('a picture is found at its reported time, also if that was rounded', async (t) => {
  const { camera, clock, fs, timeAt, find, startMs } = await setup(t);
  clock.advance(0.7);
  camera.begin();
  await camera.play(5, fs);
  camera.end('camera-lost');
  await fs.idle();
  const { timeMs = NaN } = (await find(3_500)) ?? {};
  assert.equal(timeMs, startMs + 3_000);
  assert.equal(await timeAt(timeMs - startMs), 3_000);
  assert.equal(await timeAt(0), 0);
});

test('there is none in gaps, before the first picture and in the future', async (t) => {
  const { camera, clock, fs, timeAt } = await setup(t);
  clock.advance(20_000);
  camera.begin();
  await camera.play(5, fs);
  camera.end('camera-lost');
  await fs.idle();
  clock.advance(60_000);
  camera.begin(runOf({ runId: '00000000000000bb' }));
  await camera.play(5, fs);
  camera.end('camera-lost');
  await fs.idle();
  assert.deepEqual(await Promise.all([0, 19_999, 25_200, 84_999, 90_200, 1e9].map(timeAt)), Array(6).fill(undefined));
  assert.deepEqual(await Promise.all([20_000, 24_999, 85_000].map(timeAt)), [20_000, 24_000, 85_000]);
});

test('at the end of what is recorded the picture changes; before, nothing does', async (t) => {
  const { camera, fs, find, startMs, clock } = await setup(t, { segmentDurationMs: 60_000 });
  camera.begin();
  await camera.play(20, fs);
  const seen = async (atMs: number): Promise<unknown> => {
    const found = await find(atMs);
    return found && [found.timeMs - startMs, found.isSettled];
  };
  assert.deepEqual(await seen(12_345), [12_000, true]);
  const last = await find(clock.wallMs() - startMs);
  assert.ok(last && !last.isSettled && clock.wallMs() - last.timeMs < 3_000, `${last?.timeMs}`);
  await camera.play(5, fs);
  assert.deepEqual(await seen(19_900), [19_000, true]);
  camera.end('camera-lost');
  await fs.idle();
  assert.deepEqual(await seen(24_900), [24_000, true]);
  clock.advance(1_000);
  assert.deepEqual(await seen(25_050), [24_000, false], 'the next file may begin here');
});

test('a file that is removed meanwhile has no picture', async (t) => {
  const { camera, fs, find, root } = await setup(t);
  camera.begin();
  await camera.play(15, fs);
  camera.end('camera-lost');
  await fs.idle();
  const found = await find(12_000);
  for (const path of segmentPaths(root)) rmSync(join(root, path));
  assert.equal(await found?.read(), undefined);
});
