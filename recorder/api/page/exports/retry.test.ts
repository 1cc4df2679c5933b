// What is offered for a job that failed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isoTime } from '../../times.ts';
import type { Job } from './jobs.ts';
import { retryOf } from './retry.ts';

const job = (changes: Partial<Job>): Job => ({
  job_id: 'j1',
  camera_id: 'gate',
  created_at: 1,
  kind: 'export',
  state: 'failed',
  progress: 0,
  from_ms: 1_000_000,
  to_ms: 2_000_000,
  ...changes,
});
const cameras = ['gate', 'gate-2', 'hall'].map((camera_id) => ({ camera_id }));
const changed = (ms: number): string =>
  `the camera changes its codec too often: request the footage before and after ${isoTime(ms)} separately`;

test('a case is made again without the camera that its reason names', () => {
  assert.deepEqual(retryOf(job({ cameras, reason: `camera gate-2: ${changed(1_500_000)}` })), {
    kind: 'without-camera',
    cameraId: 'gate-2',
    cameras: ['gate', 'hall'],
    window: { startMs: 1_000_000, endMs: 2_000_000 },
  });
  assert.equal(retryOf(job({ cameras: cameras.slice(0, 1), reason: 'camera gate: no' })), undefined);
  assert.equal(retryOf(job({ cameras, reason: 'no space is left for the result' })), undefined);
});

test('an export is made again in two parts, before and after the moment that its reason names', () => {
  assert.deepEqual(retryOf(job({ reason: changed(1_500_000) })), {
    kind: 'in-two',
    parts: [
      { startMs: 1_000_000, endMs: 1_500_000 },
      { startMs: 1_500_000, endMs: 2_000_000 },
    ],
  });
});

test('nothing is offered for another reason, a moment that is not within the window, or a job that did not fail', () => {
  for (const changes of [
    {},
    { reason: 'ffmpeg failed: no' },
    { reason: changed(1_000_000) },
    { reason: changed(2_000_000) },
    { reason: changed(1_500_000), kind: 'timelapse' },
    { reason: changed(1_500_000), state: 'done' },
    { reason: changed(1_500_000).replace(/\d{4}-/, 'x') },
  ] as const) {
    assert.equal(retryOf(job(changes)), undefined, JSON.stringify(changes));
  }
});
