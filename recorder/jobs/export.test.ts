// Exports from an archive on a real disk, decoded again by ffmpeg.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { decodePictures } from '../../test/camera/frame-numbers.ts';
import { numberedVideo, recordedPart, WALL_START_MS } from '../../test/support/joined-file.ts';
import { probe } from '../../test/support/probe.ts';
import { workspace } from '../../test/support/workspace.ts';
import { Archive } from '../archive/archive.ts';
import { formatPath } from '../archive/names.ts';
import { bench } from '../archive/test-support.ts';
import { readSampleIndex } from '../mp4/sample-index.ts';
import { estimateExport, exportWindow } from './export.ts';
import type { ExportRequest, PlannerDeps } from './export-plan.ts';
import type { WriteOptions } from './write-movie.ts';

const run = promisify(execFile);
const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);
const window = (fromMs: number, toMs: number): ExportRequest => ({
  cameraId: 'gate',
  fromMs: WALL_START_MS + fromMs,
  toMs: WALL_START_MS + toMs,
});

interface Stage {
  readonly root: string;
  readonly deps: PlannerDeps & WriteOptions;
  readonly result: string;
  readonly export: (
    request: ExportRequest,
    changes?: Partial<PlannerDeps & WriteOptions>,
  ) => ReturnType<typeof exportWindow>;
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
    room: async () => Infinity,
  };
  const result = join(directory, 'jobs', 'one.mp4');
  return {
    root,
    deps,
    result,
    export: (request, changes = {}) =>
      exportWindow(request, result, { ...deps, ...changes }, new AbortController().signal),
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

  const { stdout } = await run('ffprobe', ['-v', 'error', '-show_format', '-of', 'json', result]);
  const { tags } = (JSON.parse(stdout) as { format: { tags: Record<string, string> } }).format;
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
      'this node has no footage of camera gate from 2026-01-05T10:00:10.000Z to 2026-01-05T10:00:20.000Z: the window lies wholly in a gap',
  });
  await assert.rejects(stand.export(window(0, 4_000), { room: async () => 10_000 }), { code: 'disk-full' });
  assert.deepEqual(left(), []);
});

test('an export over a change of the video codec fails, and says when it was', async (t) => {
  const directory = workspace(t);
  const h265 = numberedVideo(directory, { codec: 'h265', encoder: 'keyint=25:min-keyint=25:scenecut=0' });
  const { left, ...stand } = await stage(t, [
    [0, recordedPart(numberedVideo(directory))],
    [10_000, recordedPart(h265, { run: 'b', wallStartMs: WALL_START_MS + 10_000 })],
  ]);
  await assert.rejects(stand.export(window(0, 14_000)), {
    code: 'codec-changed',
    message:
      /^the camera changed its video codec at 2026-01-05T10:00:10\.000Z: ask for what is before and what is behind/,
  });
  assert.deepEqual(left(), []);
  await stand.export(window(10_000, 14_000));
  assert.equal((await decodePictures(stand.result)).numbers.length, 100);
});

test('gaps have the causes that the account of the time knows, in the job and in the file', async (t) => {
  const video = recordedPart(numberedVideo(workspace(t)));
  const stand = await stage(t, [[0, video]]);
  const asked: unknown[] = [];
  const knownGaps = async (...query: unknown[]) => {
    asked.push(query);
    const [fromMs, cause] = [WALL_START_MS + 3_990, 'camera-unreachable'];
    return [
      { fromMs, toMs: WALL_START_MS + 8_000, cause },
      { fromMs: WALL_START_MS + 8_000, toMs: WALL_START_MS + 9_000, cause: 'stopped' },
    ];
  };
  const done = await stand.export(window(2_000, 9_000), { knownGaps });
  const gap = { fromMs: WALL_START_MS + 4_000, toMs: WALL_START_MS + 9_000, cause: 'camera-unreachable' };
  assert.deepEqual(done.gaps, [gap], 'most of it');
  assert.deepEqual(asked, [['gate', WALL_START_MS + 2_000, WALL_START_MS + 9_000]]);
  const { stdout } = await run('ffprobe', ['-v', 'error', '-show_format', '-of', 'json', stand.result]);
  const { tags } = (JSON.parse(stdout) as { format: { tags: Record<string, string> } }).format;
  assert.match(tags['comment'] ?? '', /10:00:04\.000Z to 2026-01-05T10:00:09\.000Z \(5 s, camera-unreachable\)/);
  const { gaps } = JSON.parse(tags['description'] ?? '{}') as { gaps: { cause: string }[] };
  assert.deepEqual(
    gaps.map(({ cause }) => cause),
    ['camera-unreachable'],
  );
});

test('a cancelled export stops and leaves nothing', async (t) => {
  const video = recordedPart(numberedVideo(workspace(t)));
  const { deps, result, left } = await stage(t, [[0, video]]);
  const cancel = new AbortController();
  const room = async (): Promise<number> => {
    cancel.abort(new Error('cancelled'));
    return Infinity;
  };
  await assert.rejects(exportWindow(window(0, 4_000), result, { ...deps, room }, cancel.signal), {
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
    room: async () => {
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
    const deps = { recordPath: root, archive, wallMs: () => clock.wallMs(), version: '1', room: async () => Infinity };
    const request = { cameraId: 'gate', fromMs: startMs + 1_000, toMs: startMs + 60_000 };
    const done = await exportWindow(request, result, deps, new AbortController().signal);
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
    room: async () => Infinity,
  };
  const request = { cameraId: 'gate', fromMs: startMs + 2_020, toMs: startMs + 17_000 };
  const done = await exportWindow(request, result, deps, new AbortController().signal);
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
