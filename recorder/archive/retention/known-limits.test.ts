// Footage of cameras that this node does not record any more: they moved, were suspended or deleted.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { nodeFileSystem } from '../disk/file-system.ts';
import { segmentPaths, temporaryDirectory } from '../test-support.ts';
import { KnownLimits } from './known-limits.ts';
import { RetentionBench } from './test-support.ts';

const MINUTE_MS = 60_000;
const FILE = '.kube-nvr/camera-limits.json';

function endRecording(b: RetentionBench): void {
  for (const { camera, recording } of b.all) {
    camera.end();
    void recording.close();
  }
}

const keptIn = (root: string): Record<string, unknown> =>
  (JSON.parse(readFileSync(join(root, FILE), 'utf8')) as { cameras: Record<string, unknown> }).cameras;

test('footage keeps the maxAge of its camera after the camera is gone, and nothing else does', async (t) => {
  const root = temporaryDirectory(t);
  const b = await RetentionBench.start({ root, ids: ['gate', 'yard'], cameras: { gate: { maxAgeMs: MINUTE_MS } } });
  b.begin();
  await b.play(10);
  endRecording(b);
  b.cameras = new Map();
  await b.wait(50_000);
  assert.deepEqual(b.removed, [], 'not before it is too old');
  await b.wait(MINUTE_MS);
  assert.ok(segmentPaths(root).every((path) => path.includes('_yard_')) && segmentPaths(root).length > 0);
  await b.archive.close();
});

test('the limits of a deleted camera survive restarts, until its last footage is gone', async (t) => {
  const root = temporaryDirectory(t);
  const limits = { maxAgeMs: 120 * MINUTE_MS, minFree: { kind: 'bytes', bytes: 1 } } as const;
  const first = await RetentionBench.start({ root, cameras: { gate: limits } });
  first.begin();
  await first.play(10);
  await first.stop();
  const b = await RetentionBench.start({ root, clock: first.clock, ids: [] });
  await b.wait(MINUTE_MS * 100, 10_000);
  assert.deepEqual(b.removed, []);
  assert.deepEqual(keptIn(root), { gate: limits });
  await b.wait(MINUTE_MS * 30, 10_000);
  assert.deepEqual([segmentPaths(root), keptIn(root)], [[], {}]);
  await b.archive.close();
});

test('a limit that was lifted is not kept', async (t) => {
  const root = temporaryDirectory(t);
  const b = await RetentionBench.start({ root, cameras: { gate: { maxAgeMs: MINUTE_MS } } });
  b.begin();
  await b.play(10);
  b.cameras = new Map([['gate', {}]]);
  await b.wait(2_000);
  b.cameras = new Map();
  await b.wait(3 * MINUTE_MS);
  assert.deepEqual(b.removed, []);
  await b.stop();
});

test('protected footage of a deleted camera stays', async (t) => {
  const root = temporaryDirectory(t);
  const b = await RetentionBench.start({ root, cameras: { gate: { maxAgeMs: MINUTE_MS } } });
  b.begin();
  await b.play(10);
  const nowMs = b.clock.wallMs();
  const window = { cameraId: 'gate', fromMs: nowMs - 2_500, toMs: nowMs, untilMs: undefined, note: '', by: undefined };
  await b.archive.protections?.add(window, nowMs);
  endRecording(b);
  b.cameras = new Map();
  await b.wait(3 * MINUTE_MS);
  assert.ok(b.removed.length > 0 && segmentPaths(root).length > 0);
  await b.archive.close();
});

test('a damaged file is reported, and written again with the limits that are known', async (t) => {
  const root = temporaryDirectory(t);
  const first = await RetentionBench.start({ root, cameras: { gate: { maxAgeMs: MINUTE_MS } } });
  first.begin();
  await first.play(10);
  await first.stop();
  writeFileSync(join(root, FILE), '{"version":1,"cameras":{"gate":{"maxAgeMs":"soon"}}}');
  const b = await RetentionBench.start({
    root,
    clock: first.clock,
    ids: [],
    cameras: { gate: { maxAgeMs: 2 * MINUTE_MS } },
  });
  assert.match(JSON.stringify(b.log), /limits of cameras/);
  await b.wait(2_000);
  assert.deepEqual(keptIn(root), { gate: { maxAgeMs: 2 * MINUTE_MS } });
  await b.archive.close();
});

test('the limits of a camera that is gone are kept while nobody knows whether it has footage', async (t) => {
  const root = temporaryDirectory(t);
  const cameras = { gate: { maxAgeMs: MINUTE_MS }, yard: { maxAgeMs: MINUTE_MS } };
  mkdirSync(join(root, '.kube-nvr'));
  writeFileSync(join(root, FILE), JSON.stringify({ version: 1, cameras }));
  const yard = new Map([['yard', cameras.yard]]);
  const limits = new KnownLimits(nodeFileSystem, join(root, FILE), () => ({ node: {}, cameras: yard }));
  await limits.load();
  limits.remember();
  await limits.save(new Set());
  assert.deepEqual(keptIn(root), { gate: cameras.gate }, 'those of the yard are in the configuration');
});

test('a camera that is deleted with its first picture has its limits', async (t) => {
  const root = temporaryDirectory(t);
  const limits = { maxAgeMs: MINUTE_MS };
  const b = await RetentionBench.start({ root, cameras: { gate: limits } });
  await b.wait(2_000);
  b.begin();
  await b.play(0.4);
  b.cameras = new Map();
  await b.wait(2_000);
  assert.deepEqual(keptIn(root), { gate: limits });
  await b.stop();
});
