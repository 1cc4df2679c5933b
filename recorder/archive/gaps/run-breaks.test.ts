import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import type { EndReason } from '../../contract/sink.ts';
import { TestCamera } from '../test-support.ts';
import { RunBreaks } from './run-breaks.ts';

const START_MS = Date.UTC(2026, 0, 1, 12);
const FRAME_TICKS = 3_600;

function stage() {
  const told: (readonly [fromMs: number, toMs: number, what: string | number])[] = [];
  const since = (ms: number): number => Math.round(ms - START_MS);
  const breaks = new RunBreaks({
    missed: (fromMs, toMs, cause) => void told.push([since(fromMs), since(toMs), cause]),
    picture: (fromMs, toMs, lost) => void (lost > 0 && told.push([since(fromMs), since(toMs), lost])),
  });
  const clock = new VirtualClock(START_MS);
  return { told, breaks, clock, camera: new TestCamera(clock, breaks, () => {}) };
}

test('a break begins where the last picture ends, and ends where the next begins', async () => {
  const causes: readonly (readonly [EndReason, string | undefined])[] = [
    ['gap', 'packets-lost'],
    ['stalled', 'camera-stalled'],
    ['clock', 'clock-step'],
    ['camera-lost', 'connection-lost'],
    ['no-key-frame', 'no-key-frame'],
    ['parameters', undefined],
    ['stopped', undefined],
  ];
  for (const [reason, cause] of causes) {
    const { told, clock, camera } = stage();
    camera.begin();
    await camera.play(1);
    clock.advance(3_000);
    camera.end(reason);
    assert.deepEqual(told, [], 'not before the next run');
    camera.begin();
    await camera.play(1);
    assert.deepEqual(told, cause === undefined ? [] : [[1_000, 4_000, cause]], reason);
  }
});

test('a run that begins before the last one ended says why anyway', () => {
  const { told, clock, camera } = stage();
  camera.begin();
  camera.video();
  camera.end('clock');
  clock.stepWall(-500);
  camera.begin();
  camera.video();
  assert.deepEqual(told, [[-501, -500, 'clock-step']]);
});

test('a camera that fails meanwhile says more of a lost connection, and nothing of lost packets', () => {
  for (const [reason, expected] of [
    ['gap', [[40, 5_000, 'packets-lost']]],
    ['camera-lost', []],
  ] as const) {
    const { told, breaks, camera } = stage();
    camera.begin();
    camera.video();
    camera.end(reason);
    breaks.interrupted(START_MS + 5_000);
    assert.deepEqual(told, expected);
    camera.clock.advance(9_000);
    camera.begin();
    camera.video();
    assert.deepEqual(told, expected, 'once');
  }
});

test('pictures are lost where packets were, one for each usual distance, and none at the beginning of a run', () => {
  const { told, camera } = stage();
  camera.begin();
  camera.video({ lostPackets: 7 });
  camera.video({ lostPackets: 7, ticks: 4 * FRAME_TICKS });
  camera.video({ lostPackets: 1, ticks: 4 * FRAME_TICKS });
  camera.video();
  assert.deepEqual(told, [[200, 240, 3]]);
});

test('a picture that is lost damages those after it up to the next key frame', () => {
  const decodable: boolean[] = [];
  const breaks = new RunBreaks({
    missed() {},
    picture: (_fromMs, _toMs, _lost, isDecodable) => void decodable.push(isDecodable),
  });
  const camera = new TestCamera(new VirtualClock(START_MS), breaks, () => {});
  camera.begin();
  camera.video({ sync: true });
  camera.video({ sync: false });
  camera.video({ sync: false, lostPackets: 1, ticks: 2 * FRAME_TICKS });
  camera.video({ sync: false, lostPackets: 1, ticks: FRAME_TICKS });
  camera.video({ sync: true });
  camera.video({ sync: false });
  assert.deepEqual(decodable, [true, true, true, false, true, true]);
});
