// The catalogue of an archive: memory a row, and a start with half a million files. The parts `listing` and
// `listing-postgres` measure its queries.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { VirtualClock } from '../../../base/clock.ts';
import { Catalogue } from '../../../recorder/archive/catalogue/catalogue.ts';
import { closedSegment } from '../../../recorder/archive/catalogue/segment.ts';
import { nodeFileSystem, type FileFacts } from '../../../recorder/archive/disk/file-system.ts';
import { dayPath, formatBaseName, type SegmentName } from '../../../recorder/archive/disk/names.ts';
import { SegmentStore } from '../../../recorder/archive/disk/segment-store.ts';
import { writeSegments } from '../archive.ts';
import { emptyDirectory, type Bench } from '../bench.ts';
import { start } from '../processes.ts';
import { cameraId, startRecorder, type RecorderOptions } from '../recorder.ts';
import { median } from '../report.ts';

const FILES = 500_000;
const CAMERAS = 50;
const SEGMENT_MS = 300_000;
const DAY_MS = 86_400_000;
const SEGMENTS_A_DAY = DAY_MS / SEGMENT_MS;
const FIRST_DAY_MS = Date.UTC(2026, 0, 1);
const MUST_BE_READY_MS = 2_000;
/** Where the machine needs long for the names alone, a start may take so many times as long. */
const MAX_WALKS = 4;
const ROUNDS = 5;
const BARE_WALK = join(import.meta.dirname, '..', 'bare-walk.ts');

export async function measureCatalogue(bench: Bench): Promise<void> {
  await measureMemory(bench);
  await measureStart(bench);
}

/** Starts in turns with a bare walk of the same directories, each in a process of its own. */
async function measureStart(bench: Bench): Promise<void> {
  const files = bench.quick ? FILES / 10 : FILES;
  const directory = emptyDirectory(bench, 'catalogue');
  const recordings = join(directory, 'recordings');
  const days: Record<string, Record<string, [count: number, bytes: number]>> = {};
  // A start uses the file names only, so the files are empty.
  writeSegments(recordings, CAMERAS, files, Date.now(), 0, ({ cameraId, startMs }) => {
    const totals = (days[dayPath(startMs)] ??= {});
    totals[cameraId] = [(totals[cameraId]?.[0] ?? 0) + 1, 0];
  });
  const state = join(recordings, '.kube-nvr');
  mkdirSync(state, { recursive: true });
  const saved = join(state, 'usage.json');
  const keep = (): void => writeFileSync(saved, JSON.stringify({ version: 1, days }));
  const compiled = join(directory, 'compiled');
  const readyMs = async (options: Partial<RecorderOptions>): Promise<number> => {
    const fromMs = performance.now();
    const settings = { archive: { retention: { maxAge: '10000d', maxSize: '1TiB', minFree: '1%' } } };
    const recorder = await startRecorder({ urls: [], directory, settings, ...options });
    const ms = performance.now() - fromMs;
    await recorder.stop();
    return ms;
  };
  keep();
  // The first start fills the compile cache.
  await readyMs({ compiled });
  const starts: number[] = [];
  const walks: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    walks.push(await walkMs(bench, recordings));
    starts.push(await readyMs({ compiled }));
  }
  rmSync(saved);
  const unknown = await readyMs({ compiled });
  keep();
  const fromSources = await readyMs({});
  const walk = median(walks);
  const ratio = (ms: number): string => `${(ms / walk).toFixed(1)} times a bare walk of ${walk.toFixed(0)} ms`;
  const must = Math.max(MUST_BE_READY_MS, MAX_WALKS * walk);
  const figure = (figure: string, ms: number, note: string): void =>
    bench.figure({ figure, unit: 'ms', measured: Math.round(ms), must, note });
  const ready = median(starts);
  figure(`start to ready with ${files} files and retention`, ready, `median of ${ROUNDS} in turns, ${ratio(ready)}`);
  figure('  the same, sizes not known from before', unknown, ratio(unknown));
  bench.figure({ figure: '  the same from the sources', unit: 'ms', measured: Math.round(fromSources) });
}

/** What a process takes that only reads the names. */
async function walkMs(bench: Bench, directory: string): Promise<number> {
  const fromMs = performance.now();
  const walk = start(process.execPath, [BARE_WALK, directory], join(bench.directory, 'walk.log'));
  await walk.line(/^walked /);
  const ms = performance.now() - fromMs;
  await walk.exited;
  return ms;
}

/** The names come from a file system that makes them up: nothing but the catalogue stays in memory. */
async function measureMemory(bench: Bench): Promise<void> {
  const days = Math.ceil((bench.quick ? FILES / 10 : FILES) / CAMERAS / SEGMENTS_A_DAY);
  const rows = days * CAMERAS * SEGMENTS_A_DAY;
  const clock = new VirtualClock(FIRST_DAY_MS + days * DAY_MS);
  const usedBefore = heapUsed();
  const catalogue = new Catalogue(new SegmentStore('', namesOnly(days)), clock);
  const startMs = performance.now();
  await catalogue.refresh();
  const loadMs = performance.now() - startMs;
  const named = heapUsed();
  for (let day = 0; day < days; day++) {
    for (const segment of segmentsOfDay(FIRST_DAY_MS + day * DAY_MS)) {
      const endMs = segment.startMs + SEGMENT_MS;
      const details = { sizeBytes: 40_000_000 + day, mtimeMs: endMs + 0.25, sequence: day * SEGMENTS_A_DAY, endMs };
      catalogue.closed(closedSegment(segment, details));
    }
  }
  const known = heapUsed();
  bench.figure({
    figure: `memory a segment of ${rows}, name and start`,
    unit: 'bytes',
    measured: (named - usedBefore) / rows,
    must: 40,
    note: `all names read in ${loadMs.toFixed(0)} ms`,
  });
  bench.figure({
    figure: `memory a segment of ${rows}, everything known`,
    unit: 'bytes',
    measured: (known - usedBefore) / rows,
    must: 64,
  });
  if (catalogue.cameras().length !== CAMERAS) throw new Error('the catalogue lost cameras');
}

const collectGarbage = (() => {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
})();

function heapUsed(): number {
  for (let i = 0; i < 3; i++) collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function* segmentsOfDay(dayMs: number): Generator<SegmentName> {
  for (let i = 0; i < SEGMENTS_A_DAY; i++) {
    for (let camera = 0; camera < CAMERAS; camera++) {
      yield { name: `Bench-${camera}`, cameraId: cameraId(camera), startMs: dayMs + i * SEGMENT_MS + camera };
    }
  }
}

/** Directories of `days` days, with the names that as many five-minute segments have. */
function namesOnly(days: number): typeof nodeFileSystem {
  const paths = Array.from({ length: days }, (_, day) => `/${dayPath(FIRST_DAY_MS + day * DAY_MS)}`);
  const below = (path: string): string[] => {
    const inside = paths.filter((day) => day.startsWith(`${path}/`));
    return [...new Set(inside.map((day) => day.slice(path.length + 1).split('/')[0] as string))];
  };
  const facts: FileFacts = {
    sizeBytes: 0,
    mtimeMs: FIRST_DAY_MS + 0.5,
    links: 1,
    isDirectory: true,
    isFile: false,
    device: 0,
    inode: 0,
  };
  return {
    ...nodeFileSystem,
    facts: async () => facts,
    async list(path) {
      const day = paths.indexOf(path);
      if (day === -1) return below(path);
      return Array.from(segmentsOfDay(FIRST_DAY_MS + day * DAY_MS), formatBaseName);
    },
  };
}
