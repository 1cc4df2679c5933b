import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Job, JobOutcome, JobRequest } from './job.ts';
import { SharedWork } from './shared-work.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const request = { kind: 'export', cameraId: 'gate', fromMs: NOW_MS - 60_000, toMs: NOW_MS - 30_000 } as JobRequest;
const outcome = { sizeBytes: 1, durationMs: 30_000, gaps: [] } as unknown as JobOutcome;
const before = { ...request, id: 'e1', state: 'done', createdAtMs: NOW_MS - 10_000, outcome } as unknown as Job;

/** Whether the result of an earlier job is handed out again. */
async function isShared(earlier: Partial<Job>, asked: Partial<JobRequest> = {}): Promise<boolean> {
  const jobs = async () => [{ ...before, ...earlier } as Job];
  const work = new SharedWork({ results: { share: async () => true }, jobs, wallMs: () => NOW_MS });
  let isMade = false;
  const make = async (): Promise<JobOutcome> => ((isMade = true), outcome);
  await work.once('e2', { ...request, ...asked }, make, new AbortController().signal);
  return !isMade;
}

test('who asks for what was made already gets that result', async () => {
  assert.equal(await isShared({}), true);
});

test('what was made while footage of other nodes was missing is made again', async () => {
  const elsewhere = [{ nodeId: 'b', fromMs: request.fromMs, toMs: request.toMs, online: false }];
  assert.equal(await isShared({ outcome: { ...outcome, elsewhere } as unknown as JobOutcome }), false);
});

test('a window that was not over when it was asked for is made again', async () => {
  assert.equal(await isShared({ createdAtMs: request.toMs - 1 }), false);
  assert.equal(await isShared({}, { toMs: NOW_MS + 1 }), false);
});

test('other cameras, windows and kinds are other work, and a job that failed has no result', async () => {
  for (const other of [{ cameraId: 'yard' }, { fromMs: 0 }, { kind: 'timelapse', speed: 4 }] as Partial<JobRequest>[]) {
    assert.equal(await isShared({}, other), false, JSON.stringify(other));
  }
  assert.equal(await isShared({ state: 'failed' }), false);
});
