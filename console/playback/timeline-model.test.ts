import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TimelineCamera } from '../app/answers.ts';
import { isPlayable, momentOf, nextFootage, toFootage } from './footage.ts';
import { hitTest, momentsText, timelineModel } from './timeline-model.ts';
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

/** A timeline of a hundred seconds, from 0, ten pixels a second beside the column of names. */
const SECOND = 1_000;
const LEFT = 132;
const model = (changes: Partial<TimelineCamera>, nowMs = 100 * SECOND, width = LEFT + 1_000) =>
  timelineModel({
    width,
    range: { fromMs: 0, toMs: 100 * SECOND },
    day: { fromMs: 0, toMs: 86_400 * SECOND },
    cameras: [{ cameraId: 'gate', name: 'Gate', footage: toFootage(item(changes)), day: undefined }],
    atMs: 50 * SECOND,
    nowMs,
    selection: undefined,
    zone: new Zone('UTC'),
  });
const shapesOf = (changes: Partial<TimelineCamera>, nowMs?: number): unknown[] =>
  model(changes, nowMs).rows[0]!.shapes.map(({ kind, x, width }) => [kind, x - LEFT, width]);
const gap = (from: number, to: number, is_open = false) => ({
  ...span(from * SECOND, to * SECOND),
  cause: 'camera-unreachable' as const,
  is_open,
});

test('recorded time and gaps are drawn at their places, and recorded time is not drawn beneath a gap', () => {
  assert.deepEqual(shapesOf({ spans: [span(10 * SECOND, 60 * SECOND)], gaps: [gap(20, 30)] }), [
    ['footage', 100, 100],
    ['footage', 300, 300],
    ['gap', 200, 100],
  ]);
});

test('a gap that still lasts grows up to the present, and one that is over does not', () => {
  assert.deepEqual(shapesOf({ gaps: [gap(20, 30, true)] }, 70 * SECOND), [['gap', 200, 500]]);
  assert.deepEqual(shapesOf({ gaps: [gap(20, 30, false)] }, 70 * SECOND), [['gap', 200, 100]]);
  assert.deepEqual(shapesOf({ gaps: [gap(20, 30, true)] }, 25 * SECOND), [['gap', 200, 100]], 'by its own answer');
});

test('a gap too short to be seen is two pixels wide', () => {
  assert.deepEqual(shapesOf({ gaps: [{ ...gap(20, 20), end_ms: 20 * SECOND + 10 }] }), [['gap', 200, 2]]);
});

test('an event is marked at its time, wide enough to be seen at every zoom, above what was recorded', () => {
  const event = (start: number, end: number | null) => ({
    id: String(start),
    source: 'frigate',
    reported_by: 'frigate',
    type: 'motion',
    start_ms: start * SECOND,
    end_ms: end === null ? null : end * SECOND,
  });
  const changes = { spans: [span(0, 60 * SECOND)], events: [event(20, 25), event(40, null)] };
  assert.deepEqual(shapesOf(changes), [
    ['footage', 0, 600],
    ['event', 200, 50],
    ['event', 400, 3],
  ]);
  const shown = model(changes);
  const hit = hitTest(shown, LEFT + 201, shown.rows[0]!.y + 1);
  assert.deepEqual([hit.shape?.kind, hit.event?.detail, hit.event?.startMs], ['footage', 'motion', 20 * SECOND]);
  assert.equal(hitTest(shown, LEFT + 300, shown.rows[0]!.y + 1).event, undefined);
});

test('playhead, present and selection are at their times in each row, also in that of the day', () => {
  const shown = timelineModel({
    width: LEFT + 1_000,
    range: { fromMs: 0, toMs: 100 * SECOND },
    day: { fromMs: 0, toMs: 1_000 * SECOND },
    cameras: [],
    atMs: 50 * SECOND,
    nowMs: 500 * SECOND,
    selection: { startMs: 20 * SECOND, endMs: 400 * SECOND },
    zone: new Zone('UTC'),
  });
  const placesOf = ({ playheadX, nowX, selection }: typeof shown.overview | typeof shown): unknown[] => [
    playheadX,
    nowX,
    selection,
  ];
  assert.deepEqual(placesOf(shown), [LEFT + 500, undefined, { x: LEFT + 200, width: 800 }]);
  assert.deepEqual(placesOf(shown.overview), [LEFT + 50, LEFT + 500, { x: LEFT + 20, width: 380 }]);
});

test('a click is the time under it, beside the column of names and without one', () => {
  const wide = model({});
  assert.equal(wide.left, LEFT);
  assert.equal(hitTest(wide, LEFT, 30).atMs, 0);
  assert.equal(hitTest(wide, LEFT + 250, 30).atMs, 25 * SECOND);
  assert.equal(hitTest(wide, LEFT + 1_000, 30).atMs, 100 * SECOND);
  const narrow = model({}, undefined, 500);
  assert.equal(narrow.left, 0);
  assert.equal(hitTest(narrow, 125, 30).atMs, 25 * SECOND);
});

test('a click is looked up in its row, and finds what is drawn there', () => {
  const wide = model({ spans: [span(10 * SECOND, 60 * SECOND)], gaps: [gap(20, 30)] });
  const [row, overview] = wide.rows as [(typeof wide.rows)[0], (typeof wide.rows)[0]];
  assert.equal(hitTest(wide, LEFT + 150, row.y + 1).shape?.kind, 'footage');
  assert.equal(hitTest(wide, LEFT + 250, row.y + 1).shape?.kind, 'gap');
  assert.equal(hitTest(wide, LEFT + 700, row.y + 1).shape, undefined);
  const day = hitTest(wide, LEFT + 500, overview.y + 1);
  assert.deepEqual([day.row, day.atMs], [overview, 43_200 * SECOND]);
});

const elsewhere = (online: boolean) => ({ node_id: 'rack-2', ...span(10 * SECOND, 60 * SECOND), online });

test('footage on a node that answers can be played, on one that is away it cannot, and it is drawn as that', () => {
  for (const online of [true, false]) {
    const camera = toFootage(item({ elsewhere: [elsewhere(online)] }));
    const moment = momentOf(camera, 20 * SECOND, 100 * SECOND);
    assert.equal(moment.kind, 'elsewhere');
    assert.equal(isPlayable(moment), online);
    assert.equal(nextFootage([camera], 0), online ? 10 * SECOND : undefined);
    assert.deepEqual(shapesOf({ elsewhere: [elsewhere(online)] }), [[online ? 'elsewhere' : 'away', 100, 500]]);
  }
});

/** A moment, and what is said of it. */
for (const [changes, words] of [
  [{ spans: [span(0, 60 * SECOND)] }, 'recorded'],
  [{ preview: [span(0, 60 * SECOND)] }, 'recorded, preview only'],
  [{ gaps: [gap(0, 60)] }, 'no recording: camera-unreachable'],
  [{ elsewhere: [elsewhere(true)] }, 'recorded on rack-2'],
  [{ elsewhere: [elsewhere(false)] }, 'on rack-2, which is away'],
  [{ kept_from_ms: 60 * SECOND }, 'no longer kept'],
  [{}, 'no recording'],
] as const) {
  test(`of ${JSON.stringify(changes)} is said: ${words}`, () => {
    const camera = toFootage(item(changes));
    assert.equal(
      momentsText([camera], 20 * SECOND, 100 * SECOND, (cause) => cause),
      words,
    );
  });
}

test('a moment that is still to come is in the future, whatever is kept', () => {
  const camera = toFootage(item({ kept_from_ms: 500 * SECOND }));
  assert.deepEqual(momentOf(camera, 100 * SECOND, 100 * SECOND), { kind: 'future' });
  assert.equal(momentOf(camera, 99 * SECOND, 100 * SECOND).kind, 'not-kept');
});

test('activity is marked where pictures were looked at, a short change wide enough to be seen and above the rest', () => {
  const bands = [
    { ...span(10 * SECOND, 20 * SECOND), kind: 'active' as const },
    { ...span(20 * SECOND, 50 * SECOND), kind: 'quiet' as const },
    { ...span(50 * SECOND, 50 * SECOND + 10), kind: 'active' as const },
  ];
  const { rows } = model({ spans: [span(0, 90 * SECOND)], bands });
  assert.deepEqual(
    rows[0]!.shapes.filter(({ kind }) => kind === 'activity').map(({ detail, x, width }) => [detail, x - LEFT, width]),
    [
      ['quiet', 200, 300],
      ['active', 100, 100],
      ['active', 500, 3],
    ],
  );
  const { y, height } = rows[0]!;
  const hit = hitTest(model({ spans: [span(0, 90 * SECOND)], bands }), LEFT + 300, y + height / 2);
  assert.deepEqual([hit.shape?.kind, hit.activity?.detail], ['footage', 'quiet']);
});
