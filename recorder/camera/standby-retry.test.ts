import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CameraError, NoConnection } from './error.ts';
import { StandbyRetry } from './standby-retry.ts';

const REFUSED = new CameraError('too-many-streams', '453 Not Enough Bandwidth');
const CLOSED = new CameraError('closed-by-camera', 'the camera closed the connection');

const seconds = (retry: StandbyRetry, failure: CameraError, recordedMs = 0): number =>
  Math.round(retry.next(failure, recordedMs) / 1_000);

test('a camera that refuses a second connection is asked less and less often', () => {
  const retry = new StandbyRetry(() => 0);
  const waits = Array.from({ length: 10 }, () => seconds(retry, REFUSED));
  assert.deepEqual(waits, [10, 20, 40, 80, 160, 320, 640, 1_280, 1_800, 1_800]);
});

test('a camera that drops one client for another is left to the node that records it after two attempts', () => {
  const retry = new StandbyRetry(() => 0);
  assert.deepEqual(
    [seconds(retry, CLOSED, 3_000), seconds(retry, CLOSED, 2_000), seconds(retry, REFUSED)],
    [10, 1_800, 1_800],
  );
});

test('a camera that was away, and one that was lost for another reason, is not taken for one that drops clients', () => {
  const ends = [
    ['the camera was restarted in between', CLOSED, 3_000, new NoConnection('refused')],
    [
      'the link to it was down',
      new CameraError('stream-silent', 'no video for 10 s'),
      3_000,
      new NoConnection('timeout'),
    ],
    ['nobody takes it back so late', CLOSED, 30_000, undefined],
    ['this node ended it', new CameraError('no-key-frame', 'no key frame'), 3_000, undefined],
  ] as const;
  for (const [what, failure, recordedMs, between] of ends) {
    const retry = new StandbyRetry(() => 0);
    const waits = [0, 1, 2].map(() => {
      const wait = seconds(retry, failure, recordedMs);
      if (between) retry.next(between, 0);
      return wait;
    });
    assert.deepEqual(waits, [10, 20, 40], what);
  }
});

test('a connection that lasted clears a camera, and one that is away is knocked at', () => {
  const retry = new StandbyRetry(() => 0);
  for (let i = 0; i < 5; i++) retry.next(CLOSED, 1_000);
  assert.equal(seconds(retry, CLOSED, 61_000), 1);
  assert.equal(seconds(retry, new NoConnection('refused'), 0), 5);
  assert.equal(seconds(retry, REFUSED), 10);
});
