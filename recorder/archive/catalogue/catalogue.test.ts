import assert from 'node:assert/strict';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import { VIDEO_TRACK_ID } from '../../mp4/fragment.ts';
import { SegmentWriter } from '../../mp4/segment.ts';
import { ArchiveError, WrongDiskError } from '../disk/faults.ts';
import { formatPath, type SegmentName } from '../disk/names.ts';
import { SegmentStore } from '../disk/segment-store.ts';
import { TestFileSystem, VIDEO, systemError, temporaryDirectory } from '../test-support.ts';
import { localCalendar } from './calendar.ts';
import { Catalogue } from './catalogue.ts';
import type { ListQuery } from './listing.ts';
import { closedSegment, type OpenSegment } from './segment.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const at = (text: string): number => Date.parse(`${text}Z`);
const DAY = '2026-03-10';
const NOON_MS = at(`${DAY}T12:00`);

interface Stage {
  readonly root: string;
  readonly clock: VirtualClock;
  readonly fs: TestFileSystem;
  readonly catalogue: Catalogue;
  readonly list: (query: ListQuery) => Promise<string[]>;
  readonly days: (tzOffsetMinutes?: number, open?: readonly OpenSegment[]) => Promise<readonly string[]>;
}

function stage(t: TestContext): Stage {
  const root = temporaryDirectory(t);
  const clock = new VirtualClock(at(`${DAY}T20:00`));
  const fs = new TestFileSystem(root);
  const catalogue = new Catalogue(new SegmentStore(root, fs), clock);
  return {
    root,
    clock,
    fs,
    catalogue,
    list: async (query) => {
      const { segments } = await catalogue.list('gate', query, () => []);
      return segments.map(({ startMs }) => new Date(startMs).toISOString().slice(0, 16));
    },
    days: async (tzOffsetMinutes, open = []) =>
      (await catalogue.list('gate', { fromMs: 0, toMs: 1, tzOffsetMinutes }, () => open)).days,
  };
}

interface Recorded extends Partial<SegmentName> {
  readonly startMs: number;
  readonly durationMs?: number;
  readonly sequence?: number;
}

const nameOf = ({ startMs, name = 'Gate', cameraId = 'gate' }: Recorded): SegmentName => ({ name, cameraId, startMs });

/** A finished file of one picture that lasts as long as asked for. */
function record(root: string, recorded: Recorded): string {
  const segment = nameOf(recorded);
  const { durationMs = 5 * MINUTE_MS, sequence = 0 } = recorded;
  const writer = new SegmentWriter([VIDEO], {
    cameraId: segment.cameraId,
    runId: '00000000000000aa',
    sequence,
    wallStartMs: segment.startMs,
    clock: 'settled',
    gapBeforeMs: 0,
  });
  const sample = { size: 8, duration: durationMs * 90, compositionOffset: 0, sync: true };
  const head = writer.append([{ trackId: VIDEO_TRACK_ID, baseDecodeTime: 0, samples: [sample] }]);
  const { tail, patch } = writer.finish();
  const bytes = Buffer.concat([writer.header(), head, Buffer.alloc(8), tail]);
  patch.bytes.copy(bytes, patch.offset);
  return put(root, formatPath(segment), bytes);
}

function put(root: string, path: string, bytes: Buffer | string): string {
  mkdirSync(join(root, dirname(path)), { recursive: true });
  writeFileSync(join(root, path), bytes);
  return path;
}

test('a segment says where it is, when it begins and ends, its sequence, size and time of change', async (t) => {
  const { root, catalogue } = stage(t);
  const path = record(root, { startMs: NOON_MS + 123, sequence: 41 });
  utimesSync(join(root, path), 1_773_000_000, 1_773_000_000.5);
  const { segments } = await catalogue.list('gate', { fromMs: NOON_MS, toMs: NOON_MS + HOUR_MS }, () => []);
  assert.deepEqual(segments, [
    {
      path,
      startMs: NOON_MS + 123,
      sequence: 41,
      sizeBytes: statSync(join(root, path)).size,
      mtimeMs: 1_773_000_000_500,
      isOpen: false,
      endMs: NOON_MS + 123 + 5 * MINUTE_MS,
    },
  ]);
});

test('every segment that overlaps the interval is listed, also one that began before it, by start', async (t) => {
  const { root, list } = stage(t);
  for (let minute = 0; minute < 60; minute += 5) record(root, { startMs: NOON_MS + minute * MINUTE_MS });
  assert.deepEqual(await list({ fromMs: NOON_MS + 12 * MINUTE_MS, toMs: NOON_MS + 26 * MINUTE_MS }), [
    `${DAY}T12:10`,
    `${DAY}T12:15`,
    `${DAY}T12:20`,
    `${DAY}T12:25`,
  ]);
});

test('a segment that ends where the interval begins, or begins where it ends, is not listed', async (t) => {
  const { root, list } = stage(t);
  for (const minute of [0, 5, 10]) record(root, { startMs: NOON_MS + minute * MINUTE_MS });
  assert.deepEqual(await list({ fromMs: NOON_MS + 5 * MINUTE_MS, toMs: NOON_MS + 10 * MINUTE_MS }), [`${DAY}T12:05`]);
});

test('an instant lists the segment that holds it', async (t) => {
  const { root, list } = stage(t);
  for (const minute of [0, 5]) record(root, { startMs: NOON_MS + minute * MINUTE_MS });
  const instant = (ms: number): Promise<string[]> => list({ fromMs: NOON_MS + ms, toMs: NOON_MS + ms });
  assert.deepEqual(await instant(MINUTE_MS), [`${DAY}T12:00`]);
  assert.deepEqual(await instant(5 * MINUTE_MS), [`${DAY}T12:05`]);
  assert.deepEqual(await instant(11 * MINUTE_MS), []);
});

test('before a gap a segment ends where it ends, not where the next begins', async (t) => {
  const { root, list } = stage(t);
  record(root, { startMs: NOON_MS });
  record(root, { startMs: NOON_MS + HOUR_MS });
  assert.deepEqual(await list({ fromMs: NOON_MS + 6 * MINUTE_MS, toMs: NOON_MS + 30 * MINUTE_MS }), []);
});

test('a segment that began on the day before is listed after midnight', async (t) => {
  const { root, list } = stage(t);
  record(root, { startMs: at('2026-03-09T23:58') });
  assert.deepEqual(await list({ fromMs: at(`${DAY}T00:00`), toMs: at(`${DAY}T01:00`) }), ['2026-03-09T23:58']);
});

test('after a clock was stepped back, an older segment that reaches into the interval is found among newer ones', async (t) => {
  const { root, list } = stage(t);
  record(root, { startMs: NOON_MS, durationMs: 30 * MINUTE_MS });
  for (let minute = 2; minute < 10; minute += 2)
    record(root, { startMs: NOON_MS + minute * MINUTE_MS, durationMs: 2 * MINUTE_MS });
  assert.deepEqual(await list({ fromMs: NOON_MS + 15 * MINUTE_MS, toMs: NOON_MS + 20 * MINUTE_MS }), [`${DAY}T12:00`]);
});

test('footage of another camera, whose name or id begins alike, is not listed', async (t) => {
  const { root, list } = stage(t);
  record(root, { startMs: NOON_MS, cameraId: 'gate2' });
  record(root, { startMs: NOON_MS, cameraId: 'ga', name: 'gate' });
  record(root, { startMs: NOON_MS + MINUTE_MS });
  record(root, { startMs: NOON_MS + 9 * MINUTE_MS, name: 'Renamed' });
  assert.deepEqual(await list({ fromMs: NOON_MS, toMs: NOON_MS + HOUR_MS }), [`${DAY}T12:01`, `${DAY}T12:09`]);
});

test('a camera without footage has an empty list', async (t) => {
  const { root, catalogue } = stage(t);
  record(root, { startMs: NOON_MS });
  assert.deepEqual(await catalogue.list('nobody', { fromMs: NOON_MS, toMs: NOON_MS + HOUR_MS }, () => []), {
    segments: [],
    days: [],
  });
});

test('the open segment is listed as open, once, with what is written so far', async (t) => {
  const { root, catalogue, clock } = stage(t);
  record(root, { startMs: clock.wallMs() - 10 * MINUTE_MS });
  const startMs = clock.wallMs() - 4 * MINUTE_MS;
  const path = put(root, formatPath(nameOf({ startMs })), 'it grows');
  const open: OpenSegment[] = [
    {
      path,
      startMs,
      sequence: 9,
      sizeBytes: 12_345,
      mtimeMs: clock.wallMs(),
      isOpen: true,
      format: 'fmp4',
      isHidden: false,
    },
  ];
  const { segments } = await catalogue.list('gate', { fromMs: startMs - HOUR_MS, toMs: clock.wallMs() }, () => open);
  assert.deepEqual(
    segments.map(({ isOpen, sequence, sizeBytes }) => [isOpen, sequence, sizeBytes]),
    [
      [false, 0, segments[0]?.sizeBytes],
      [true, 9, 12_345],
    ],
  );
  // It reaches up to now, wherever the interval lies in it.
  const within = await catalogue.list(
    'gate',
    { fromMs: startMs + MINUTE_MS, toMs: startMs + 2 * MINUTE_MS },
    () => open,
  );
  assert.deepEqual(
    within.segments.map(({ isOpen }) => isOpen),
    [true],
  );
  assert.deepEqual((await catalogue.list('gate', { fromMs: 0, toMs: startMs - HOUR_MS }, () => open)).segments, []);
  const future = { fromMs: clock.wallMs() + MINUTE_MS, toMs: clock.wallMs() + HOUR_MS };
  assert.deepEqual((await catalogue.list('gate', future, () => open)).segments, [], 'nothing is written then');
});

test('columns have the segments of an interval, those that may reach into it, and where the next one begins', async (t) => {
  const { root, catalogue } = stage(t);
  for (let minute = 0; minute < 180; minute += 5) record(root, { startMs: NOON_MS + minute * MINUTE_MS });
  await catalogue.list('gate', { fromMs: NOON_MS, toMs: NOON_MS + 3 * HOUR_MS }, () => []);
  const within = [152, 161].map((minute) => NOON_MS + minute * MINUTE_MS) as [number, number];
  const { startsMs, nextMs, segmentAt } = catalogue.columns('gate', ...within);
  const minutes = startsMs.map((ms) => (ms - NOON_MS) / MINUTE_MS);
  assert.deepEqual(minutes.slice(-3), [150, 155, 160]);
  assert.ok(minutes.length < 33, `not all of the day: ${minutes.join()}`);
  assert.equal(nextMs, NOON_MS + 165 * MINUTE_MS);
  assert.deepEqual(
    startsMs.map((_, i) => segmentAt(i).startMs),
    startsMs,
  );
});

test('days are those of the viewer, whatever the interval', async (t) => {
  const { root, days } = stage(t);
  record(root, { startMs: at('2026-03-01T23:30') });
  record(root, { startMs: at('2026-03-05T00:30') });
  record(root, { startMs: at('2026-03-05T12:00') });
  assert.deepEqual(await days(0), ['2026-03-01', '2026-03-05']);
  assert.deepEqual(await days(60), ['2026-03-02', '2026-03-05']);
  assert.deepEqual(await days(-60), ['2026-03-01', '2026-03-04', '2026-03-05']);
  assert.deepEqual(await days(840), ['2026-03-02', '2026-03-05', '2026-03-06']);
  assert.deepEqual(await days(-840), ['2026-03-01', '2026-03-04']);
});

test('a segment that ends at midnight to the millisecond gives the next day no footage', async (t) => {
  const { root, days } = stage(t);
  record(root, { startMs: at('2026-03-01T23:55'), durationMs: 5 * MINUTE_MS });
  record(root, { startMs: at('2026-03-03T23:55'), durationMs: 5 * MINUTE_MS + 1 });
  assert.deepEqual(await days(0), ['2026-03-01', '2026-03-03', '2026-03-04']);
});

test('a day that holds only the end of a segment is a day with footage', async (t) => {
  const { root, days, clock } = stage(t);
  record(root, { startMs: at('2026-03-01T23:58') });
  record(root, { startMs: at('2026-03-04T23:50') });
  assert.deepEqual(await days(0), ['2026-03-01', '2026-03-02', '2026-03-04']);
  const startMs = at('2026-03-09T23:55');
  const open = {
    path: put(root, formatPath(nameOf({ startMs })), ''),
    startMs,
    sequence: 0,
    sizeBytes: 0,
    mtimeMs: startMs,
    isOpen: true as const,
    format: 'fmp4' as const,
    isHidden: false,
  };
  clock.advance(60_000);
  assert.deepEqual(await days(0, [open]), ['2026-03-01', '2026-03-02', '2026-03-04', '2026-03-09', DAY]);
});

test('without an offset days are those of the node', async (t) => {
  const { root, days } = stage(t);
  const starts = [at('2026-03-28T22:30'), at('2026-03-30T10:00'), at('2026-04-02T01:00')];
  for (const startMs of starts) record(root, { startMs });
  assert.deepEqual(
    await days(),
    starts.map((startMs) => localCalendar.dayOf(startMs)),
  );
});

test('odd names among the footage are ignored', async (t) => {
  const { root, list, days } = stage(t);
  record(root, { startMs: NOON_MS });
  for (const path of [
    'lost+found/x',
    'readme.txt',
    '2026/notes.txt',
    '2026/03/notes.txt',
    '2026/03/10/notes.txt',
    '2026/03/10/Gate_gate_20260311_120000000.mp4',
    '2026/03/10/Gate_gate_20260310_250000000.mp4',
    '2026/03/10/Gate_gate_20260310_120000000.mp4.part',
    '2026/3/10/Gate_gate_20260310_130000000.mp4',
    '2026/02/31/Gate_gate_20260231_130000000.mp4',
    '26/03/10/Gate_gate_20260310_130000000.mp4',
    '.kube-nvr/2026/03/10/Gate_gate_20260310_130000000.mp4',
  ])
    put(root, path, 'x');
  for (const path of ['1999', '2025/12', '2026/03/09']) put(root, path, '');
  symlinkSync('2001', join(root, '2001'));
  symlinkSync('nowhere', join(root, '2026/03/08'));
  mkdirSync(join(root, '2026/03/10/Gate_gate_20260310_140000000.mp4'));
  assert.deepEqual(await list({ fromMs: at(`${DAY}T00:00`), toMs: at('2026-03-12T00:00') }), [`${DAY}T12:00`]);
  assert.deepEqual(await days(0), [DAY]);
});

test('a damaged file is listed by its name, size and time, and ends with the next or after two hours', async (t) => {
  const { root, list, catalogue } = stage(t);
  const path = put(root, formatPath(nameOf({ startMs: NOON_MS })), 'garbage'.repeat(100));
  record(root, { startMs: NOON_MS + 10 * MINUTE_MS });
  put(root, formatPath(nameOf({ startMs: NOON_MS + HOUR_MS })), '');
  const { segments } = await catalogue.list('gate', { fromMs: NOON_MS, toMs: NOON_MS + MINUTE_MS }, () => []);
  assert.deepEqual(
    segments.map((segment) => [segment.path, segment.sizeBytes, segment.sequence]),
    [[path, 700, 0]],
  );
  const from = (minutes: number): Promise<string[]> =>
    list({ fromMs: NOON_MS + minutes * MINUTE_MS, toMs: NOON_MS + (minutes + 1) * MINUTE_MS });
  assert.deepEqual(await from(9), [`${DAY}T12:00`]);
  assert.deepEqual(await from(16), [], 'the next one has begun');
  assert.deepEqual(await from(179), [`${DAY}T13:00`]);
  assert.deepEqual(await from(181), []);
});

test('a recording that was copied under the name of another time has its own length there, and no end before its start', async (t) => {
  const { root, catalogue, clock } = stage(t);
  const path = record(root, { startMs: NOON_MS, durationMs: 20_000, sequence: 7 });
  for (const hours of [-3, 3]) {
    copyFileSync(join(root, path), join(root, formatPath(nameOf({ startMs: NOON_MS + hours * HOUR_MS }))));
  }
  // By the virtual clock, the copies were made long ago.
  for (const name of readdirSync(join(root, dirname(path)))) utimesSync(join(root, dirname(path), name), 0, 0);
  const query = { fromMs: at(`${DAY}T00:00`), toMs: clock.wallMs() };
  const { segments } = await catalogue.list('gate', query, () => []);
  assert.deepEqual(
    segments.map(({ startMs, endMs = NaN, sequence }) => [(startMs - NOON_MS) / HOUR_MS, endMs - startMs, sequence]),
    [-3, 0, 3].map((hours) => [hours, 20_000, 7]),
  );
  const copy = await catalogue.read(nameOf({ startMs: NOON_MS + 3 * HOUR_MS }));
  assert.equal(copy.kind, 'closed');
  assert.deepEqual(
    copy.kind === 'closed' && [copy.closed.endMs - copy.closed.startMs, copy.closed.meta],
    [20_000, undefined],
    'observers get the time of its name',
  );
});

const damages: readonly [string, (stage: Stage) => void][] = [
  ['the record path is gone', ({ root }) => renameSync(root, `${root}-gone`)],
  [
    'the record path is a file',
    ({ root }) => {
      rmSync(root, { recursive: true });
      writeFileSync(root, '');
    },
  ],
  [
    'a directory of another day may not be read',
    ({ fs, root }) => {
      record(root, { startMs: NOON_MS - 240 * HOUR_MS });
      fs.before = ({ name, path }) => {
        if (name === 'list' && path === '2026/02/28') throw systemError('EACCES');
      };
    },
  ],
  [
    'the disk fails',
    ({ fs }) => {
      fs.before = ({ name, path }) => {
        if (name === 'facts' && path !== '') throw systemError('EIO');
      };
    },
  ],
];
for (const [damage, damageIt] of damages) {
  test(`when ${damage}, the list is an error and never shorter than the archive`, async (t) => {
    const s = stage(t);
    record(s.root, { startMs: NOON_MS });
    damageIt(s);
    await assert.rejects(s.list({ fromMs: NOON_MS, toMs: NOON_MS + HOUR_MS }), ArchiveError);
    if (!existsSync(s.root) && existsSync(`${s.root}-gone`)) renameSync(`${s.root}-gone`, s.root);
  });
  test(`when ${damage} after a list that was fine, the next one notices`, async (t) => {
    const s = stage(t);
    record(s.root, { startMs: NOON_MS });
    await s.list({ fromMs: 0, toMs: 1 });
    damageIt(s);
    s.clock.advance(6_000);
    await assert.rejects(s.list({ fromMs: NOON_MS, toMs: NOON_MS + HOUR_MS }), ArchiveError);
    if (!existsSync(s.root) && existsSync(`${s.root}-gone`)) renameSync(`${s.root}-gone`, s.root);
  });
}

test('a directory that cannot be read is named, relative to the record path, until it can be read', async (t) => {
  const { fs, root, list, catalogue, clock } = stage(t);
  record(root, { startMs: NOON_MS });
  fs.before = ({ name, path }) => {
    if (name === 'list' && path === '2026/03') throw Object.assign(systemError('EACCES'), { path: join(root, path) });
  };
  const message = 'the archive on disk cannot be read: 2026/03 (EACCES)';
  await assert.rejects(list({ fromMs: NOON_MS, toMs: NOON_MS + HOUR_MS }), { message });
  assert.equal(catalogue.problem, message);
  fs.before = () => {};
  clock.advance(6_000);
  await list({ fromMs: NOON_MS, toMs: NOON_MS + HOUR_MS });
  assert.equal(catalogue.problem, undefined);
});

test('who lists the archive of another recorder is not told where it is, and who uses it', async (t) => {
  const root = temporaryDirectory(t);
  const check = async (): Promise<never> => {
    throw new WrongDiskError('archive-in-use', `${root} is used by another recorder: host gatehouse, process 7`);
  };
  const store = new SegmentStore(root, new TestFileSystem(root), { check, device: undefined });
  const list = new Catalogue(store, new VirtualClock(NOON_MS)).list('gate', { fromMs: 0, toMs: 1 }, () => []);
  await assert.rejects(list, { message: 'the archive on disk cannot be read: its directory (archive-in-use)' });
});

test('files that others add or remove are noticed at once in the interval, elsewhere within seconds', async (t) => {
  const { root, list, days, clock } = stage(t);
  const first = record(root, { startMs: NOON_MS });
  const query = { fromMs: at(`${DAY}T00:00`), toMs: at(`${DAY}T20:00`) };
  assert.equal((await list(query)).length, 1);
  record(root, { startMs: NOON_MS + HOUR_MS });
  assert.equal((await list(query)).length, 2);
  rmSync(join(root, first));
  assert.deepEqual(await list(query), [`${DAY}T13:00`]);
  record(root, { startMs: at('2026-02-01T12:00') });
  clock.advance(6_000);
  assert.deepEqual(await days(0), ['2026-02-01', DAY]);
  rmSync(join(root, '2026/02'), { recursive: true });
  clock.advance(6_000);
  assert.deepEqual(await days(0), [DAY]);
});

test('a directory that has just changed is read again, because a second change may leave its time as it was', async (t) => {
  const { root, list, clock } = stage(t);
  const add = (startMs: number): void => {
    const directory = dirname(join(root, record(root, { startMs })));
    utimesSync(directory, clock.wallMs() / 1000, clock.wallMs() / 1000);
  };
  const query = { fromMs: at(`${DAY}T00:00`), toMs: at(`${DAY}T20:00`) };
  add(NOON_MS);
  assert.equal((await list(query)).length, 1);
  add(NOON_MS + HOUR_MS);
  assert.equal((await list(query)).length, 2);
});

test('a file that another program adds while the time of our own change is asked for is in the next list', async (t) => {
  const { root, catalogue, fs, list } = stage(t);
  const add = (startMs: number, changedS: number): void =>
    utimesSync(dirname(join(root, record(root, { startMs }))), changedS, changedS);
  const query = { fromMs: at(`${DAY}T00:00`), toMs: at(`${DAY}T20:00`) };
  add(NOON_MS, 1_000);
  await list(query);
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  fs.before = () => {
    fs.before = () => {};
    asked.resolve();
    return answer.promise;
  };
  add(NOON_MS + HOUR_MS, 2_000);
  catalogue.opened(nameOf({ startMs: NOON_MS + HOUR_MS }));
  await asked.promise;
  await list(query);
  add(NOON_MS + 2 * HOUR_MS, 3_000);
  answer.resolve();
  await fs.idle();
  assert.deepEqual(
    await list(query),
    [12, 13, 14].map((hour) => `${DAY}T${hour}:00`),
  );
});

test('what was read once is not read again', async (t) => {
  const { root, list, fs, clock } = stage(t);
  for (let hour = 0; hour < 12; hour++) record(root, { startMs: NOON_MS - hour * HOUR_MS });
  const query = { fromMs: at(`${DAY}T00:30`), toMs: at(`${DAY}T20:00`) };
  await list(query);
  clock.advance(60_000);
  fs.operations.length = 0;
  await list(query);
  assert.deepEqual(
    fs.operations.filter(({ path }) => path.endsWith('.mp4')),
    [],
  );
  assert.ok(
    fs.operations.every(({ name, path }) => name === 'facts' || path.length < 10),
    'no day is read again',
  );
});

test('files outside the interval are not looked at, but for the one that may reach into it', async (t) => {
  const { root, list, fs } = stage(t);
  for (let i = 0; i < 100; i++) record(root, { startMs: NOON_MS - i * 5 * MINUTE_MS });
  fs.operations.length = 0;
  assert.equal((await list({ fromMs: NOON_MS - 92 * MINUTE_MS, toMs: NOON_MS - 88 * MINUTE_MS })).length, 2);
  const read = new Set(fs.operations.map(({ path }) => path).filter((path) => path.endsWith('.mp4')));
  assert.ok(read.size <= 12, `${read.size} files of 100`);
});

test('own files are in the list without reading their directory again', async (t) => {
  const { root, catalogue, fs, list, clock } = stage(t);
  const query = { fromMs: at(`${DAY}T00:00`), toMs: at(`${DAY}T20:00`) };
  record(root, { startMs: NOON_MS });
  await list(query);
  clock.advance(60_000);
  await list(query);
  record(root, { startMs: NOON_MS + HOUR_MS });
  const segment = nameOf({ startMs: NOON_MS + HOUR_MS });
  catalogue.opened(segment);
  await fs.idle();
  catalogue.closed(closedSegment(segment, { sizeBytes: 77, mtimeMs: 5, sequence: 0, endMs: NOON_MS + 2 * HOUR_MS }));
  fs.operations.length = 0;
  const { segments } = await catalogue.list('gate', query, () => []);
  assert.deepEqual(
    segments.map(({ sizeBytes }) => sizeBytes === 77),
    [false, true],
  );
  assert.ok(!fs.operations.some(({ name, path }) => name === 'list' && path === '2026/03/10'));
});

test('a file is missing only if its disk is there: of an unmounted one nothing is known', async (t) => {
  const { root, catalogue } = stage(t);
  const gone = nameOf({ startMs: NOON_MS });
  record(root, { startMs: NOON_MS });
  record(root, { startMs: NOON_MS + HOUR_MS });
  const told = async () => [(await catalogue.read(gone)).kind, await catalogue.isMissing(gone)];
  assert.deepEqual(await told(), ['closed', false]);
  rmSync(join(root, formatPath(gone)));
  assert.deepEqual(await told(), ['missing', true]);
  // The directory that the disk was mounted on: empty, or not there.
  renameSync(root, `${root}-away`);
  t.after(() => rmSync(`${root}-away`, { recursive: true }));
  assert.deepEqual(await told(), ['unreadable', false]);
  mkdirSync(root);
  assert.deepEqual(await told(), ['unreadable', false]);
});
