import assert from 'node:assert/strict';
import { mkdirSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { MemoryBudget } from '../../../base/memory-budget.ts';
import { VirtualClock } from '../../../base/clock.ts';
import { Archive } from '../archive.ts';
import {
  gate,
  readSegments,
  segmentPaths,
  systemError,
  TestCamera,
  TestFileSystem,
  temporaryDirectory,
} from '../test-support.ts';
import { silentLog } from '../../../base/log.ts';
import type { CameraArchive } from './camera-archive.ts';

const STEP_TICKS = 3_600;
const FIRST_DTS = 900_000;

class Node {
  readonly root: string;
  readonly second: string;
  readonly clock: VirtualClock;
  readonly fs: TestFileSystem;
  readonly archive: Archive;
  readonly memory = new MemoryBudget(Infinity);
  readonly cameras: { readonly recording: CameraArchive; readonly camera: TestCamera }[] = [];
  /** What syncs have covered, by path from the directory of both disks. */
  readonly synced = new Map<string, number>();

  readonly outer: string;

  constructor(outer: string, clock = new VirtualClock()) {
    this.outer = outer;
    this.root = join(outer, 'a');
    this.second = join(outer, 'b');
    mkdirSync(this.second, { recursive: true });
    this.clock = clock;
    this.fs = new TestFileSystem(outer);
    this.fs.spaceOf = async () => ({ freeBytes: 1e12, totalBytes: 2e12 });
    this.works();
    this.archive = new Archive({
      root: this.root,
      workDir: join(outer, 'work'),
      disks: () => [{ path: this.second, weight: 1 }],
      clock,
      log: silentLog,
      fs: this.fs,
      syncIntervalMs: 3_000,
      unsynced: (shed) => this.memory.open('unsynced', { maxBytes: Infinity, shed }),
    });
  }

  /** Notes which bytes a power cut would leave. */
  note(name: string, path: string): void {
    if (name !== 'syncData' && name !== 'sync') return;
    const found = statSync(join(this.outer, path), { throwIfNoEntry: false });
    if (found) this.synced.set(path, found.size);
  }

  works(): void {
    this.fs.before = ({ name, path }) => this.note(name, path);
  }

  add(id: string, segmentDurationMs: number): void {
    const recording = this.archive.sinkFor(
      { cameraId: id, name: id, format: 'fmp4', segmentDurationMs },
      { needKeyFrame() {} },
    );
    this.cameras.push({ recording, camera: new TestCamera(this.clock, recording, () => {}) });
  }

  async play(frames: number): Promise<void> {
    for (let i = 0; i < frames; i++) {
      for (const { camera } of this.cameras) camera.video();
      this.clock.advance(40);
      if (i % 5 !== 4) continue;
      for (const { recording } of this.cameras) recording.tick();
      this.archive.tick();
      await this.fs.idle();
    }
  }

  get dropped(): number {
    return this.cameras
      .flatMap(({ recording }) => [...recording.status().framesDropped.values()])
      .reduce((a, b) => a + b, 0);
  }

  diskOf(id: string): 'a' | 'b' {
    return segmentPaths(this.root).some((path) => path.includes(`_${id}_`)) ? 'a' : 'b';
  }
}

type Kill = 'write' | 'sync' | 'read-only' | 'gone' | 'hangs';
const KILLS: readonly Kill[] = ['write', 'sync', 'read-only', 'gone', 'hangs'];

/** Kills a disk while cameras are recorded, ends the recorder, and repairs what a power cut left of the disk. */
async function kill(t: TestContext, how: Kill, { ids, before, gop }: { ids: string[]; before: number; gop: number }) {
  const node = new Node(temporaryDirectory(t));
  await node.archive.recover();
  for (const id of ids) node.add(id, 3_000);
  for (const { camera } of node.cameras) {
    camera.keyFrameInterval = gop;
    camera.begin();
  }
  await node.play(before);
  const dead = node.diskOf(ids[0] ?? '');
  const stall = gate();
  const changes = new Set([
    'write',
    'create',
    'makeDirectory',
    'remove',
    'rename',
    'truncate',
    'sync',
    'syncData',
    'syncDirectory',
  ]);
  node.fs.before = ({ name, path }) => {
    if (!path.startsWith(`${dead}/`) && path !== dead) return node.note(name, path);
    if (how === 'hangs') return stall.passed;
    if (how === 'write' && ['write', 'create'].includes(name)) throw systemError('EIO');
    if (how === 'sync' && ['sync', 'syncData', 'syncDirectory'].includes(name)) throw systemError('EIO');
    if (how === 'read-only' && changes.has(name)) throw systemError('EROFS');
    if (how === 'gone') throw systemError('EIO');
    return node.note(name, path);
  };
  await node.play(how === 'hangs' ? 450 : 150);
  for (const { camera } of node.cameras) camera.end();
  const closing = node.archive.close();
  await node.fs.idle();
  const { dropped } = node;
  // The machine is switched off: what no sync has covered is gone.
  const kept = new Map([...node.synced].filter(([path]) => path.startsWith(`${dead}/`)));
  const deadRoot = join(node.outer, dead);
  if (how === 'hangs') {
    node.fs.killAfter(0);
    stall.open();
  }
  await closing;
  for (const path of segmentPaths(deadRoot)) {
    const size = kept.get(`${dead}/${path}`);
    const file = join(deadRoot, path);
    if (size !== undefined && statSync(file).size > size) truncateSync(file, size);
  }
  const next = new Node(node.outer, node.clock);
  await next.archive.recover();
  await next.archive.close();
  const segments = [...(await readSegments(node.root)), ...(await readSegments(node.second))];
  const lost = new Map<string, number>();
  let twice = 0;
  for (const [i, id] of ids.entries()) {
    const times = segments.filter(({ path }) => path.includes(`_${id}_`)).flatMap(({ video }) => video.dts);
    const found = new Set(times);
    twice += times.length - found.size;
    const sent = ((node.cameras[i]?.camera.videoDts ?? 0) - FIRST_DTS) / STEP_TICKS;
    for (let n = 0; n < sent; n++) {
      if (!found.has(FIRST_DTS + n * STEP_TICKS)) lost.set(id, (lost.get(id) ?? 0) + 1);
    }
  }
  return { lost, dropped, twice, memory: node.memory.usedBytes };
}

test('fifty kills of a disk, by errors of writes and syncs, read-only, gone and hanging, cost no picture', async (t) => {
  for (let i = 0; i < 50; i++) {
    const how = KILLS[i % KILLS.length] as Kill;
    const [before, gop] = [30 + ((i * 37) % 120), [12, 25, 40, 75][i % 4] ?? 25];
    const { lost, dropped, memory } = await kill(t, how, { ids: ['c1', 'c2'], before, gop });
    assert.deepEqual([...lost], [], `${how} after ${before} pictures, a key frame each ${gop}`);
    assert.equal(dropped, 0);
    if (how !== 'hangs') assert.equal(memory, 0, 'all memory is given back');
  }
});

test('twenty cameras on two disks: the ten of the disk that dies go to the other, and no picture is lost', async (t) => {
  const ids = Array.from({ length: 20 }, (_, i) => `c${i + 10}`);
  const { lost, dropped } = await kill(t, 'gone', { ids, before: 140, gop: 50 });
  assert.deepEqual([...lost], []);
  assert.equal(dropped, 0);
});
