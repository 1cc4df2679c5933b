import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RtpClock } from './rtp-clock.ts';

test('of pictures with the same timestamp, each is after the one before it', () => {
  const clock = new RtpClock(90_000);
  const times = [0, 3_600, 3_600, 3_600, 7_200].map((timestamp, i) => {
    clock.push(timestamp, i * 40, 1_000, false);
    return clock.mediaMs;
  });
  for (const [i, ms] of times.entries()) if (i > 0) assert.ok(ms > (times[i - 1] as number), times.join());
});

test('a picture in decoding order may have the timestamp of another one', () => {
  const clock = new RtpClock(90_000);
  for (const timestamp of [0, 3_600, 3_600]) clock.push(timestamp, 0, 1_000, true);
  assert.equal(clock.mediaMs, 40);
});
