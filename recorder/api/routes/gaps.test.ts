import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GapReport } from '../../contract/gap-report.ts';
import { ArchiveError } from '../../archive/disk/faults.ts';
import { archiveStatus, as, build, cameraStatus, gapReader, noGaps } from '../test-support.ts';

const NOON_MS = Date.UTC(2026, 0, 1, 12);
const HOUR_S = 3_600;

test('gaps: each with its times in both ways, its cause and length; sums by cause', async (t) => {
  const asked: unknown[] = [];
  const gap = { isOpen: false, isProvisional: false };
  const report = async (cameraId: string, fromMs: number, toMs: number): Promise<GapReport> => {
    asked.push([cameraId, fromMs, toMs]);
    return {
      fromMs,
      toMs,
      gaps: [
        { ...gap, fromMs: NOON_MS + 500, toMs: NOON_MS + 2_000, cause: 'camera-unreachable' },
        { ...gap, fromMs: NOON_MS + 10_000, toMs: NOON_MS + 10_250, cause: 'camera-unreachable' },
        { ...gap, fromMs: NOON_MS + 20_000, toMs: NOON_MS + 30_000, cause: 'disk-full', isOpen: true },
      ],
      knownUntilMs: NOON_MS + 30_000,
      wantedMs: 30_000,
      recordedMs: 18_250,
      recorded: [],
      degraded: [{ fromMs: NOON_MS + 2_000, toMs: NOON_MS + 10_000, lost: 2, undecodable: 40, expected: 200 }],
      filled: [],
    };
  };
  const { app } = await build(t, { gaps: gapReader(report) });
  const url = `/api/archive/gate/gaps?from=${NOON_MS / 1000}&to=${NOON_MS / 1000 + HOUR_S}`;
  const answer = await app.inject({ url, headers: as('viewer') });
  assert.equal(answer.statusCode, 200, answer.body);
  assert.deepEqual(asked, [['gate', NOON_MS, NOON_MS + HOUR_S * 1000]]);
  const { gaps, ...rest } = answer.json();
  assert.deepEqual(rest, {
    camera_id: 'gate',
    from: '2026-01-01T12:00:00.000+00:00',
    to: '2026-01-01T13:00:00.000+00:00',
    from_ms: NOON_MS,
    to_ms: NOON_MS + HOUR_S * 1000,
    known_until: '2026-01-01T12:00:30.000+00:00',
    known_until_ms: NOON_MS + 30_000,
    wanted_seconds: 30,
    recorded_seconds: 18.25,
    missing_seconds: 11.75,
    filled_seconds: 0,
    seconds_by_cause: { 'camera-unreachable': 1.75, 'disk-full': 10 },
    elsewhere: [],
    degraded: [
      {
        start: '2026-01-01T12:00:02.000+00:00',
        end: '2026-01-01T12:00:10.000+00:00',
        start_ms: NOON_MS + 2_000,
        end_ms: NOON_MS + 10_000,
        lost_frames: 2,
        undecodable_frames: 40,
        expected_frames: 200,
        lost_share: 0.01,
      },
    ],
  });
  assert.equal(gaps.length, 3);
  assert.deepEqual(gaps[0], {
    start: '2026-01-01T12:00:00.500+00:00',
    end: '2026-01-01T12:00:02.000+00:00',
    start_ms: NOON_MS + 500,
    end_ms: NOON_MS + 2_000,
    seconds: 1.5,
    cause: 'camera-unreachable',
    is_open: false,
  });
  assert.equal(gaps[2].is_open, true);
});

test('gaps: oldest first, whether filled or not', async (t) => {
  const gap = { isOpen: false, isProvisional: false, cause: 'connection-lost' } as const;
  const at = (fromS: number, toS: number) => ({ fromMs: NOON_MS + fromS * 1_000, toMs: NOON_MS + toS * 1_000 });
  const filled = { cause: 'connection-lost', atMs: NOON_MS + 60_000, seam: 'time' } as const;
  const report = async (_cameraId: string, fromMs: number, toMs: number): Promise<GapReport> => ({
    fromMs,
    toMs,
    knownUntilMs: toMs,
    wantedMs: 50_000,
    recordedMs: 48_000,
    recorded: [],
    degraded: [],
    gaps: [
      { ...gap, ...at(0, 1) },
      { ...gap, ...at(10, 11) },
    ],
    filled: [
      { ...filled, ...at(1, 5) },
      { ...filled, ...at(11, 20) },
    ],
  });
  const { app } = await build(t, { gaps: gapReader(report) });
  const url = `/api/archive/gate/gaps?from=${NOON_MS / 1000}&to=${NOON_MS / 1000 + HOUR_S}`;
  const { gaps } = (await app.inject({ url, headers: as('viewer') })).json();
  assert.deepEqual(
    gaps.map((one: { start_ms: number; filled_from?: string }) => [(one.start_ms - NOON_MS) / 1_000, one.filled_from]),
    [
      [0, undefined],
      [1, 'edge'],
      [10, undefined],
      [11, 'edge'],
    ],
  );
});

test('gaps: the rules of the segment list for the interval; a camera that is not known has none', async (t) => {
  const { app } = await build(t);
  const get = (query: string) => app.inject({ url: `/api/archive/nobody/gaps${query}`, headers: as('viewer') });
  const from = NOON_MS / 1000;
  for (const query of [
    '?from=x',
    '?to=',
    `?from=${from}&to=${from - 1}`,
    `?from=${from}&to=${from + 25 * HOUR_S + 1}`,
  ]) {
    const answer = await get(query);
    assert.equal(answer.statusCode, 400, query);
    assert.match(answer.json().detail, /^(from|to)/);
  }
  const today = (await get('')).json();
  assert.deepEqual([today.gaps, today.wanted_seconds, today.seconds_by_cause], [[], 0, {}]);
  assert.equal(Date.parse(today.to) - Date.parse(today.from), 24 * HOUR_S * 1000);
  const half = (await get(`?from=${from}.5&to=${from}.75`)).json();
  assert.equal(Date.parse(half.from), NOON_MS + 500);
});

test('gaps: 401 without a token, 500 when the archive cannot be read', async (t) => {
  const report = async (): Promise<GapReport> => {
    throw new ArchiveError('the archive on disk cannot be read');
  };
  const { app } = await build(t, { gaps: gapReader(report) });
  assert.equal((await app.inject('/api/archive/gate/gaps')).statusCode, 401);
  const answer = await app.inject({ url: '/api/archive/gate/gaps', headers: as('viewer') });
  assert.deepEqual([answer.statusCode, answer.json().code], [500, 'archive-unreadable']);
});

test('a silent camera says so and since when; ready names it to callers with a role, and does not fail by it', async (t) => {
  const { app, cameras } = await build(t, { gaps: noGaps });
  const silence = { sinceMs: NOON_MS - 20_000, cause: 'stream-silent' } as const;
  cameras.push(
    { status: cameraStatus(), archive: archiveStatus(), live: undefined },
    { status: cameraStatus({ id: 'yard' }), archive: archiveStatus(), live: undefined, silence },
  );
  const list = (await app.inject({ url: '/api/cameras', headers: as('viewer') })).json().cameras;
  assert.deepEqual(
    list.map((camera: Record<string, unknown>) => [camera['id'], camera['silent'], camera['silent_since']]),
    [
      ['gate', false, null],
      ['yard', true, '2026-01-01T11:59:40.000+00:00'],
    ],
  );
  const ready = await app.inject({ url: '/api/health/ready', headers: as('viewer') });
  assert.deepEqual([ready.statusCode, ready.json().status], [200, 'ready']);
  assert.deepEqual(ready.json().silent_cameras, [
    { id: 'yard', since: '2026-01-01T11:59:40.000+00:00', cause: 'stream-silent' },
  ]);
  assert.equal((await app.inject('/api/health/ready')).json().silent_cameras, undefined);
});
