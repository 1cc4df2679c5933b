import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Rates } from './rates.ts';

function stage() {
  const rates = new Rates();
  let [nowMs, bytesReceived, videoFrames] = [5_000, 0, 0];
  return {
    rates,
    run: (seconds: number, framesPerSecond: number, bitsPerSecond = 0): void => {
      for (let tick = 0; tick < seconds * 4; tick++) {
        nowMs += 250;
        bytesReceived += bitsPerSecond / 32;
        videoFrames += framesPerSecond / 4;
        rates.tick(nowMs, { bytesReceived, videoFrames });
      }
    },
  };
}

test('the rates are those of the last ten seconds', () => {
  const { rates, run } = stage();
  assert.deepEqual([rates.bitrate, rates.frameRate], [0, 0]);
  run(20, 25, 4_000_000);
  assert.deepEqual([rates.bitrate, rates.frameRate], [4_000_000, 25]);
  run(5, 15, 2_000_000);
  assert.ok(rates.frameRate > 15 && rates.frameRate < 25 && rates.bitrate < 4_000_000);
  run(10, 15, 2_000_000);
  assert.deepEqual([rates.bitrate, rates.frameRate], [2_000_000, 15]);
});

test('the usual frame rate is known after a minute of pictures, and stays while the camera sends fewer or none', () => {
  const { rates, run } = stage();
  run(50, 25);
  assert.equal(rates.usualFrameRate, undefined);
  run(30, 25);
  assert.equal(rates.usualFrameRate, 25);
  run(20, 5);
  run(600, 0);
  assert.deepEqual([rates.usualFrameRate, rates.frameRate], [25, 0]);
});

test('a frame rate that was set in the camera becomes the usual one', () => {
  const { rates, run } = stage();
  run(3_600, 25);
  run(1_700, 12);
  assert.equal(rates.usualFrameRate, 25);
  run(300, 12);
  assert.equal(rates.usualFrameRate, 12);
});
