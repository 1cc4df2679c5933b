import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toFootage } from './footage.ts';
import { filledWords, gapWords, lostIn, lostText } from './gap-words.ts';
import { Zone } from './zone.ts';

const AT_MS = Date.UTC(2026, 10, 25, 14, 3, 7);
const gap = { start_ms: 600, end_ms: 700, cause: 'connection-lost', is_open: false } as const;
const bare = { camera_id: 'gate', kept_from_ms: 0, spans: [], gaps: [], protections: [], elsewhere: [] };
const camera = toFootage({
  ...bare,
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
});

test('a gap says its cause, and why it was not filled, if that was tried', () => {
  assert.deepEqual(camera.gaps.map(gapWords), [
    'camera ended the connection',
    'camera ended the connection; not filled from the camera: its memory is broken; tried again',
    'camera ended the connection; not filled from the camera: it is younger',
  ]);
});

test('a gap of a stopped camera says who stopped it, and why', () => {
  const gap = { cause: 'stopped', notFilled: undefined, count: 1, missingMs: 1_000 };
  assert.equal(gapWords({ ...gap, detail: 'stopped by anna: repair' }), 'recording was stopped by anna: repair');
  assert.equal(gapWords(gap), 'recording was stopped by a user');
});

test('several gaps that are drawn as one say how many they are, what is missing, and what most of it is due to', () => {
  const one = { ...gap, count: 3, missing_ms: 465_000, start_ms: 0, end_ms: 3_600_000 };
  const { gaps } = toFootage({ ...bare, gaps: [one] });
  assert.deepEqual(gaps.map(gapWords), ['3 gaps, 7 min 45 s in all: mostly camera ended the connection']);
  const hour = { startMs: 0, endMs: 3_600_000 };
  assert.equal(lostIn(gaps, hour, 0), 465_000);
  assert.equal(lostIn(gaps, { startMs: 3_590_000, endMs: 4_000_000 }, 0), 10_000, 'not more than is in view');
});

test('a gap that lasts is counted up to now, and only what is in view', () => {
  const { gaps } = toFootage({ ...bare, gaps: [{ ...gap, start_ms: 10_000, end_ms: 20_000, is_open: true }] });
  assert.equal(lostIn(gaps, { startMs: 0, endMs: 60_000 }, 30_000), 20_000);
  assert.equal(lostIn(gaps, { startMs: 0, endMs: 25_000 }, 30_000), 15_000);
});

test('lengths of gaps are told to the second', () => {
  assert.deepEqual([400, 45_000, 60_000, 465_000, 7_205_000].map(lostText), [
    '0 s',
    '45 s',
    '1 min 0 s',
    '7 min 45 s',
    '2 h 0 min 5 s',
  ]);
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
