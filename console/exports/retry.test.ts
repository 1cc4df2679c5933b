// What is offered for a job that failed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Job } from '../app/answers.ts';
import { retryOf } from './retry.ts';

const job = (changes: Partial<Job>): Job => ({
  job_id: 'j1',
  camera_id: 'gate',
  created_at: 1,
  created_at_ms: 1_000,
  kind: 'export',
  state: 'failed',
  progress: 0,
  from_ms: 1_000_000,
  to_ms: 2_000_000,
  ...changes,
});

test('a case is requested again without the camera that made it fail', () => {
  const cameras = ['gate', 'gate-2', 'hall'].map((camera_id) => ({ camera_id }));
  assert.deepEqual(retryOf(job({ cameras, retry: { without_camera: 'gate-2' } })), {
    kind: 'without-camera',
    cameraId: 'gate-2',
    cameras: ['gate', 'hall'],
    window: { startMs: 1_000_000, endMs: 2_000_000 },
  });
});

test('an export is requested again in two parts, before and after the moment that the recorder names', () => {
  assert.deepEqual(retryOf(job({ retry: { split_at_ms: 1_500_000 } })), {
    kind: 'in-two',
    parts: [
      { startMs: 1_000_000, endMs: 1_500_000 },
      { startMs: 1_500_000, endMs: 2_000_000 },
    ],
  });
});

test('nothing is offered where the recorder names nothing, or while the window is not known', () => {
  for (const changes of [{}, { reason: 'ffmpeg failed' }, { retry: {} }] as const) {
    assert.equal(retryOf(job(changes)), undefined, JSON.stringify(changes));
  }
  const { from_ms: _, ...unknown } = job({ retry: { split_at_ms: 1_500_000 } });
  assert.equal(retryOf(unknown), undefined);
});
