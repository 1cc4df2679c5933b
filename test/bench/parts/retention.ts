// The cost of retention: a removed segment compared with a bare unlink; and a start with half a million files.

import { closeSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { VirtualClock } from '../../../base/clock.ts';
import { silentLog } from '../../../base/log.ts';
import { Archive } from '../../../recorder/archive/archive.ts';
import { dayPath, formatPath, type SegmentName } from '../../../recorder/archive/disk/names.ts';
import { emptyDirectory, type Bench } from '../bench.ts';
import { cameraId, startRecorder } from '../recorder.ts';

const SEGMENT_MS = 300_000;
const SEGMENT_BYTES = 1024 * 1024;
const FILES = 500_000;
const CAMERAS = 50;
const MUST_BE_READY_MS = 2_000;

export async function measureRetention(bench: Bench): Promise<void> {
  await measureRemoval(bench);
  await measureStart(bench);
}

async function measureRemoval(bench: Bench): Promise<void> {
  const count = bench.quick ? 200 : 1_000;
  const clock = new VirtualClock(Date.UTC(2026, 5, 1));
  const root = emptyDirectory(bench, 'retention');
  const bare = writeSegments(join(root, 'bare'), 20, count, clock.wallMs(), SEGMENT_BYTES);
  const startMs = performance.now();
  for (const path of bare) await unlink(path);
  const bareMs = (performance.now() - startMs) / count;

  const recordings = join(root, 'recordings');
  writeSegments(recordings, 20, count, clock.wallMs(), SEGMENT_BYTES);
  const removed: SegmentName[] = [];
  let maxSizeBytes: number | undefined;
  const archive = new Archive({
    root: recordings,
    clock,
    log: silentLog,
    syncIntervalMs: 5_000,
    limits: () => ({ node: { maxSizeBytes }, cameras: new Map() }),
    observer: { closed() {}, removed: (segment) => void removed.push(segment) },
  });
  await archive.recover();
  // Sizes are read first; then everything exceeds the limit.
  for (let i = 0; i < 200; i++) await look(archive, clock);
  maxSizeBytes = 0;

  const cpu = process.cpuUsage();
  const fromMs = performance.now();
  while (removed.length < count) await look(archive, clock);
  const wallMs = (performance.now() - fromMs) / count;
  const { user, system } = process.cpuUsage(cpu);
  await archive.close();
  bench.figure({
    figure: 'retention: time for a segment of 1 MiB removed',
    unit: 'ms',
    measured: wallMs,
    note: `a bare unlink of the same: ${bareMs.toFixed(3)} ms; ${count} segments of 20 cameras`,
  });
  bench.figure({ figure: '  CPU time of it', unit: 'ms', measured: (user + system) / 1000 / count });
}

/** Advances an archive by a quarter of a second, as fast as possible. */
async function look(archive: Archive, clock: VirtualClock): Promise<void> {
  clock.advance(250);
  archive.tick();
  await archive.settled();
}

async function measureStart(bench: Bench): Promise<void> {
  const files = bench.quick ? FILES / 10 : FILES;
  const directory = emptyDirectory(bench, 'retention');
  const recordings = join(directory, 'recordings');
  const state = join(recordings, '.kube-nvr');
  const days: Record<string, Record<string, [count: number, bytes: number]>> = {};
  // A start uses the file names only, so the files are empty.
  writeSegments(recordings, CAMERAS, files, Date.now(), 0, ({ cameraId, startMs }) => {
    const totals = (days[dayPath(startMs)] ??= {});
    totals[cameraId] = [(totals[cameraId]?.[0] ?? 0) + 1, 0];
  });
  mkdirSync(state, { recursive: true });
  const compiled = join(directory, 'compiled');
  const starts = [
    { saved: true, compiled, figure: undefined },
    { saved: true, compiled, figure: `start to ready with ${files} files and retention` },
    { saved: false, compiled, figure: '  the same, sizes not known from before' },
    { saved: true, compiled: undefined, figure: '  the same from the sources: Node compiles them first' },
  ];
  for (const { saved, compiled, figure } of starts) {
    if (saved) writeFileSync(join(state, 'usage.json'), JSON.stringify({ version: 1, days }));
    else rmSync(join(state, 'usage.json'), { force: true });
    const fromMs = performance.now();
    const recorder = await startRecorder({
      urls: [],
      directory,
      compiled,
      settings: { archive: { retention: { maxAge: '10000d', maxSize: '1TiB', minFree: '1%' } } },
    });
    const readyMs = performance.now() - fromMs;
    await recorder.stop();
    // The first start fills the compile cache.
    if (figure !== undefined)
      bench.figure({ figure, unit: 'ms', measured: Math.round(readyMs), must: MUST_BE_READY_MS });
  }
}

/** Segments of five minutes up to `endMs`; returns their paths, oldest first. */
function writeSegments(
  root: string,
  cameras: number,
  files: number,
  endMs: number,
  bytes: number,
  made: (segment: SegmentName) => void = () => {},
): string[] {
  const block = Buffer.alloc(bytes, 1);
  const paths: string[] = [];
  const days = new Set<string>();
  const perCamera = Math.ceil(files / cameras);
  const last = Math.floor(endMs / SEGMENT_MS) * SEGMENT_MS;
  for (let i = 0; i < perCamera; i++) {
    const startMs = last - (perCamera - i) * SEGMENT_MS;
    for (let camera = 0; camera < cameras; camera++) {
      const segment = { name: `Bench-${camera}`, cameraId: cameraId(camera), startMs };
      const path = join(root, formatPath(segment));
      const day = dirname(path);
      if (!days.has(day)) mkdirSync(day, { recursive: true });
      days.add(day);
      const fd = openSync(path, 'w');
      if (bytes > 0) writeSync(fd, block);
      closeSync(fd);
      paths.push(path);
      made(segment);
    }
  }
  return paths;
}
