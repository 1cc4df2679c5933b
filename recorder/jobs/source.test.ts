// Exports of footage that other nodes hold: what a holder that stops sending does to a result.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { decodePictures } from '../../test/camera/frame-numbers.ts';
import { numberedVideo, recordedPart, WALL_START_MS } from '../../test/support/joined-file.ts';
import { workspace } from '../../test/support/workspace.ts';
import { Archive } from '../archive/archive.ts';
import { ArchiveError } from '../archive/disk/faults.ts';
import { formatPath } from '../archive/disk/names.ts';
import { indexAt, type Footage } from '../footage/footage.ts';
import { FileGone, HolderLost } from '../footage/remote-file.ts';
import { readParts } from '../mp4/parts.ts';
import { exportWindow } from './export.ts';
import type { ExportRequest, PlannerDeps } from './export-plan.ts';
import type { ClusterFootage } from './source.ts';
import type { WriteOptions } from './write-movie.ts';

const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);
const REQUEST: ExportRequest = {
  cameraId: 'gate',
  fromMs: WALL_START_MS,
  toMs: WALL_START_MS + 8_000,
  isOfAllNodes: true,
};

/** Four seconds of footage on this node, and four seconds after it at `b`. */
async function stage(t: TestContext) {
  const directory = workspace(t);
  const root = join(directory, 'recordings');
  const clock = new VirtualClock(WALL_START_MS + 3_600_000);
  const files = new Map<string, Buffer>();
  const footage: Footage[] = [];
  for (const [nodeId, startMs, firstNumber, run] of [
    ['a', 0, 0, 'a'],
    ['b', 4_000, 100, 'b'],
  ] as const) {
    const bytes = recordedPart(numberedVideo(directory, { firstNumber }), {
      run,
      wallStartMs: WALL_START_MS + startMs,
    });
    const path = formatPath({ name: 'Gate', cameraId: 'gate', startMs: WALL_START_MS + startMs });
    const parts = await readParts(async (offset, length) => bytes.subarray(offset, offset + length), bytes.length);
    assert.ok(parts);
    footage.push({ path, isOpen: false, sizeBytes: bytes.length, parts, nodeId });
    if (nodeId === 'b') files.set(path, bytes);
    else {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), bytes);
    }
  }
  const archive = new Archive({ root, clock, log: silentLog, syncIntervalMs: 5_000 });
  await archive.recover();
  t.after(() => archive.close());
  let collections = 0;
  let reads = 0;
  const asked: number[] = [];
  /** What is wrong at `b`, by the number of the request for bytes. */
  const trouble: { of: (read: number) => Error | undefined; isAway: boolean } = { of: () => undefined, isAway: false };
  const cluster: ClusterFootage = {
    clock,
    by: { name: 'guard', credential: undefined },
    collector: {
      own: { nodeId: 'a' },
      collect: async () => {
        collections++;
        return { footage: trouble.isAway ? footage.slice(0, 1) : footage, elsewhere: [] };
      },
      holderOf: async () => ({
        sizeOf: async ({ sizeBytes }) => sizeBytes,
        stream: async ({ path }, { from, to }) => {
          const err = trouble.of(reads++);
          asked.push(from);
          if (err) {
            // Time passes as soon as somebody waits.
            void setImmediate().then(() => clock.advance(60_000));
            throw err;
          }
          return Readable.from([(files.get(path) as Buffer).subarray(from, to)]);
        },
      }),
    },
  };
  const result = join(directory, 'jobs', 'one.mp4');
  const deps: PlannerDeps & WriteOptions = {
    recordPath: root,
    archive,
    wallMs: () => clock.wallMs(),
    version: '1.2.3',
    spareBytes: async () => Infinity,
    cluster,
    knownTime: async (_id, fromMs, toMs) => ({
      gaps: trouble.isAway ? [{ fromMs, toMs, cause: 'on-node-away' }] : [],
      untilMs: toMs,
    }),
  };
  const make = async (changes: Partial<PlannerDeps> = {}) => {
    const { outcome } = await exportWindow(REQUEST, result, { ...deps, ...changes }, new AbortController().signal);
    return { outcome, numbers: (await decodePictures(result)).numbers };
  };
  return { make, trouble, deps, asked, files, counts: () => ({ collections, reads }) };
}

test('an export of all nodes has the pictures of both nodes', async (t) => {
  const { make, counts } = await stage(t);
  const made = await make();
  assert.deepEqual(made.numbers, numbers(0, 200));
  assert.deepEqual([made.outcome.gaps, counts().collections], [[], 1]);
});

test('a holder of an older version is asked for the index of a completed file, and then for the samples', async (t) => {
  const { make, asked, deps } = await stage(t);
  await make();
  const { footage } = await (deps.cluster as ClusterFootage).collector.collect('gate', REQUEST, {
    name: '',
    credential: undefined,
  });
  const starts = footage[1]?.parts.starts;
  assert.deepEqual([asked.length, asked[0]], [2, starts?.at(-1)]);
});

test('a holder that sent the index with the list is asked for the samples alone', async (t) => {
  const { make, asked, deps, files } = await stage(t);
  const cluster = deps.cluster as ClusterFootage;
  const { footage } = await cluster.collector.collect('gate', REQUEST, cluster.by);
  const at = indexAt(footage[1] as Footage) as number;
  await make();
  asked.length = 0;
  const collect: ClusterFootage['collector']['collect'] = async () => ({
    footage: footage.map((file, i) => (i === 1 ? { ...file, index: files.get(file.path)?.subarray(at) } : file)),
    elsewhere: [],
  });
  assert.deepEqual(
    (await make({ cluster: { ...cluster, collector: { ...cluster.collector, collect } } })).numbers,
    numbers(0, 200),
  );
  assert.equal(asked.length, 1);
  assert.ok((asked[0] as number) < at);
});

for (const { name, nowMs, order } of [
  { name: 'of a past window are asked for together', nowMs: 3_600_000, order: ['files', 'gaps'] },
  { name: 'of a window that goes on are asked for in turn, gaps first', nowMs: 8_000, order: ['gaps', 'files'] },
]) {
  test(`files and gaps ${name}`, async (t) => {
    const { make, deps } = await stage(t);
    const cluster = deps.cluster as ClusterFootage;
    const told: string[] = [];
    const made = await make({
      wallMs: () => WALL_START_MS + nowMs,
      knownTime: async (_id, _fromMs, toMs) => {
        await setImmediate();
        told.push('gaps');
        return { gaps: [], untilMs: toMs };
      },
      cluster: {
        ...cluster,
        collector: {
          ...cluster.collector,
          collect: (...of) => {
            told.push('files');
            return cluster.collector.collect(...of);
          },
        },
      },
    });
    assert.deepEqual([told, made.numbers], [order, numbers(0, 200)]);
  });
}

test('a holder that stops sending for a moment is asked again, and nothing is planned again', async (t) => {
  const { make, trouble, counts } = await stage(t);
  await make();
  const last = counts().reads - 1;
  trouble.of = (read) => (read === 2 * last + 1 ? new HolderLost('b does not send') : undefined);
  assert.deepEqual((await make()).numbers, numbers(0, 200));
  assert.equal(counts().collections, 2, 'once for each export');
});

test('a holder that stays away in the middle of an export is a named gap in the result', async (t) => {
  const { make, trouble, counts } = await stage(t);
  await make();
  const { reads } = counts();
  trouble.of = (read) => {
    if (read < 2 * reads - 1) return undefined;
    trouble.isAway = true;
    return new HolderLost('b does not send');
  };
  const made = await make();
  assert.deepEqual(made.numbers, numbers(0, 100));
  assert.deepEqual(made.outcome.gaps, [
    { fromMs: WALL_START_MS + 4_000, toMs: WALL_START_MS + 8_000, cause: 'on-node-away' },
  ]);
});

test('a file that a holder removes in the middle of an export is planned without, at once', async (t) => {
  const { make, trouble, counts } = await stage(t);
  await make();
  const { reads } = counts();
  trouble.of = (read) => {
    if (read !== 2 * reads - 1) return undefined;
    trouble.isAway = true;
    return new FileGone('b no longer has the file');
  };
  assert.deepEqual((await make()).numbers, numbers(0, 100));
});

for (const [what, fault, message] of [
  [
    'is not read',
    Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' }),
    'the archive cannot be read (EIO)',
  ],
  ['is not listed', new ArchiveError('2026/11/28 cannot be listed (EACCES)'), '2026/11/28 cannot be listed (EACCES)'],
] as const)
  test(`an archive that ${what} is said to be the reason, not the disk of the result`, async (t) => {
    const { make, deps } = await stage(t);
    const { collector, ...around } = deps.cluster as ClusterFootage;
    const refuse = () => Promise.reject(fault);
    for (const changes of [
      { cluster: { ...around, collector: { ...collector, collect: refuse } } },
      { knownTime: refuse },
      { cluster: undefined, archive: { list: refuse, holdWindow: () => () => {} } },
    ])
      await assert.rejects(make(changes), { code: 'archive-unreadable', message });
    assert.throws(() => readFileSync(join(deps.recordPath, '../jobs/one.mp4')), { code: 'ENOENT' });
  });
