import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toFootage } from './footage.ts';
import { filledWords, gapWords } from './gap-words.ts';
import { Zone } from './zone.ts';

const AT_MS = Date.UTC(2026, 10, 25, 14, 3, 7);
const gap = { start_ms: 600, end_ms: 700, cause: 'connection-lost', is_open: false } as const;
const camera = toFootage({
  camera_id: 'gate',
  kept_from_ms: 0,
  spans: [{ start_ms: 0, end_ms: 600 }],
  gaps: [
    gap,
    {
      ...gap,
      not_filled: { reason: 'card-failed', means: 'its memory is broken', is_tried_again: true, at_ms: AT_MS },
    },
    { ...gap, not_filled: { reason: 'overwritten', means: 'it is younger', is_tried_again: false, at_ms: AT_MS } },
  ],
  filled: [
    { start_ms: 100, end_ms: 200, cause: 'node-down', at_ms: AT_MS, seam: 'bytes' },
    { start_ms: 300, end_ms: 400, cause: 'moved', at_ms: AT_MS, seam: 'time' },
    { start_ms: 450, end_ms: 500, cause: 'moved', at_ms: AT_MS },
  ],
  protections: [],
  elsewhere: [],
});

test('a gap says its cause, and why it was not filled, if that was tried', () => {
  assert.deepEqual(camera.gaps.map(gapWords), [
    'camera ended the connection',
    'camera ended the connection; not filled from the camera: its memory is broken; tried again',
    'camera ended the connection; not filled from the camera: it is younger',
  ]);
});

test('a gap of a stopped camera says who stopped it, and why', () => {
  const gap = { cause: 'stopped', notFilled: undefined };
  assert.equal(gapWords({ ...gap, detail: 'stopped by anna: repair' }), 'recording was stopped by anna: repair');
  assert.equal(gapWords(gap), 'recording was stopped by a user');
});

test('filled footage says its cause, from where and when it is, and how its place was found', () => {
  const zone = new Zone('UTC');
  const when = `${zone.date(AT_MS, false)} 14:03:07`;
  assert.deepEqual(
    camera.filled.map((part) => filledWords(part, zone)),
    [
      `machine was not running; filled from the memory of the camera on ${when}, placed by equal pictures`,
      `camera moved to another node; filled from the memory of the camera on ${when}, placed by the camera's clock`,
      `camera moved to another node; filled from the memory of the camera on ${when}`,
    ],
  );
});
