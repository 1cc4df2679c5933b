// The program of soak.test.ts: node test/soak/days.ts DIRECTORY, which is empty and takes half a gigabyte. Ends with an error
// when something does not hold.
//
// It is a process of its own because node:test keeps account of every promise until that is collected: a third of the time,
// and megabytes of the memory that is measured here.

import assert from 'node:assert/strict';
import { readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BLOCK_BYTES, type SlabPool } from '../../recorder/codec/slab.ts';
import { videoMedia } from '../camera/media.ts';
import { seeded } from '../support/random.ts';
import { Site } from './site.ts';
import { SiteCamera } from './site-camera.ts';

const [directory = ''] = process.argv.slice(2);

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const LONG = process.env['LONG'] !== undefined && process.env['LONG'] !== '';
const HOURS = Number(process.env['SOAK_HOURS'] ?? (LONG ? 72 : 1));
const COUNT = Number(process.env['SOAK_CAMERAS'] ?? 50);
/** A picture a second, a group in ten: what is kept of time does not depend on how many there are. */
const STEP_MS = 1_000;
const GROUP_LENGTH = 10;
/** Looks are this far apart; each is at a window that has nothing provisional any more. */
const LOOK_MS = HOURS > 4 ? HOUR_MS : 20 * MINUTE_MS;
const BEHIND_MS = 5 * MINUTE_MS;
/** Some three hours of footage of fifty cameras. */
const MAX_SIZE_BYTES = 150e6;
/** Files are short for one look in six: how many there are, and with them what is known of them, comes round in it. */
const CYCLE_LOOKS = 6;
const SHORT_LOOK = 3;
/** The recorder is restarted here, once: what it keeps too long adds up in all the hours behind it. */
const RESTART_HOUR = 12;
/** The first day fills the archive, and tables that grow in leaps. */
const SETTLED_HOURS = 24;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

interface Memory {
  /** Data: objects of the heap, and what they hold outside of it. */
  readonly bytes: number;
  /** Of that, what is outside of the heap. */
  readonly externalBytes: number;
  /** What V8 made of the program: byte code, machine code and their tables. */
  readonly codeBytes: number;
  /** Blocks of the pool that nobody holds. */
  readonly freeBytes: number;
  readonly residentBytes: number;
}

interface Usage extends Memory {
  readonly hours: number;
  readonly descriptors: number;
  readonly resources: string;
  readonly timers: number;
}

/**
 * What is reachable now: the least of some collections, as what V8 compiles in the background holds a few megabytes until it
 * is done. Two things are told apart from data.
 *
 * Code: V8 compiles each function again for other kinds of objects that it meets, for days of the clock, which are minutes
 * of its own. That ends, as the program does. One that makes code and keeps it keeps functions, which are data.
 *
 * Free blocks of the pool: as many as a rush needed, at most 128 (slab.ts). The pool lets go of them when 4096 others came
 * back, which takes seconds at the rate of real cameras, and a day here. Blocks that nobody gives back are data.
 */
async function leastMemory(pool: SlabPool): Promise<Memory> {
  let least: Memory = { bytes: Infinity, externalBytes: 0, codeBytes: 0, freeBytes: 0, residentBytes: 0 };
  for (let round = 0; round < 10; round++) {
    await sleep(20);
    collect();
    const { external, rss } = process.memoryUsage();
    const freeBytes = pool.freeBlocks * BLOCK_BYTES;
    const externalBytes = external - freeBytes;
    const sum = { code: 0, data: 0 };
    for (const { space_name: name, space_used_size: size } of getHeapSpaceStatistics())
      sum[/code|trusted/.test(name) ? 'code' : 'data'] += size;
    const bytes = sum.data + externalBytes;
    if (bytes < least.bytes) least = { bytes, externalBytes, codeBytes: sum.code, freeBytes, residentBytes: rss };
  }
  return least;
}

/** Without the queue of rows, which has a file only while it holds some. */
function openDescriptors(): number {
  const isRows = (descriptor: string): boolean => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`).endsWith('.rows');
    } catch {
      // That of the listing itself.
      return true;
    }
  };
  return readdirSync('/proc/self/fd').filter((descriptor) => !isRows(descriptor)).length;
}

/** The slope of a line through points, by least squares. */
function slopeOf(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (of: (point: readonly [number, number]) => number): number =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [x, y] = [mean(([x]) => x), mean(([, y]) => y)];
  return mean((point) => (point[0] - x) * (point[1] - y)) / mean((point) => (point[0] - x) ** 2);
}

/** Shown where the test is asked for by itself, and when it fails. */
const say = (text: string): void => console.log(text);

/** Equal resources as `2 TCPSocketWrap`, by name. */
function counted(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts]
    .map(([name, count]) => `${count} ${name}`)
    .sort()
    .join(', ');
}

const random = seeded();
const between = (least: number, most: number): number => least + random() * (most - least);
const chance = (perHour: number): boolean => random() < (perHour * STEP_MS) / HOUR_MS;
const [day, night] = [await videoMedia('h264'), await videoMedia('h264-small')];
const cameras = Array.from(
  { length: COUNT },
  (_, i) => new SiteCamera(`cam-${i}`, day, { intervalMs: STEP_MS, groupLength: GROUP_LENGTH, random }),
);
for (const camera of cameras) await camera.start();
const site = new Site({
  directory,
  cameras,
  stepMs: STEP_MS,
  maxSizeBytes: MAX_SIZE_BYTES,
  startMs: Date.UTC(2026, 9, 24, 6),
});
const { clock } = site;
await site.open();

// Faults end at a time; each camera has one at a time.
const mending = new Map<SiteCamera, { atMs: number; mend: () => void | Promise<void> }>();
const viewers = new Set<() => void>();
const work = new Set<Promise<unknown>>();
const failures: unknown[] = [];
const start = (promise: Promise<unknown>): void => {
  const failed = (err: unknown): void => {
    failures.push(err);
    say(String(err));
  };
  const done = promise.catch(failed).finally(() => work.delete(done));
  work.add(done);
};
const counts: Record<string, number> = {};
const count = (what: string): void => void (counts[what] = (counts[what] ?? 0) + 1);
let calm = false;
let disturbedUntilMs = 0;
/** Times that came twice, as the clock was set back: their footage is twice as long. */
const repeated: (readonly [fromMs: number, toMs: number])[] = [];
const repeatedWithin = (fromMs: number, toMs: number): number =>
  repeated.reduce((sum, [from, to]) => sum + Math.max(0, Math.min(to, toMs) - Math.max(from, fromMs)), 0);
let diskMendsAtMs = Infinity;
let databaseBackAtMs = Infinity;
let isNight = false;

const faults: readonly ((camera: SiteCamera) => readonly [forMs: number, mend: () => void | Promise<void>])[] = [
  (camera) => (count('reboots'), start(camera.stop()), [between(20, 120) * SECOND_MS, () => camera.start()]),
  (camera) => (count('cuts'), camera.cut(), [0, () => {}]),
  (camera) => (
    count('losses'),
    (camera.loss = between(0.01, 0.1)),
    [between(1, 5) * MINUTE_MS, () => void (camera.loss = 0)]
  ),
  (camera) => (
    count('hangs'),
    (camera.silent = true),
    [between(5, 60) * SECOND_MS, () => void (camera.silent = false)]
  ),
  (camera) => (count('jumps of a clock'), camera.jump(between(-HOUR_MS, HOUR_MS)), [0, () => {}]),
  (camera) => {
    count('mute');
    camera.cut();
    camera.mute = true;
    return [
      between(5, 40) * SECOND_MS,
      () => {
        camera.mute = false;
        camera.cut();
      },
    ];
  },
];

function each(): void {
  const nowMs = clock.monotonicMs();
  for (const [camera, { atMs, mend }] of mending) {
    if (nowMs < atMs) continue;
    mending.delete(camera);
    const mended = mend();
    if (mended) start(mended);
  }
  if (nowMs >= diskMendsAtMs) {
    site.disk.fault = undefined;
    diskMendsAtMs = Infinity;
  }
  if (nowMs >= databaseBackAtMs) {
    site.recorder.table.isAway = false;
    databaseBackAtMs = Infinity;
  }
  if (calm) return;
  for (const camera of cameras) {
    if (!chance(0.5) || mending.has(camera)) continue;
    const [forMs, mend] = (faults[Math.floor(random() * faults.length)] as (typeof faults)[number])(camera);
    mending.set(camera, { atMs: nowMs + forMs, mend });
  }
  const camera = cameras[Math.floor(random() * COUNT)] as SiteCamera;
  if (chance(60)) {
    const hub = site.recorder.viewersOf(camera.id);
    count('viewers');
    // One in four never reads.
    const isStuck = random() < 0.25;
    let bufferedBytes = 0;
    const socket = {
      send: (message: Buffer) => void (bufferedBytes += isStuck ? message.length : 0),
      get bufferedBytes() {
        return bufferedBytes;
      },
      isCopying: false,
      close: () => {},
      terminate: () => {},
    };
    const viewer = hub?.add(socket);
    if (hub && viewer) {
      const leave = (): void => {
        viewers.delete(leave);
        hub.remove(viewer);
      };
      viewers.add(leave);
    }
  }
  if (viewers.size > 20) for (const leave of [...viewers].slice(0, 10)) leave();
  const wallS = clock.wallMs() / 1000;
  if (chance(20)) {
    count('playlists and windows');
    start(
      (async () => {
        const from = wallS - between(300, 3_600);
        for (const url of [
          `/hls/${camera.id}/index.m3u8?from=${from}&to=${from + 300}`,
          `/window/${camera.id}.mp4?from=${from}&to=${from + 20}`,
        ]) {
          const { statusCode, body } = await site.recorder.playback.inject(url);
          assert.ok([200, 404].includes(statusCode), `${url}: ${statusCode} ${body.slice(0, 200)}`);
        }
      })(),
    );
  }
  if (chance(0.15)) {
    count('failures of the disk');
    site.disk.fault = random() < 0.5 ? 'EIO' : 'ENOSPC';
    diskMendsAtMs = nowMs + between(1, 30) * SECOND_MS;
  }
  if (chance(0.3) && databaseBackAtMs === Infinity) {
    count('outages of the database');
    site.recorder.table.isAway = true;
    databaseBackAtMs = nowMs + between(1, 30) * MINUTE_MS;
  }
  if (chance(0.15)) {
    count('steps of the clock');
    const stepMs = (random() < 0.5 ? -1 : 1) * (random() < 0.5 ? between(600, 5_000) : between(MINUTE_MS, HOUR_MS));
    if (stepMs < 0) repeated.push([wallS * 1000 + stepMs, wallS * 1000]);
    clock.stepWall(stepMs);
    disturbedUntilMs = nowMs + Math.abs(stepMs) + 2 * LOOK_MS + BEHIND_MS;
  }
  // Day and night, an hour and a half each, at another minute for each camera.
  const isDark = Math.floor(nowMs / (90 * MINUTE_MS)) % 2 === 1;
  if (isDark !== isNight) {
    isNight = isDark;
    count('dusks and dawns');
    for (const camera of cameras) camera.show(isNight ? night : day);
  }
}

const missing: Record<string, number> = {};
let wantedMs = 0;
let recordedMs = 0;

/** Footage and gaps are the whole of a window that is over; one in which the clock was set is only covered by them. */
async function account(fromMs: number, toMs: number): Promise<void> {
  for (const { id } of cameras) {
    const report = await site.report(id, fromMs, toMs);
    const gapsMs = report.gaps.reduce((sum, gap) => sum + (gap.toMs ?? toMs) - gap.fromMs, 0);
    if (clock.monotonicMs() < disturbedUntilMs) continue;
    assert.ok(report.knownUntilMs >= toMs, `${id}: ${toMs - report.knownUntilMs} ms are not understood yet`);
    assert.equal(report.wantedMs, toMs - fromMs, id);
    const unsaid = report.wantedMs - report.recordedMs - gapsMs;
    // Less than a tenth of a second between two recordings is no gap.
    assert.ok(unsaid >= -1 && unsaid <= 100 * (report.gaps.length + 60), `${id}: ${unsaid} ms are neither`);
    for (const { fromMs, toMs, cause } of report.gaps) {
      missing[cause] = (missing[cause] ?? 0) + (toMs ?? 0) - fromMs;
    }
    wantedMs += report.wantedMs;
    recordedMs += report.recordedMs;
  }
}

/** All faults are over and everybody is recorded: what is there now is what it takes. */
async function calmUsage(hours: number): Promise<Usage> {
  calm = true;
  for (const leave of viewers) leave();
  for (let tries = 0; ; tries++) {
    await site.pass(MINUTE_MS, each);
    const isCalm = mending.size === 0 && work.size === 0 && !site.disk.fault && !site.recorder.table.isAway;
    if (isCalm && site.recorder.cameras.list().every(({ status }) => status.state === 'recording')) break;
    if (mending.size === 0) databaseBackAtMs = Math.min(databaseBackAtMs, clock.monotonicMs());
    assert.ok(tries < 30, 'it does not come to rest');
  }
  // The middle one of some minutes: the sign of life and journals are open for an instant, and files end and begin.
  const seen: number[] = [];
  await site.pass(3 * MINUTE_MS, () => {
    each();
    seen.push(openDescriptors());
  });
  const descriptors = seen.sort((a, b) => a - b)[seen.length / 2] ?? NaN;
  const usage = {
    hours,
    ...(await leastMemory(site.recorder.pool)),
    descriptors,
    resources: counted(process.getActiveResourcesInfo().filter((name) => name !== 'Immediate' && name !== 'Timeout')),
    timers: clock.timers,
  };
  calm = false;
  return usage;
}

const startedMs = performance.now();
const usages: Usage[] = [];
let lastMs = clock.wallMs();
await site.pass(10 * MINUTE_MS, each);
for (let passedMs = 0; passedMs < HOURS * HOUR_MS; passedMs += LOOK_MS) {
  await site.pass(LOOK_MS, each);
  const toMs = clock.wallMs() - BEHIND_MS;
  if (toMs > lastMs) start(account(Math.max(lastMs, toMs - 2 * LOOK_MS), toMs));
  await Promise.all(work);
  lastMs = toMs;
  const hours = (passedMs + LOOK_MS) / HOUR_MS;
  if (HOURS <= 4 || Number.isInteger(hours / 2)) {
    const usage = await calmUsage(hours);
    usages.push(usage);
    const [data, external, code, free, resident] = [
      usage.bytes,
      usage.externalBytes,
      usage.codeBytes,
      usage.freeBytes,
      usage.residentBytes,
    ].map((bytes) => (bytes / 1e6).toFixed(2));
    say(
      `${hours.toFixed(1)} h, ${((performance.now() - startedMs) / SECOND_MS).toFixed(0)} s: data ${data} MB (${external} outside of the heap), code ${code} MB, free blocks ${free} MB, resident ${resident} MB, ${usage.descriptors} descriptors, ${usage.timers} timers, ${site.recorder.table.rows.size} rows`,
    );
  }
  // For one look files are of a minute.
  const look = Math.round(passedMs / LOOK_MS) % CYCLE_LOOKS;
  const isShort = look === SHORT_LOOK;
  if (isShort || look === SHORT_LOOK + 1) {
    count('reloads');
    await site.apply([], isShort ? MINUTE_MS : 5 * MINUTE_MS);
  }
  if (HOURS > 4 ? hours === RESTART_HOUR : passedMs === 0) {
    count('restarts');
    for (const leave of viewers) leave();
    await site.close();
    await site.open();
    lastMs = clock.wallMs() + MINUTE_MS;
  }
  const camera = cameras[Math.floor(random() * COUNT)] as SiteCamera;
  start(
    site.export(camera.id, toMs - 5 * MINUTE_MS, toMs).then(
      (ms) => {
        const twiceMs = repeatedWithin(toMs - 5 * MINUTE_MS, toMs);
        // Files end and begin at a key frame near the time at which the clock was set.
        const mostMs = 5 * MINUTE_MS + STEP_MS + (twiceMs > 0 ? twiceMs + GROUP_LENGTH * STEP_MS : 0);
        assert.ok(ms <= mostMs, `an export of five minutes is ${ms} ms long, at most ${mostMs}`);
      },
      (err: unknown) => assert.equal((err as { code?: string }).code, 'no-footage', String(err)),
    ),
  );
  await site.untilDone(Promise.all(work));
  count('exports');
}
assert.deepEqual(failures, []);
const isLong = HOURS * HOUR_MS >= 2 * DAY_MS;
// Of the long run those behind the first day with as many files: at the same place of the cycle, before they get short.
const settled = usages.filter(
  ({ hours }) => !isLong || (hours > SETTLED_HOURS && hours % CYCLE_LOOKS === SHORT_LOOK + 1),
);
const [first, last, end] = [settled[0], settled.at(-1), usages.at(-1)];
assert.ok(first && last && end);
const table = site.recorder.table;
await site.close();
const files = readdirSync(site.root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.mp4'));
const names = new Set(files.filter((name) => !name.startsWith('.')));
const gone = [...table.rows].filter((name) => !names.has(name));
const unlisted = [...names].filter((name) => !table.rows.has(name));
assert.deepEqual({ gone, unlisted }, { gone: [], unlisted: [] }, 'rows without files, files without rows');
for (const camera of cameras) await camera.stop();

const slope = (24 * slopeOf(settled.map(({ hours, bytes }) => [hours, bytes]))) / first.bytes;
say(
  `wanted ${(wantedMs / HOUR_MS).toFixed(1)} camera hours, recorded ${((100 * recordedMs) / wantedMs).toFixed(3)} %; missing seconds by cause: ${JSON.stringify(Object.fromEntries(Object.entries(missing).map(([cause, ms]) => [cause, Math.round(ms / 1000)])))}`,
);
say(JSON.stringify(counts));
const codeSlope = (24 * slopeOf(settled.map(({ hours, codeBytes }) => [hours, codeBytes]))) / first.codeBytes;
say(
  `memory ${(first.bytes / 1e6).toFixed(1)} MB after ${first.hours.toFixed(1)} h, ${(last.bytes / 1e6).toFixed(1)} MB after ${last.hours.toFixed(1)} h: ${(slope * 100).toFixed(2)} % a day; code ${(first.codeBytes / 1e6).toFixed(1)} MB, ${(last.codeBytes / 1e6).toFixed(1)} MB: ${(codeSlope * 100).toFixed(2)} % a day`,
);
assert.deepEqual([end.resources, end.timers], [first.resources, first.timers]);
const descriptors = Math.max(...usages.filter(({ hours }) => hours <= first.hours).map((usage) => usage.descriptors));
assert.ok(end.descriptors <= descriptors, `${end.descriptors} descriptors, at most ${descriptors} at first`);
// Hours say nothing of days: there it is only not to double. Of the percent a quarter is the account of gaps, by right: of
// 600 faults a day, each kept for 400 days, or as one of the last 20 000 of its camera.
if (isLong) assert.ok(slope < 0.01, `memory grows by ${(slope * 100).toFixed(2)} % a day`);
else assert.ok(last.bytes < first.bytes * 1.5, `${first.bytes}, then ${last.bytes} bytes`);
