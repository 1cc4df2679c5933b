import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { systemClock } from '../../base/clock.ts';
import { silentLog, type Log } from '../../base/log.ts';
import { encodeVideo } from '../../test/support/encoded-samples.ts';
import { recordedPart } from '../../test/support/joined-file.ts';
import { until } from '../../test/support/until.ts';
import { nodeFileSystem } from '../archive/disk/file-system.ts';
import { dayStartMs, formatPath, type SegmentName } from '../archive/disk/names.ts';
import { temporaryDirectory } from '../archive/test-support.ts';
import { ArchiveFiles } from '../footage/archive-file.ts';
import { SURE } from './grid.ts';
import { bandsOf, searchRegion } from './region.ts';
import { LookStore } from './store.ts';
import { Watch, type WatchedArchive } from './watch.ts';

const START = Date.UTC(2026, 0, 5, 10);
const FILE_MS = 40_000;

/** A still scene of 40 s with a key frame each second, every other of which is looked at, in which a block is in the lower right quarter from the 20th to the 22nd. */
function clip(directory: string, codec: 'h264' | 'h265', size = '320x180'): Buffer {
  const video = encodeVideo(directory, {
    codec,
    encoderParameters: 'keyint=25:min-keyint=25:scenecut=0',
    size,
    frames: 1000,
    extra: [
      '-vf',
      "trim=0:0.04,loop=-1:1:0,setpts=N/25/TB,drawbox=x=iw*0.7:y=ih*0.7:w=iw*0.12:h=ih*0.2:t=fill:color=white:enable='between(t,19.9,22.1)'",
    ],
  });
  return recordedPart(video, { wallStartMs: START });
}

function stage(t: TestContext, changes: { ffmpegPath?: string; log?: Log } = {}) {
  const root = temporaryDirectory(t);
  const segments = new Map<string, SegmentName[]>();
  const state = { isBehind: false, open: new Set<string>(), on: true, keptFromMs: -Infinity };
  const add = (bytes: Buffer, startMs = START, cameraId = 'gate'): string => {
    const segment = { name: 'gate', cameraId, startMs };
    const path = join(root, formatPath(segment));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytes);
    const key = `${cameraId} ${dayStartMs(startMs)}`;
    segments.set(key, [...(segments.get(key) ?? []), segment]);
    return path;
  };
  const archive: WatchedArchive = {
    *days() {
      for (const list of segments.values()) {
        const [{ cameraId, startMs }] = list as [SegmentName];
        const sizeOf = (): undefined => undefined;
        yield { cameraId, startMs: dayStartMs(startMs), count: list.length, segments: () => list, sizeOf };
      }
    },
    openPaths: () => state.open,
    isBehind: () => state.isBehind,
    checkDisk: async () => {},
    keptFromMs: () => state.keptFromMs,
  };
  const store = new LookStore(root, nodeFileSystem);
  const start = (): Watch => {
    const watch = new Watch({
      store,
      archive,
      files: new ArchiveFiles(root),
      isOn: () => state.on,
      ffmpegPath: changes.ffmpegPath ?? 'ffmpeg',
      clock: systemClock,
      log: changes.log ?? silentLog,
    });
    watch.start();
    t.after(() => watch.close());
    return watch;
  };
  const found = async (cameraId = 'gate') =>
    (
      await searchRegion(store, {
        cameraId,
        region: undefined,
        fromMs: START,
        toMs: START + 86_400_000,
        leastConfidence: SURE,
        limit: 100,
      })
    ).map(({ fromMs, toMs }) => [Math.round((fromMs - START) / 1000), Math.round((toMs - START) / 1000)]);
  const bands = async () =>
    (await bandsOf(store, 'gate', { fromMs: START, toMs: START + FILE_MS }, 0)).map(({ kind }) => kind);
  return { root, state, store, add, start, found, bands };
}

for (const codec of ['h264', 'h265'] as const) {
  test(`what appears in the picture is found in its place: ${codec}`, async (t) => {
    const { root, store, add, start, found } = stage(t);
    add(clip(root, codec));
    const watch = start();
    await until('the files are looked at', () => watch.files === 1);
    assert.deepEqual(await found(), [[20, 22]]);
    const at = { cameraId: 'gate', fromMs: START, toMs: START + FILE_MS, leastConfidence: SURE, limit: 10 };
    const inside = await searchRegion(store, { ...at, region: { left: 0.7, top: 0.7, right: 0.8, bottom: 0.8 } });
    const outside = await searchRegion(store, { ...at, region: { left: 0, top: 0, right: 0.6, bottom: 0.6 } });
    assert.deepEqual([inside.length, outside.length], [1, 0]);
  });
}

test('files of all cameras, sizes and codecs are looked at, a preview instead of its camera, and each one once', async (t) => {
  const { root, add, start, found } = stage(t);
  const [h264, h265, large] = [clip(root, 'h264'), clip(root, 'h265'), clip(root, 'h264', '1280x800')];
  for (let i = 0; i < 3; i++) add(h264, START + i * FILE_MS);
  add(h265, START + 3 * FILE_MS);
  add(large, START + 4 * FILE_MS);
  add(Buffer.from('no recording of ours'.repeat(9)), START + 5 * FILE_MS);
  add(h264, START, 'door');
  add(h265, START, 'door~preview');
  const watch = start();
  await until('the files are looked at', () => watch.files === 7);
  assert.equal((await found()).length, 5);
  assert.deepEqual(await found('door'), [[20, 22]]);
  await watch.close();
  const again = start();
  add(h264, START + 6 * FILE_MS);
  await until('the files are looked at', () => again.files === 1);
  assert.equal((await found()).length, 6);
});

test('looks that were deleted are made again as they were', async (t) => {
  const { root, add, start } = stage(t);
  add(clip(root, 'h264'));
  const first = start();
  await until('the files are looked at', () => first.files === 1);
  await first.close();
  const file = join(root, '.kube-nvr/activity/gate/2026-01-05.looks');
  const before = readFileSync(file);
  rmSync(file);
  const { add: addAgain, root: other, start: startAgain } = stage(t);
  addAgain(clip(root, 'h264'));
  const second = startAgain();
  await until('the files are looked at', () => second.files === 1);
  assert.ok(readFileSync(join(other, '.kube-nvr/activity/gate/2026-01-05.looks')).equals(before));
});

test('nothing is read for the decoder while footage waits for the disk', async (t) => {
  const { root, state, add, start, found } = stage(t);
  add(clip(root, 'h264'));
  state.isBehind = true;
  let asked = 0;
  Object.defineProperty(state, 'isBehind', { get: () => ++asked < 5, configurable: true });
  const watch = start();
  await until('the files are looked at', () => watch.files === 1);
  assert.ok(asked >= 5);
  assert.deepEqual(await found(), [[20, 22]]);
});

test('a file that is being written waits until it is closed, and one of a camera without activity stays untouched', async (t) => {
  const { root, state, store, add, start } = stage(t);
  const path = add(clip(root, 'h264'));
  const other = add(clip(root, 'h264'), START + FILE_MS);
  state.open = new Set([path.slice(root.length + 1)]);
  const watch = start();
  await until('the files are looked at', () => watch.files === 1);
  assert.deepEqual([...(await store.written('gate', dayStartMs(START))).done.keys()], [START + FILE_MS]);
  assert.ok(existsSync(other));
  await watch.close();
  state.on = false;
  const off = start();
  await off.close();
  assert.equal(off.files, 0);
});

test('without ffmpeg nothing is claimed: no band says quiet, and the log says why, once', async (t) => {
  const lines: string[] = [];
  const log: Log = { ...silentLog, warn: (fields, message) => void lines.push(JSON.stringify([fields, message])) };
  const { root, add, start, found, bands } = stage(t, { ffmpegPath: '/nowhere/ffmpeg', log });
  add(clip(root, 'h264'));
  const watch = start();
  await until('the files are looked at', () => lines.length > 0);
  assert.match(lines.join(), /ffmpeg is not installed/);
  await watch.close();
  assert.deepEqual([await found(), await bands(), watch.files], [[], [], 0]);
});

test('a decoder that fails makes the file one of which nothing can be told, and not one without changes', async (t) => {
  const directory = temporaryDirectory(t);
  const ffmpegPath = join(directory, 'ffmpeg');
  writeFileSync(ffmpegPath, '#!/bin/sh\ncat >/dev/null\nexit 1\n');
  chmodSync(ffmpegPath, 0o755);
  const { root, add, start, found, bands } = stage(t, { ffmpegPath });
  add(clip(root, 'h264'));
  add(clip(root, 'h264'), START + FILE_MS);
  const watch = start();
  await until('the files are looked at', () => watch.files === 2);
  assert.deepEqual([await found(), await bands()], [[], ['unclear']]);
});
