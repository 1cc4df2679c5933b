// Time that only the preview of a camera has: what playback and the timeline make of it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TimelineCamera } from '../app/answers.ts';
import { isPlayable, momentOf, nextFootage, toFootage } from './footage.ts';
import { timelineModel } from './timeline-model.ts';
import { Zone } from './zone.ts';

const span = (start_ms: number, end_ms: number) => ({ start_ms, end_ms });
const item = (changes: Partial<TimelineCamera>): TimelineCamera => ({
  camera_id: 'gate',
  kept_from_ms: null,
  spans: [],
  gaps: [],
  protections: [],
  elsewhere: [],
  ...changes,
});
/** Retention has removed the main footage before 400, and the camera was away from 600 to 700. */
const gate = toFootage(
  item({
    kept_from_ms: 400,
    spans: [span(400, 600), span(700, 900)],
    gaps: [{ ...span(600, 700), cause: 'camera-unreachable', is_open: false }],
    preview: [span(100, 650), span(750, 800)],
  }),
);
const kindAt = (atMs: number): string => momentOf(gate, atMs, 1_000).kind;

test('it can be played where the main footage is gone or missing, and nowhere else is it told apart', () => {
  assert.deepEqual([50, 200, 500, 620, 680, 780].map(kindAt), [
    'not-kept',
    'preview',
    'footage',
    'preview',
    'gap',
    'footage',
  ]);
  assert.equal(isPlayable(momentOf(gate, 200, 1_000)), true);
  assert.equal(nextFootage([gate], 50), 100);
});

test('footage on another node that answers is preferred to it, on one that is away it is not', () => {
  const elsewhere = (online: boolean) =>
    toFootage(item({ elsewhere: [{ node_id: 'rack-2', ...span(0, 100), online }], preview: [span(0, 100)] }));
  assert.deepEqual(
    [true, false].map((online) => momentOf(elsewhere(online), 50, 1_000).kind),
    ['elsewhere', 'preview'],
  );
});

test('the timeline has a rectangle of it with the cause of the gap, above the rectangle of the gap', () => {
  const { rows } = timelineModel({
    width: 1_000,
    range: { fromMs: 0, toMs: 1_000 },
    day: { fromMs: 0, toMs: 1_000 },
    cameras: [{ cameraId: 'gate', name: 'Gate', footage: gate, day: gate }],
    atMs: 500,
    nowMs: 1_000,
    selection: undefined,
    zone: new Zone('UTC'),
  });
  const [row, day] = rows;
  const previews = row?.shapes.filter(({ kind }) => kind === 'preview') ?? [];
  assert.deepEqual(
    previews.map(({ startMs, endMs, detail }) => [startMs, endMs, detail]),
    [
      [100, 400, undefined],
      [600, 650, 'camera-unreachable'],
    ],
  );
  const kinds = row?.shapes.map(({ kind }) => kind) ?? [];
  assert.ok(kinds.includes('gap') && kinds.lastIndexOf('preview') > kinds.indexOf('gap'));
  assert.ok(day?.shapes.some(({ kind }) => kind === 'preview'));
});
