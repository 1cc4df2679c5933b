import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { copyFile, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { systemClock } from '../../../base/clock.ts';
import { writeArchive } from '../../../test/bench/archive.ts';
import { PATIENCE_MS, until } from '../../../test/support/until.ts';
import { nodeFileSystem, type FileSystem } from '../disk/file-system.ts';
import { formatPath } from '../disk/names.ts';
import { SegmentStore } from '../disk/segment-store.ts';
import { Catalogue } from './catalogue.ts';
import { ThreadedDetailsReader, type DetailsReader } from './details-reader.ts';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const START_MS = Date.UTC(2026, 0, 1, 12);
const CAMERA = 'bench-000';
const segmentAt = (startMs: number): string => formatPath({ name: 'Bench-0', cameraId: CAMERA, startMs });

async function archive(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), 'details-test-'));
  t.after(() => rm(root, { recursive: true }));
  writeArchive(root, 1, 12, START_MS + HOUR_MS);
  const reader = new ThreadedDetailsReader();
  t.after(() => reader.close());
  return { root, reader, store: new SegmentStore(root, nodeFileSystem) };
}

/** The thread leaves to its caller what it has not read after 50 ms: asks until it has answered for the last path, or for `each`. */
const answered = (reader: DetailsReader, paths: readonly string[], each = false) =>
  until('the thread answers', async () => {
    const details = await reader.read(paths);
    return (each ? !details.includes(undefined) : details.at(-1) !== undefined) && details;
  });

test('the thread tells what closed segments say, and leaves other files to the caller', async (t) => {
  const { root, reader } = await archive(t);
  const foreign = join(root, 'foreign.mp4');
  await writeFile(foreign, 'no recording');
  const path = join(root, segmentAt(START_MS));
  const details = await answered(reader, [foreign, join(root, 'missing.mp4'), path]);
  const { size, mtimeMs } = await stat(path);
  assert.deepEqual(details, [
    undefined,
    undefined,
    { sizeBytes: size, mtimeMs, sequence: 0, endMs: START_MS + 300_000 },
  ]);
});

test('a pipe among the segments does not hold up the thread', async (t) => {
  const { root, reader } = await archive(t);
  const pipe = join(root, segmentAt(START_MS + 1_000));
  execFileSync('mkfifo', [pipe]);
  // A thread that waits for the pipe can neither answer nor be ended.
  const freed = new AbortController();
  t.after(() => freed.abort());
  const answer = answered(reader, [pipe, join(root, segmentAt(START_MS))]);
  const late = sleep(PATIENCE_MS, 'late', { signal: freed.signal, ref: false }).catch(() => 'late');
  const first = await Promise.race([answer, late]);
  if (first === 'late') closeSync(openSync(pipe, 'r+'));
  assert.deepEqual(
    (await answer).map((details) => details?.sequence),
    [undefined, 0],
  );
  assert.notEqual(first, 'late');
});

test('a listing is the same with the thread and without', async (t) => {
  const { root, reader, store } = await archive(t);
  await writeFile(join(root, segmentAt(START_MS + 1_000)), 'damaged');
  await copyFile(join(root, segmentAt(START_MS)), join(root, segmentAt(START_MS + 2 * MINUTE_MS)));
  const query = { fromMs: START_MS, toMs: START_MS + HOUR_MS, tzOffsetMinutes: 0 };
  const with_ = await new Catalogue(store, systemClock, reader).list(CAMERA, query, () => []);
  const without = await new Catalogue(store, systemClock).list(CAMERA, query, () => []);
  assert.equal(with_.segments.length, 14);
  assert.deepEqual(with_, without);
});

test('a listing leaves all files to the thread, also those that may reach into the interval', async (t) => {
  const { root, reader } = await archive(t);
  const opened: string[] = [];
  const open: FileSystem['open'] = (path, mode) => {
    opened.push(path);
    return nodeFileSystem.open(path, mode);
  };
  const patient: DetailsReader = { read: (paths) => answered(reader, paths, true), close: () => reader.close() };
  const catalogue = new Catalogue(new SegmentStore(root, { ...nodeFileSystem, open }), systemClock, patient);
  const query = { fromMs: START_MS + HOUR_MS / 2, toMs: START_MS + HOUR_MS, tzOffsetMinutes: 0 };
  const { segments } = await catalogue.list(CAMERA, query, () => []);
  assert.deepEqual([segments.length, opened], [6, []]);
});

test('a reader that was closed answers again', async (t) => {
  const { root, reader } = await archive(t);
  const paths = [join(root, segmentAt(START_MS))];
  const question = reader.read(paths);
  await reader.close();
  assert.deepEqual(await question, [undefined]);
  assert.equal((await answered(reader, paths))[0]?.sequence, 0);
});

test('a thread whose file was replaced since the start is not started: the caller reads', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'details-test-'));
  t.after(() => rm(root, { recursive: true }));
  const script = join(root, 'worker.mjs');
  const write = async (number: number): Promise<void> => {
    const answer = `{ id, numbers: new Float64Array(5 * paths.length).fill(${number}) }`;
    await writeFile(
      `${script}.new`,
      `import { parentPort } from 'node:worker_threads';
       parentPort.on('message', ({ id, paths }) => parentPort.postMessage(${answer}));`,
    );
    await rename(`${script}.new`, script);
  };
  const open = (): ThreadedDetailsReader => {
    const reader = new ThreadedDetailsReader(pathToFileURL(script));
    t.after(() => reader.close());
    return reader;
  };
  await write(1);
  const [started, late] = [open(), open()];
  assert.equal((await started.read(['a']))[0]?.sizeBytes, 1);
  await write(2);
  assert.deepEqual(await late.read(['a', 'b']), [undefined, undefined]);
  assert.equal((await started.read(['a']))[0]?.sizeBytes, 1, 'a thread that runs goes on');
  assert.equal((await open().read(['a']))[0]?.sizeBytes, 2);
});
