// Exports from an archive on a real disk, decoded again by ffmpeg.

import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { VirtualClock, systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { decodeFrameNumbers, decodePictures } from '../../test/camera/frame-numbers.ts';
import { numberedVideo, recordedPart, WALL_START_MS } from '../../test/support/joined-file.ts';
import { probe } from '../../test/support/probe.ts';
import { workspace } from '../../test/support/workspace.ts';
import { Archive } from '../archive/archive.ts';
import { formatPath } from '../archive/disk/names.ts';
import { bench } from '../archive/test-support.ts';
import { readSampleIndex } from '../mp4/sample-index.ts';
import { estimateExport, exportWindow } from './export.ts';
import type { ExportRequest, PlannerDeps } from './export-plan.ts';
import { makeTimelapse } from './ffmpeg.ts';
import type { JobOutcome } from './job.ts';
import type { WriteOptions } from './write-movie.ts';

const run = promisify(execFile);
const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);
/** What a movie says of itself. */
const tagsOf = async (path: string): Promise<Record<string, string>> => {
  const { stdout } = await run('ffprobe', ['-v', 'error', '-show_format', '-of', 'json', path]);
  return (JSON.parse(stdout) as { format: { tags: Record<string, string> } }).format.tags;
};
const window = (fromMs: number, toMs: number): ExportRequest => ({
  cameraId: 'gate',
  fromMs: WALL_START_MS + fromMs,
  toMs: WALL_START_MS + toMs,
});

interface Stage {
  readonly root: string;
  readonly deps: PlannerDeps & WriteOptions;
  readonly result: string;
  readonly export: (request: ExportRequest, changes?: Partial<PlannerDeps & WriteOptions>) => Promise<JobOutcome>;
  /** Names in the directory of results. */
  readonly left: () => string[];
}

/** An archive with these files, by the milliseconds at which they start. */
async function stage(t: TestContext, files: readonly (readonly [number, Buffer])[]): Promise<Stage> {
  const directory = workspace(t);
  const root = join(directory, 'recordings');
  for (const [startMs, bytes] of files) {
    const path = join(root, formatPath({ name: 'Gate', cameraId: 'gate', startMs: WALL_START_MS + startMs }));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytes);
  }
  const clock = new VirtualClock(WALL_START_MS + 3_600_000);
  const archive = new Archive({ root, clock, log: silentLog, syncIntervalMs: 5_000 });
  await archive.recover();
  t.after(() => archive.close());
  const deps = {
    recordPath: root,
    archive,
    wallMs: () => clock.wallMs(),
    version: '1.2.3',
    spareBytes: async () => Infinity,
  };
  const result = join(directory, 'jobs', 'one.mp4');
  return {
    root,
    deps,
    result,
    async export(request, changes = {}) {
      const { signal } = new AbortController();
      return (await exportWindow(request, result, { ...deps, ...changes }, signal)).outcome;
    },
    left: () => (existsSync(dirname(result)) ? readdirSync(dirname(result)) : []),
  };
}

test('an export over three files, one of another size, has the pictures of its window and says what is missing', async (t) => {
  const directory = workspace(t);
  const [first, second, third] = [
    numberedVideo(directory),
    numberedVideo(directory, { firstNumber: 500, size: '320x192' }),
    numberedVideo(directory, { firstNumber: 1000 }),
  ].map((video, i) => recordedPart(video, { run: 'abc'[i] ?? '', wallStartMs: WALL_START_MS + i * 10_000 }));
  const { result, left, ...stand } = await stage(t, [
    [0, first as Buffer],
    [10_000, second as Buffer],
    [20_000, third as Buffer],
  ]);
  const shares: number[] = [];
  const done = await stand.export(window(2_000, 23_000), { progress: (share) => shares.push(share) });
  const seen = await decodePictures(result);
  assert.deepEqual(seen, {
    numbers: [...numbers(50, 100), ...numbers(500, 600), ...numbers(1000, 1075)],
    complaints: '',
  });
  const gaps = [
    { fromMs: WALL_START_MS + 4_000, toMs: WALL_START_MS + 10_000 },
    { fromMs: WALL_START_MS + 14_000, toMs: WALL_START_MS + 20_000 },
  ];
  assert.deepEqual(done, { sizeBytes: readFileSync(result).length, durationMs: 9_000, gaps });
  assert.deepEqual(left(), ['one.mp4']);
  assert.equal(shares.at(-1), 1);

  const tags = await tagsOf(result);
  assert.match(tags['comment'] ?? '', /2 gaps.*\n2026-01-05T10:00:04\.000Z to 2026-01-05T10:00:10\.000Z \(6 s\)/);
  const details = JSON.parse(tags['description'] ?? '{}') as { gaps: unknown; parts: unknown[] };
  assert.deepEqual(details.gaps, [
    { from: '2026-01-05T10:00:04.000Z', to: '2026-01-05T10:00:10.000Z' },
    { from: '2026-01-05T10:00:14.000Z', to: '2026-01-05T10:00:20.000Z' },
  ]);
  assert.equal(details.parts.length, 3);
  assert.equal(tags['encoder'], 'kube-nvr 1.2.3');

  assert.deepEqual(await estimateExport(window(2_000, 23_000), stand.deps), done);
});

test('an export that cannot be fails with a reason, and leaves nothing', async (t) => {
  const video = recordedPart(numberedVideo(workspace(t)));
  const { left, ...stand } = await stage(t, [[0, video]]);
  const future = window(7_200_000, 7_300_000);
  await assert.rejects(stand.export(future), {
    code: 'no-footage',
    message: 'the window begins in the future: 2026-01-05T12:00:00.000Z',
  });
  await assert.rejects(stand.export(window(10_000, 20_000)), {
    code: 'no-footage',
    message:
      'this node has no footage of camera gate from 2026-01-05T10:00:10.000Z to 2026-01-05T10:00:20.000Z: the whole window is a gap',
  });
  await assert.rejects(stand.export(window(0, 4_000), { spareBytes: async () => 10_000 }), { code: 'disk-full' });
  assert.deepEqual(left(), []);
});

/** Three stretches of four seconds: H.264, behind a gap H.265, and H.264 again. */
async function changing(t: TestContext): Promise<Stage> {
  const directory = workspace(t);
  const encoder = 'keyint=25:min-keyint=25:scenecut=0';
  const at = (ms: number, run: string) => ({ run, wallStartMs: WALL_START_MS + ms });
  return stage(t, [
    [0, recordedPart(numberedVideo(directory, { encoder }))],
    [10_000, recordedPart(numberedVideo(directory, { codec: 'h265', encoder, firstNumber: 200 }), at(10_000, 'b'))],
    [14_000, recordedPart(numberedVideo(directory, { encoder, firstNumber: 400 }), at(14_000, 'c'))],
  ]);
}

test('an export over changes of the video codec is an archive of numbered movies, each whole and at its place', async (t) => {
  const { deps, result, left, ...stand } = await changing(t);
  const done = await stand.export(window(1_000, 17_000));
  assert.deepEqual(left(), ['one.mp4']);
  assert.equal(done.sizeBytes, statSync(result).size);
  assert.deepEqual(await estimateExport(window(1_000, 17_000), deps), done);
  assert.equal(done.durationMs, 10_000);
  assert.deepEqual(
    done.gaps.map(({ fromMs, toMs }) => [fromMs - WALL_START_MS, toMs - WALL_START_MS]),
    [[4_000, 10_000]],
  );
  const parts = done.parts ?? [];
  assert.deepEqual(
    parts.map(({ name, fromMs, toMs, durationMs }) => [name, fromMs - WALL_START_MS, toMs - WALL_START_MS, durationMs]),
    [
      ['gate_20260105T100001Z_1_h264.mp4', 1_000, 10_000, 3_000],
      ['gate_20260105T100010Z_2_h265.mp4', 10_000, 14_000, 4_000],
      ['gate_20260105T100014Z_3_h264.mp4', 14_000, 17_000, 3_000],
    ],
  );
  const expected = [numbers(25, 100), numbers(200, 300), numbers(400, 475)];
  const bytes = readFileSync(result);
  const apart = join(dirname(result), 'apart.mp4');
  for (const [i, { offset, sizeBytes }] of parts.entries()) {
    writeFileSync(apart, bytes.subarray(offset, offset + sizeBytes));
    const decoded = await decodePictures(apart);
    assert.deepEqual([decoded.numbers, decoded.complaints], [expected[i], '']);
  }
  // Programs of others see the same, and agree with the checksums.
  const listed = execFileSync('python3', [
    '-c',
    'import sys, zipfile, json; z = zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; ' +
      'print(json.dumps([[i.filename, i.file_size, list(i.date_time)] for i in z.infolist()]))',
    result,
  ]);
  assert.deepEqual(
    JSON.parse(listed.toString()),
    parts.map(({ name, sizeBytes, fromMs }) => [
      name,
      sizeBytes,
      [2026, 1, 5, 10, 0, Math.floor((fromMs / 1000) % 60) & ~1],
    ]),
  );
  if (spawnSync('unzip', ['-v']).status === 0) execFileSync('unzip', ['-tqq', result]);
});

test('a time-lapse over changes of the video codec is one movie, with the pictures that were on screen', async (t) => {
  const { result, ...stand } = await changing(t);
  // On screen, by 40 ms each: 25 to 99, then 200 to 299, then 400 to 474.
  const onScreen = (seconds: number): number => {
    const picture = Math.floor(seconds * 25 + 1e-9);
    return picture < 75 ? 25 + picture : picture < 175 ? 200 + picture - 75 : 400 + picture - 175;
  };
  const output = `${result}.lapse.mp4`;
  for (const speed of [2, 7, 31, 120]) {
    const done = await stand.export({ ...window(1_000, 17_000), lapseSpeed: speed });
    assert.equal(done.parts?.length, 3);
    const run = { program: 'ffmpeg', input: result, movies: done.parts, output, speed, durationMs: done.durationMs };
    const { signal } = new AbortController();
    await makeTimelapse({ ...run, progress: () => {}, spareBytes: async () => Infinity, clock: systemClock }, signal);
    const count = Math.ceil((10 * 30) / speed - 1e-6);
    assert.deepEqual(
      await decodeFrameNumbers(output),
      Array.from({ length: count }, (_, i) => onScreen((i * speed) / 30)),
      `${speed} times faster`,
    );
    const { streams, durationSeconds } = await probe(output);
    assert.deepEqual([streams.length, streams[0]?.codec_name], [1, 'h264']);
    assert.ok(Math.abs(durationSeconds - count / 30) < 1e-3);
    // Its times are those of the time-lapse, in one description of all of it.
    const { description = '' } = await tagsOf(output);
    const said = JSON.parse(description) as { speed: number; duration_seconds: number; parts: PartTimes[] };
    assert.equal(said.speed, speed);
    // The header rounds up to milliseconds.
    assert.ok(Math.abs(said.duration_seconds - durationSeconds) < 0.002, 'whole pictures, as the file has them');
    for (const [i, seconds] of [3, 7, 10].entries()) {
      assert.ok(Math.abs((said.parts[i]?.movie_to_seconds ?? 0) - seconds / speed) <= 0.001, description);
    }
  }
});

interface PartTimes {
  readonly movie_to_seconds: number;
}

test('a camera that changes its codec too often gets an error that says so', async (t) => {
  const directory = workspace(t);
  const short = { frames: 5, encoder: 'keyint=25:min-keyint=25:scenecut=0' };
  const videos = [numberedVideo(directory, short), numberedVideo(directory, { ...short, codec: 'h265' })];
  const { left, ...stand } = await stage(
    t,
    Array.from({ length: 60 }, (_, i) => {
      const run = i.toString(16).padStart(2, '0').repeat(8);
      const video = videos[i % 2] as (typeof videos)[number];
      return [i * 1_000, recordedPart(video, { run, wallStartMs: WALL_START_MS + i * 1_000 })] as const;
    }),
  );
  await assert.rejects(stand.export(window(0, 60_000)), {
    code: 'codec-changed',
    message: /too often: request the footage before and after 2026-01-05T10:00:50\.000Z separately$/,
    retry: { splitAtMs: WALL_START_MS + 50_000 },
  });
  assert.deepEqual(left(), []);
  assert.equal((await stand.export(window(0, 50_000))).parts?.length, 50);
});

test('job and file say the same of a gap, to the millisecond: it ends at that of the next file', async (t) => {
  const video = numberedVideo(workspace(t));
  const wallStartMs = WALL_START_MS + 10_000.5847;
  const stand = await stage(t, [
    [0, recordedPart(video)],
    [10_000, recordedPart(video, { run: 'b', wallStartMs })],
  ]);
  const { gaps } = await stand.export(window(0, 14_000));
  assert.deepEqual(gaps, [{ fromMs: WALL_START_MS + 4_000, toMs: WALL_START_MS + 10_000 }]);
  const tags = await tagsOf(stand.result);
  const said = JSON.parse(tags['description'] ?? '{}') as { gaps: { from: string; to: string }[] };
  assert.deepEqual(
    said.gaps.map(({ from, to }) => ({ fromMs: Date.parse(from), toMs: Date.parse(to) })),
    gaps,
  );
  assert.match(tags['comment'] ?? '', /^1 gap, closed in this movie:\n.*10:00:10\.000Z \(6 s\)$/m);
});

test('gaps have the causes that the account of the time knows, in the job and in the file', async (t) => {
  const video = recordedPart(numberedVideo(workspace(t)));
  const stand = await stage(t, [[0, video]]);
  const asked: unknown[] = [];
  const knownTime = async (...query: unknown[]) => {
    asked.push(query);
    const [fromMs, cause] = [WALL_START_MS + 3_990, 'camera-unreachable'];
    const gaps = [
      { fromMs, toMs: WALL_START_MS + 8_000, cause },
      { fromMs: WALL_START_MS + 8_000, toMs: WALL_START_MS + 9_000, cause: 'stopped' },
    ];
    return { gaps, untilMs: WALL_START_MS + 9_000 };
  };
  const done = await stand.export(window(2_000, 9_000), { knownTime });
  const gap = { fromMs: WALL_START_MS + 4_000, toMs: WALL_START_MS + 9_000, cause: 'camera-unreachable' };
  assert.deepEqual(done.gaps, [gap], 'most of it');
  assert.deepEqual(asked, [['gate', WALL_START_MS + 2_000, WALL_START_MS + 9_000, false]]);
  const { stdout } = await run('ffprobe', ['-v', 'error', '-show_format', '-of', 'json', stand.result]);
  const { tags } = (JSON.parse(stdout) as { format: { tags: Record<string, string> } }).format;
  assert.match(tags['comment'] ?? '', /10:00:04\.000Z to 2026-01-05T10:00:09\.000Z \(5 s, camera-unreachable\)/);
  const { gaps } = JSON.parse(tags['description'] ?? '{}') as { gaps: { cause: string }[] };
  assert.deepEqual(
    gaps.map(({ cause }) => cause),
    ['camera-unreachable'],
  );
});

for (const { name, known, now, until, gaps } of [
  { name: 'of a camera that records has no gap at its end', known: 4_000, now: 4_700, until: 4_000, gaps: [] },
  {
    name: 'has the newest footage, also what came while it was planned',
    known: 3_500,
    now: 4_200,
    until: 4_000,
    gaps: [],
  },
  { name: 'ends with its footage, give or take a frame', known: 4_040, now: 4_200, until: 4_000, gaps: [] },
  {
    name: 'of a camera that is away has the gap up to now',
    known: 7_000,
    now: 7_000,
    until: 7_000,
    gaps: [{ fromMs: WALL_START_MS + 4_000, toMs: WALL_START_MS + 7_000, cause: 'camera-unreachable' }],
  },
  {
    name: 'without an account of the time has a gap up to now',
    known: undefined,
    now: 7_000,
    until: 7_000,
    gaps: [{ fromMs: WALL_START_MS + 4_000, toMs: WALL_START_MS + 7_000 }],
  },
] as const) {
  test(`an export into the future ${name}`, async (t) => {
    const stand = await stage(t, [[0, recordedPart(numberedVideo(workspace(t)))]]);
    const knownTime = async () => ({
      gaps: [{ fromMs: WALL_START_MS + 4_000, toMs: WALL_START_MS + 7_000, cause: 'camera-unreachable' }],
      untilMs: WALL_START_MS + (known ?? 0),
    });
    const changes = { wallMs: () => WALL_START_MS + now, ...(known === undefined ? {} : { knownTime }) };
    const done = await stand.export(window(1_000, 600_000), changes);
    assert.deepEqual([done.gaps, done.untilMs], [gaps, WALL_START_MS + until]);
    assert.equal(done.durationMs, 3_000);
    assert.deepEqual(await estimateExport(window(1_000, 600_000), { ...stand.deps, ...changes }), done);
    const said = JSON.parse((await tagsOf(stand.result))['description'] ?? '{}') as { to: string; gap_count: number };
    assert.deepEqual([Date.parse(said.to), said.gap_count], [WALL_START_MS + until, gaps.length]);
  });
}

test('a cancelled export stops and leaves nothing', async (t) => {
  const video = recordedPart(numberedVideo(workspace(t)));
  const { deps, result, left } = await stage(t, [[0, video]]);
  const cancel = new AbortController();
  const spareBytes = async (): Promise<number> => {
    cancel.abort(new Error('cancelled'));
    return Infinity;
  };
  await assert.rejects(exportWindow(window(0, 4_000), result, { ...deps, spareBytes }, cancel.signal), {
    message: 'cancelled',
  });
  assert.deepEqual(left(), []);
});

test('a file that retention takes away while it is copied becomes a gap', async (t) => {
  const directory = workspace(t);
  const video = numberedVideo(directory);
  const stand = await stage(t, [
    [0, recordedPart(video)],
    [10_000, recordedPart(video, { run: 'b', wallStartMs: WALL_START_MS + 10_000 })],
  ]);
  const first = join(stand.root, formatPath({ name: 'Gate', cameraId: 'gate', startMs: WALL_START_MS }));
  let asked = 0;
  const done = await stand.export(window(0, 14_000), {
    spareBytes: async () => {
      // The plan is made, nothing is copied yet.
      if (asked++ === 0) rmSync(first);
      return Infinity;
    },
  });
  assert.deepEqual(done.gaps, [{ fromMs: WALL_START_MS, toMs: WALL_START_MS + 10_000 }]);
  assert.deepEqual((await decodePictures(stand.result)).numbers, numbers(0, 100));
});

for (const format of ['fmp4', 'mp4'] as const) {
  test(`${format}: what is being written is in the export up to its last fragment`, async (t) => {
    const root = workspace(t);
    const results = workspace(t);
    const { archive, camera, clock, fs } = await bench({ root, format, segmentDurationMs: 60_000 });
    const startMs = clock.wallMs();
    camera.begin();
    await camera.play(5.5, fs);
    const result = join(results, 'two.mp4');
    const deps = {
      recordPath: root,
      archive,
      wallMs: () => clock.wallMs(),
      version: '1',
      spareBytes: async () => Infinity,
    };
    const request = { cameraId: 'gate', fromMs: startMs + 1_000, toMs: startMs + 60_000 };
    const { outcome: done } = await exportWindow(request, result, deps, new AbortController().signal);
    assert.ok(done.durationMs > 3_400 && done.durationMs <= 4_500, `${done.durationMs} ms`);
    // What is missing at the end is what is not written yet.
    assert.equal(done.gaps.length, 1);
    assert.equal(Math.round((done.gaps[0]?.fromMs ?? 0) - request.fromMs), Math.round(done.durationMs));
    const { streams } = await probe(result);
    assert.equal(streams.length, 1);
    camera.end();
    await archive.close();
  });
}

test('every byte of an export is where the index of its file says', async (t) => {
  const root = workspace(t);
  const results = workspace(t);
  const { archive, camera, clock, fs } = await bench({ root, segmentDurationMs: 4_000 });
  const startMs = clock.wallMs();
  camera.begin();
  await camera.play(20, fs);
  camera.end();
  await archive.close();
  const reading = new Archive({ root, clock, log: silentLog, syncIntervalMs: 5_000 });
  await reading.recover();
  const result = join(results, 'three.mp4');
  const deps = {
    recordPath: root,
    archive: reading,
    wallMs: () => clock.wallMs(),
    version: '1',
    spareBytes: async () => Infinity,
  };
  const request = { cameraId: 'gate', fromMs: startMs + 2_020, toMs: startMs + 17_000 };
  const { outcome: done } = await exportWindow(request, result, deps, new AbortController().signal);
  assert.deepEqual([Math.round(done.durationMs), done.gaps], [14_980, []]);
  const bytes = readFileSync(result);
  // Each sample of the test camera carries its time.
  const times: number[] = [];
  for (let at = 0; (at = bytes.indexOf(Buffer.from('000000c465', 'hex'), at)) >= 0; at += 5) {
    times.push(bytes.readUIntBE(at + 5, 6));
  }
  const first = times[0] ?? 0;
  assert.deepEqual(
    times,
    times.map((_, i) => first + i * 3600),
  );
  assert.equal(times.length, 375);
  await assert.rejects(
    readSampleIndex(async () => bytes, bytes.length),
    { code: 'UNSUPPORTED' },
  );
  await reading.close();
});

test('footage is kept from retention while it is exported, and let go of when the export ends or fails', async (t) => {
  const directory = workspace(t);
  const file = recordedPart(numberedVideo(directory), { run: 'a', wallStartMs: WALL_START_MS });
  const { deps, ...stand } = await stage(t, [[0, file]]);
  const held: unknown[] = [];
  let listedWhileHeld = 0;
  const archive: PlannerDeps['archive'] = {
    list: (cameraId, query) => {
      listedWhileHeld += held.length;
      return deps.archive.list(cameraId, query);
    },
    holdWindow(...hold) {
      held.push(hold);
      return () => void held.splice(held.indexOf(hold), 1);
    },
  };
  await stand.export(window(0, 2_000), { archive });
  assert.equal(listedWhileHeld, 1, 'before anything is looked up');
  assert.deepEqual(held, []);
  await assert.rejects(stand.export(window(1_000_000, 1_001_000), { archive }));
  assert.equal(listedWhileHeld, 2);
  assert.deepEqual(held, []);
});
