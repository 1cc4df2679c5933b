import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CameraError, NoConnection, Unanswered } from './error.ts';
import type { CameraErrorCode } from './error.ts';
import { RetryPolicy } from './retry.ts';

type Failure = CameraErrorCode | 'away' | 'unanswered';

/** One camera's failures in order, with a clock that the pauses advance. */
class Failures {
  readonly #policy = new RetryPolicy(() => 0.5);
  nowMs = 1_000_000;

  /** The pause after a connection that took `tookMs` and recorded for `recordedMs` of it. */
  fail(code: Failure, recordedMs = 0, tookMs = recordedMs): number {
    this.nowMs += tookMs;
    const error =
      code === 'away'
        ? new NoConnection('x')
        : code === 'unanswered'
          ? new Unanswered('x')
          : new CameraError(code, 'x');
    const pauseMs = this.#policy.next(error, recordedMs, this.nowMs);
    this.nowMs += pauseMs;
    return pauseMs;
  }

  /** The pauses of `count` failures in a row. */
  times(count: number, code: Failure, recordedMs = 0, tookMs = recordedMs): number[] {
    return Array.from({ length: count }, () => this.fail(code, recordedMs, tookMs));
  }
}

const LADDER = [1_000, 1_800, 3_600, 7_200, 14_400, 27_000, 27_000];

test('retry: refusals are asked less and less often, up to 30 s apart', () => {
  for (const code of ['too-many-streams', 'not-found', 'protocol'] as const) {
    assert.deepEqual(new Failures().times(7, code), LADDER, code);
  }
});

test('retry: a wrong password is sent fewer than seven times in half an hour, after a few tries', () => {
  const camera = new Failures();
  const pauses = camera.times(16, 'refused-login');
  assert.deepEqual(pauses.slice(0, 6), [1_000, 1_800, 3_600, 7_200, 14_400, 28_800]);
  assert.deepEqual(
    pauses.slice(9),
    [...Array(7)].map(() => 270_000),
  );
  assert.deepEqual(camera.times(1, 'not-found'), [27_000], 'what is no login is asked for as before');
  camera.fail('away');
  assert.equal(camera.fail('refused-login'), 1_000, 'it may be another camera');
});

test('retry: a session that recorded for more than 10 s is followed by another at once', () => {
  const camera = new Failures();
  camera.times(7, 'protocol');
  for (const code of ['closed-by-camera', 'stream-silent', 'not-decodable'] as const) {
    assert.ok(camera.fail(code, 11_000) <= 50, code);
  }
});

test('retry: a session that recorded for a moment begins the ladder again', () => {
  const camera = new Failures();
  camera.times(7, 'protocol');
  assert.deepEqual(camera.times(3, 'closed-by-camera', 2_500), [1_000, 1_000, 1_000]);
});

test('retry: some pictures and then none that can be decoded, again and again, is no success', () => {
  assert.deepEqual(new Failures().times(7, 'not-decodable', 2_000, 14_000), LADDER);
});

test('retry: while nothing answers at the port it is tried each second, for good', () => {
  const camera = new Failures();
  camera.times(7, 'refused-login');
  assert.deepEqual([...new Set(camera.times(3_600, 'away'))], [1_000]);
});

test('retry: jitter spreads the tries of many cameras', () => {
  for (const [random, pauseMs] of [
    [0, 800],
    [0.999_999, 1_200],
  ] as const) {
    assert.equal(new RetryPolicy(() => random).next(new NoConnection('x'), 0, 0), pauseMs);
  }
});

test('retry: what a camera refuses while it starts is asked each 2 s, for 30 s since its port answered', () => {
  const camera = new Failures();
  camera.fail('closed-by-camera', 3_600_000);
  camera.times(20, 'away');
  const codes: CameraErrorCode[] = ['not-found', 'too-many-streams', 'refused-login'];
  const pauses = Array.from({ length: 24 }, (_, i) => camera.fail(codes[i % 3] ?? 'protocol'));
  assert.deepEqual(
    pauses.slice(0, 15),
    Array.from({ length: 15 }, () => 2_000),
  );
  assert.deepEqual(pauses.slice(15, 22), LADDER.with(5, 28_800), 'reasons that change do not begin it again');
  camera.fail('away');
  assert.equal(camera.fail('not-found'), 2_000, 'the camera starts once more');
});

test('retry: a login that never was right is not tried often when the camera starts', () => {
  const camera = new Failures();
  camera.times(20, 'away');
  assert.deepEqual(camera.times(4, 'refused-login'), LADDER.slice(0, 4));
});

test('retry: a camera that has recorded, and of which only the port answers while it starts again, is tried each 2 s', () => {
  const camera = new Failures();
  camera.fail('closed-by-camera', 3_600_000);
  assert.deepEqual([...new Set(camera.times(60, 'unanswered'))], [2_000]);
  assert.equal(camera.fail('not-found'), 2_000, 'it answers, and is still starting');
  assert.deepEqual(new Failures().times(7, 'unanswered'), LADDER, 'a camera that never recorded may refuse us');
});
