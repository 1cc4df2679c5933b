// Jobs of a node with a Redis of its own, over an archive on a real disk.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash, createPublicKey, verify } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { VirtualClock, systemClock } from '../../base/clock.ts';
import { decodePictures } from '../../test/camera/frame-numbers.ts';
import { encodeVideo } from '../../test/support/encoded-samples.ts';
import { probe } from '../../test/support/probe.ts';
import { until } from '../../test/support/until.ts';
import { numberedVideo, recordedPart, WALL_START_MS } from '../../test/support/joined-file.ts';
import { formatPath } from '../archive/disk/names.ts';
import { ended, request, stage } from '../../test/support/jobs-stage.ts';
import { silentLog } from '../../base/log.ts';
import { workspace } from '../../test/support/workspace.ts';
import {
  JobsUnavailable,
  isExpired,
  type Job,
  type JobQueue,
  type JobRequest,
  type JobState,
  type QueueCount,
  type Work,
} from './job.ts';
import { newJobId } from './job-id.ts';
import { Manifest } from './manifest.ts';
import type { Jobs } from './jobs.ts';
import { openQueue } from './open-queue.ts';

const skip = spawnSync('redis-server', ['--version']).error ? 'redis-server is not installed' : false;

test('a node without jobs starts no redis-server; the first job does', { skip }, async (t) => {
  const { directory, open } = await stage(t);
  const jobs = await open();
  assert.equal(existsSync(join(directory, 'redis')), false);
  const asked = await jobs.submit(request(1_000, 3_000));
  assert.match(asked.id, /^e[0-9a-f]{24}$/);
  const done = await ended(jobs, asked.id);
  assert.equal(done.state, 'done', done.reason);
  const path = join(directory, 'results', `${asked.id}.mp4`);
  assert.deepEqual(done, {
    ...request(1_000, 3_000),
    id: asked.id,
    state: 'done',
    progress: 1,
    createdAtMs: asked.createdAtMs,
    completedAtMs: done.completedAtMs,
    outcome: {
      sizeBytes: statSync(path).size,
      durationMs: 2_000,
      gaps: [],
      sha256: createHash('sha256').update(readFileSync(path)).digest('hex'),
    },
    reason: undefined,
    reasonCode: undefined,
    retry: undefined,
  });
  assert.equal((await jobs.result(done))?.path, path);
  assert.equal((await decodePictures(path)).numbers.length, 50);
});

test(
  'two who ask for the same window have a job each, and the work is done once; results outlive a restart',
  { skip },
  async (t) => {
    const { open } = await stage(t);
    let copies = 0;
    const before = await open({ spareBytes: async () => (copies++, Infinity) });
    const asked = await Promise.all([before.submit(request(0, 2_000)), before.submit(request(0, 2_000))]);
    const [first, second] = (await Promise.all(asked.map(({ id }) => ended(before, id)))) as [Job, Job];
    const third = await ended(before, (await before.submit(request(0, 2_000))).id);
    assert.equal(new Set([first.id, second.id, third.id]).size, 3);
    assert.equal(copies, 1);
    const inodeOf = async (job: Job): Promise<number> => statSync((await before.result(job))?.path ?? '').ino;
    const inodes = await Promise.all([first, second, third].map(inodeOf));
    assert.deepEqual(new Set(inodes).size, 1, 'one file');
    // Each goes with who asked for it.
    assert.equal(await before.remove(first.id), true);
    assert.equal(await before.get(first.id), undefined);
    assert.equal((await decodePictures((await before.result(second))?.path ?? '')).numbers.length, 50);
    // Whatever differs is other work: of another camera above all.
    const others = [
      request(0, 2_040),
      request(40, 2_000),
      request(0, 2_000, { cameraId: 'yard' }),
      request(0, 2_000, { kind: 'timelapse', speed: 2 }),
      request(0, 2_000, { kind: 'timelapse', speed: 3 }),
    ];
    for (const other of others) {
      const done = await ended(before, (await before.submit(other)).id);
      if (!(await before.result(done))) continue;
      const inode = await inodeOf(done);
      assert.ok(!inodes.includes(inode), 'a file of its own');
      inodes.push(inode);
    }
    await before.close();
    const after = await open();
    assert.deepEqual(await after.get(second.id), second);
    assert.equal((await after.list()).length, 2 + others.length);
    assert.ok(await after.result(second));
  },
);

test('who asks late has a result for an hour; what was made half an hour ago is made again', { skip }, async (t) => {
  const { open } = await stage(t);
  let aheadMs = 0;
  let copies = 0;
  const clock = { ...systemClock, wallMs: () => systemClock.wallMs() + aheadMs };
  const jobs = await open({ clock, spareBytes: async () => (copies++, Infinity) });
  const make = async (): Promise<Job> => ended(jobs, (await jobs.submit(request(0, 2_000))).id);
  const first = await make();
  aheadMs = 1_700_000;
  const second = await make();
  assert.equal(copies, 1);
  aheadMs = 1_900_000;
  const third = await make();
  assert.equal(copies, 2);
  aheadMs = 3_610_000;
  assert.equal(await jobs.result(first), undefined, 'the first has expired');
  // Redis dates the ends of jobs by its own clock: what is left of them is what was asked for here.
  assert.deepEqual(
    [isExpired(second, second.completedAtMs! + 3_599_999), isExpired(third, third.completedAtMs! + 3_600_000)],
    [false, true],
  );
});

test('one of two who wait for the same work is cancelled: the other gets it', { skip }, async (t) => {
  const { open } = await stage(t);
  let release = (): void => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  t.after(release);
  let copies = 0;
  const jobs = await open({ spareBytes: async () => (copies++, released.then(() => Infinity)) });
  const [first, second, third] = await Promise.all([0, 1, 2].map(() => jobs.submit(request(0, 2_000))));
  assert.ok(first && second && third);
  const run = async (): Promise<boolean> => (await jobs.list()).every(({ state }) => state === 'running');
  await until('all three run, and one of them copies', async () => copies > 0 && (await run()));
  assert.equal(copies, 1);
  const removed = jobs.remove(first.id);
  release();
  assert.equal(await removed, true);
  for (const { id } of [second, third]) assert.equal((await ended(jobs, id)).state, 'done');
  assert.ok(copies <= 2);
});

test('a job is known for a week, expired or failed; then it is not', { skip }, async (t) => {
  const { open } = await stage(t);
  let aheadMs = 0;
  const clock = { ...systemClock, wallMs: () => systemClock.wallMs() + aheadMs };
  const jobs = await open({ clock });
  const { id } = await ended(jobs, (await jobs.submit(request(0, 2_000))).id);
  aheadMs = 7 * 86_400_000 - 60_000;
  assert.equal((await jobs.get(id))?.state, 'done');
  aheadMs += 120_000;
  assert.equal(await jobs.get(id), undefined);
  assert.deepEqual(await jobs.list(), []);
});

test(
  'no answer ever has more than four exports and two time-lapses that run, assemblies among them',
  { skip },
  async (t) => {
    let begun = 0;
    const work: Work = async () => {
      const ms = 5 + ((begun++ * 7) % 20);
      await new Promise((resolve) => setTimeout(resolve, ms));
      return { sizeBytes: 1, durationMs: 1, gaps: [] };
    };
    const directory = workspace(t);
    const queue = await openQueue(
      { directory: join(directory, 'redis'), url: undefined, nodeName: 'a', clock: systemClock, log: silentLog },
      work,
    );
    t.after(() => queue.close());
    const assembly = { parts: [], withCredential: false };
    const kinds = [
      request(0, 1_000),
      request(0, 1_000, { kind: 'timelapse', speed: 2 }),
      request(0, 1_000, { assembly }),
      request(0, 1_000, { kind: 'timelapse', speed: 2, assembly }),
    ];
    const asked: JobRequest[] = Array.from({ length: 240 }, (_, i) => kinds[i % 4] as JobRequest);
    const most = { export: 0, timelapse: 0 };
    const states = new Map<string, JobState>();
    const order = ['pending', 'running', 'done'];
    const adding = Promise.all(asked.map((one) => queue.add(newJobId(one), one)));
    for (let done = 0; done < asked.length;) {
      const jobs = await queue.list();
      for (const kind of ['export', 'timelapse'] as const) {
        const running = jobs.filter((job) => job.kind === kind && job.state === 'running').length;
        most[kind] = Math.max(most[kind], running);
      }
      const counts = await queue.counts();
      const running = counts.reduce((sum, { running }) => sum + running, 0);
      assert.ok(running <= 6, `${running} run`);
      for (const { id, state } of jobs) {
        const before = states.get(id) ?? 'pending';
        assert.ok(order.indexOf(state) >= order.indexOf(before), `${before}, then ${state}`);
        states.set(id, state);
      }
      done = jobs.filter(({ state }) => state === 'done').length;
    }
    await adding;
    assert.ok(most.export <= 4 && most.timelapse <= 2, JSON.stringify(most));
    assert.ok(most.export >= 2 && most.timelapse >= 1, JSON.stringify(most));
  },
);

test(
  'a token has no more than a hundred jobs that wait or run, however many it asks for at once; others continue',
  { skip },
  async (t) => {
    const { open } = await stage(t);
    // Nothing ends until it may.
    let goOn = (): void => {};
    const held = new Promise<number>((resolve) => (goOn = () => resolve(Infinity)));
    const jobs = await open({ spareBytes: () => held });
    const ask = (by: string, i: number) => jobs.submit(request(0, 1_000 + i, { by }));
    const first = await ask('ops', 0);
    const asked = await Promise.allSettled(Array.from({ length: 150 }, (_, i) => ask('gate-op', i)));
    const refused = asked.filter((one) => one.status === 'rejected');
    assert.equal(refused.length, 50);
    for (const { reason } of refused) assert.match(String(reason), /TooManyJobs: 100 jobs of gate-op wait or run/);
    await assert.rejects(ask('gate-op', 0), { name: 'TooManyJobs' });
    const other = await ask('ops', 200);
    goOn();
    for (const { id } of [first, other]) assert.equal((await ended(jobs, id)).state, 'done');
    await until('another job is accepted', async () =>
      ask('gate-op', 0).then(
        () => true,
        () => false,
      ),
    );
  },
);

test(
  'a time-lapse over a change of the codec is one movie, an export of the same window an archive',
  { skip },
  async (t) => {
    const { directory, open } = await stage(t);
    const startMs = WALL_START_MS + 4_000;
    const video = numberedVideo(workspace(t), { codec: 'h265', firstNumber: 100 });
    const path = join(directory, 'recordings', formatPath({ name: 'Gate', cameraId: 'gate', startMs }));
    writeFileSync(path, recordedPart(video, { run: 'b', wallStartMs: startMs }));
    const jobs = await open();
    const [lapse, copy] = await Promise.all(
      [request(0, 8_000, { kind: 'timelapse', speed: 4 }), request(0, 8_000)].map(async (asked) =>
        ended(jobs, (await jobs.submit(asked)).id),
      ),
    );
    assert.deepEqual([lapse?.state, lapse?.outcome?.parts, lapse?.outcome?.durationMs], ['done', undefined, 2_000]);
    const movie = (await jobs.result(lapse as Job))?.path ?? '';
    assert.ok(Math.abs((await probe(movie)).durationSeconds - 2) < 0.001);
    assert.equal(copy?.outcome?.parts?.length, 2);
    assert.equal((await jobs.result(copy))?.sizeBytes, copy?.outcome?.sizeBytes);
  },
);

test('a job without footage fails with its reason', { skip }, async (t) => {
  const { open } = await stage(t);
  const jobs = await open();
  const failed = await ended(jobs, (await jobs.submit(request(60_000, 70_000))).id);
  assert.equal(failed.state, 'failed');
  assert.equal(failed.reasonCode, 'no-footage');
  assert.match(failed.reason ?? '', /^this node has no footage of camera gate from 2026-01-05T10:01:00\.000Z/);
});

test('more than four exports wait; one that waits and one that runs can be cancelled', { skip }, async (t) => {
  const { directory, open } = await stage(t);
  let release = (): void => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  t.after(release);
  const jobs = await open({
    spareBytes: async () => {
      await released;
      return Infinity;
    },
  });
  const ids: string[] = [];
  for (let i = 0; i < 6; i++) ids.push((await jobs.submit(request(0, 1_000 + i * 40))).id);
  const states = async (): Promise<(string | undefined)[]> =>
    Promise.all(ids.map(async (id) => (await jobs.get(id))?.state));
  const running = ['running', 'running', 'running', 'running', 'pending', 'pending'];
  await until('four run', async () => (await states()).join() === running.join());
  assert.equal(await jobs.remove(ids[5] as string), true);
  const cancelled = jobs.remove(ids[0] as string);
  release();
  assert.equal(await cancelled, true);
  assert.equal(await jobs.remove('e000000000000000000000000'), false);
  for (const id of ids.slice(1, 5)) assert.equal((await ended(jobs, id)).state, 'done');
  assert.deepEqual(await states(), [undefined, 'done', 'done', 'done', 'done', undefined]);
  const left = readdirSync(join(directory, 'results'));
  assert.deepEqual(
    left.sort(),
    ids
      .slice(1, 5)
      .flatMap((id) => [`${id}.manifest`, `${id}.mp4`])
      .sort(),
  );
});

test('an hour after completion a result is gone, also when the recorder was down then', { skip }, async (t) => {
  const { directory, open } = await stage(t);
  const before = await open();
  const done = await ended(before, (await before.submit(request(0, 2_000))).id);
  const path = (await before.result(done))?.path ?? '';
  await before.close();
  // What a crash leaves.
  writeFileSync(`${path}.part`, 'half a movie');
  const aheadMs = 3_600_001;
  const clock = { ...systemClock, wallMs: () => systemClock.wallMs() + aheadMs };
  const after = await open({ clock });
  await until('the result is gone', () => Promise.resolve(!existsSync(path)));
  assert.deepEqual(readdirSync(join(directory, 'results')), []);
  const known = await after.get(done.id);
  assert.equal(known?.state, 'done');
  assert.equal(await after.result(known), undefined);
});

test('that redis-server is not installed is said before anyone asks, until it is', { skip }, async (t) => {
  const { directory, open } = await stage(t);
  const program = join(directory, 'redis-server');
  const clock = new VirtualClock();
  const registry = new Registry();
  const jobs = await open({ clock, registry }, { program });
  const warnings = (): string[] => jobs.warnings().map(({ code, message }) => `${code}: ${message}`);
  const available = async (): Promise<number | undefined> =>
    (await registry.getSingleMetric('kube_nvr_jobs_available')?.get())?.values[0]?.value;
  assert.match(warnings().join(), /^jobs-unavailable: .*redis-server is not installed: install it/);
  assert.equal(await available(), 0);
  symlinkSync(spawnSync('which', ['redis-server'], { encoding: 'utf8' }).stdout.trim(), program);
  // A look each minute; one may fail on a busy machine. Time goes on no sooner than such a look takes.
  let lookedMs = -Infinity;
  await until('it is there', () => {
    if (performance.now() - lookedMs > 10_000) {
      lookedMs = performance.now();
      clock.advance(60_000);
    }
    return warnings().length === 0;
  });
  assert.equal(await available(), 1);
});

test('without redis-server, asking for a job says what to install', { skip }, async (t) => {
  const { open } = await stage(t);
  const jobs = await open({}, { program: 'no-such-redis-server' });
  await assert.rejects(jobs.submit(request(0, 1_000)), {
    name: 'JobsUnavailable',
    message: /^the program no-such-redis-server is not installed: install it .*apt install redis-server/,
  });
});

test('that ffmpeg was removed is noticed within a quarter of an hour, that it is back within a minute', async (t) => {
  const { directory, open } = await stage(t);
  const ffmpegPath = join(directory, 'ffmpeg');
  const elsewhere = `${ffmpegPath}.removed`;
  const runs = join(directory, 'runs');
  // It may write no file.
  mkdirSync(runs);
  writeFileSync(ffmpegPath, `#!/bin/sh\nmkdir '${runs}/'$$\n`, { mode: 0o755 });
  const looks = (): number => readdirSync(runs).length;
  const clock = new VirtualClock();
  let swept = (): void => {};
  const after = clock.after.bind(clock);
  clock.after = (delayMs, callback) => {
    const timer = after(delayMs, callback);
    swept();
    return timer;
  };
  const minute = async (): Promise<void> => {
    const done = new Promise<void>((resolve) => (swept = resolve));
    clock.advance(60_000);
    await done;
  };
  const jobs = await open({ clock, ffmpegPath, mayHaveJobs: async () => false });
  const codes = (): string[] => jobs.warnings().map(({ code }) => code);
  assert.deepEqual([codes(), looks()], [[], 1]);
  for (let i = 0; i < 16; i++) await minute();
  assert.deepEqual([codes(), looks()], [[], 2], 'once more in a quarter of an hour');
  renameSync(ffmpegPath, elsewhere);
  for (let i = 0; i < 13; i++) await minute();
  assert.deepEqual(codes(), []);
  await minute();
  assert.deepEqual(codes(), ['ffmpeg-missing']);
  renameSync(elsewhere, ffmpegPath);
  await minute();
  assert.deepEqual([codes(), looks()], [[], 3]);
});

test(
  'an attempt at a time-lapse writes under a name of its own: the encoder of the one before may live on',
  { skip },
  async (t) => {
    const { directory, open } = await stage(t);
    const ffmpegPath = join(directory, 'ffmpeg');
    const outputs = join(directory, 'outputs');
    // Asked for its version it ends at once; the first encoder does not end, the second makes a result.
    const script = [
      '#!/bin/sh',
      'for output; do :; done',
      '[ "$output" = -version ] && exit',
      `echo "$output" >> '${outputs}'`,
      `[ "$(wc -l < '${outputs}')" -gt 1 ] || exec sleep 600`,
      'echo movie > "$output"',
    ];
    writeFileSync(ffmpegPath, `${script.join('\n')}\n`, { mode: 0o755 });
    const before = await open({ ffmpegPath });
    const { id } = await before.submit(request(0, 4_000, { kind: 'timelapse', speed: 2 }));
    await until('it is encoded', () => existsSync(outputs));
    await before.close();
    const after = await open({ ffmpegPath });
    assert.equal((await ended(after, id)).state, 'done');
    const [first, second] = readFileSync(outputs, 'utf8').trim().split('\n');
    assert.notEqual(second, first);
    assert.deepEqual(readdirSync(join(directory, 'results')).sort(), [`${id}.manifest`, `${id}.mp4`]);
  },
);

test('a time-lapse has its size, its rate and its length', { skip }, async (t) => {
  const large = { codec: 'h264', encoderParameters: 'keyint=25', size: '1600x902', frames: 100 } as const;
  const { open } = await stage(t, encodeVideo(tmpdir(), large));
  const jobs = await open();
  const asked = await jobs.submit(request(0, 4_000, { kind: 'timelapse', speed: 2 }));
  const done = await ended(jobs, asked.id);
  assert.equal(done.state, 'done', done.reason);
  const { path = '' } = (await jobs.result(done)) ?? {};
  const { streams, durationSeconds } = await probe(path);
  const [video] = streams;
  assert.equal(streams.length, 1);
  assert.deepEqual([video?.codec_name, video?.width, video?.height], ['h264', 1280, 720]);
  assert.equal((video as unknown as { avg_frame_rate: string }).avg_frame_rate, '30/1');
  assert.ok(Math.abs(durationSeconds - 2) <= 1 / 30 + 0.001, `${durationSeconds} s`);
});

test('metrics say what waits and runs, how long nothing got on, and how jobs ended', { skip }, async (t) => {
  const { open } = await stage(t);
  const registry = new Registry();
  let aheadMs = 0;
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs };
  let release = (): void => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  const spareBytes = (): Promise<number> => held.then(() => Infinity);
  const jobs = await open({ registry, clock, spareBytes });
  const values = async (): Promise<ReadonlyMap<string, number>> => {
    const lines = (await registry.metrics()).split('\n').filter((line) => line.startsWith('kube_nvr_jobs'));
    return new Map(lines.map((line) => [line.split(' ')[0] as string, Number(line.split(' ')[1])]));
  };
  const age = async (): Promise<number> => (await values()).get('kube_nvr_jobs_progress_age_seconds') ?? -1;
  const exports = (state: string): string => `kube_nvr_jobs{queue="export",state="${state}"}`;
  aheadMs += 3_600_000;
  assert.deepEqual([(await values()).get(exports('waiting')), Math.round(await age())], [0, 0]);
  const asked = [];
  for (let i = 0; i < 5; i++) asked.push(await jobs.submit(request(0, 1_000 + i * 40)));
  await until('four run', async () => (await values()).get(exports('running')) === 4);
  assert.equal((await values()).get(exports('waiting')), 1);
  aheadMs += 600_000;
  assert.equal(Math.round((await age()) / 60), 10, 'nothing has got on for ten minutes');
  release();
  for (const { id } of asked) await ended(jobs, id);
  const { id } = await jobs.submit(request(10_000, 11_000));
  assert.equal((await ended(jobs, id)).state, 'failed');
  await until('nothing is left', async () => (await age()) < 60);
  const now = await values();
  assert.equal(now.get('kube_nvr_jobs_available'), 1);
  assert.equal(now.get('kube_nvr_jobs_finished_total{kind="export",outcome="done"}'), 5);
  assert.equal(now.get('kube_nvr_jobs_finished_total{kind="export",outcome="failed"}'), 1);
  assert.equal(now.get('kube_nvr_jobs_finished_total{kind="timelapse",outcome="failed"}'), 0);
});

test('a scrape hears that Redis is away, and that it is back, and waits for neither', async (t) => {
  const { open } = await stage(t);
  const registry = new Registry();
  let counts = (): Promise<QueueCount[]> => Promise.resolve([]);
  const queue: JobQueue = {
    add: async () => {},
    get: async () => undefined,
    list: async () => [],
    counts: () => counts(),
    unfinishedOf: async () => 0,
    remove: async () => false,
    close: async () => {},
  };
  const jobs = await open({ registry, mayHaveJobs: async () => true, openQueue: async () => queue });
  /** Of the second of two scrapes: the first one asks. */
  const available = async (): Promise<string | undefined> => {
    await registry.metrics();
    return /^kube_nvr_jobs_available (\d)$/m.exec(await registry.metrics())?.[1];
  };
  assert.equal(await available(), '1');
  counts = () => Promise.reject(new JobsUnavailable('redis is away'));
  assert.equal(await available(), '0');
  assert.match(jobs.warnings()[0]?.message ?? '', /redis is away/);
  counts = () => Promise.resolve([]);
  assert.equal(await available(), '1');
  counts = () => new Promise(() => {});
  assert.equal(await available(), '1', 'a scrape ends without an answer');
});

/** The manifest of a job, whose signature is right. */
async function manifestOf(jobs: Jobs, job: Job): Promise<Manifest> {
  const { text, signature } = (await jobs.manifest(job)) ?? {};
  assert.ok(text && signature);
  const { publicKey } = await jobs.signingKey();
  assert.ok(verify(null, text, createPublicKey(publicKey), signature));
  return Manifest.parse(JSON.parse(text.toString()));
}

test('exports and time-lapses have a signed manifest, which goes with its result', { skip }, async (t) => {
  const { directory, open } = await stage(t);
  const jobs = await open();
  const make = async (asked: JobRequest): Promise<Job> => ended(jobs, (await jobs.submit(asked)).id);
  const window = { from: '2026-01-05T10:00:00.000Z', to: '2026-01-05T10:00:02.000Z' };
  for (const [asked, kind, name, seconds] of [
    [request(0, 2_000), 'export', 'gate_20260105T100000Z.mp4', 2],
    [request(0, 2_000, { kind: 'timelapse', speed: 4 }), 'timelapse', 'gate_20260105T100000Z_x4.mp4', 0.5],
  ] as const) {
    const job = await make(asked);
    const bytes = readFileSync((await jobs.result(job))?.path ?? '');
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const { cameras, ...about } = await manifestOf(jobs, job);
    assert.deepEqual([about.kind, about.node, about.from, about.to], [kind, 'rack 1', window.from, window.to]);
    const file = { name, size_bytes: bytes.length, sha256, duration_seconds: seconds };
    const footage = [{ ...window, movie_from_seconds: 0, movie_to_seconds: seconds }];
    assert.deepEqual(cameras, [{ camera_id: 'gate', files: [{ ...file, ...window, footage }], gaps: [] }]);
    assert.equal(await jobs.remove(job.id), true);
  }
  assert.deepEqual(readdirSync(join(directory, 'results')), []);
});

test(
  'two who ask for the same case get the same archive and manifest; of another name, another one',
  { skip },
  async (t) => {
    const { open } = await stage(t);
    const jobs = await open();
    const ask = (name: string) => jobs.submit(request(0, 2_000, { case: { cameras: ['gate', 'yard'], name } }));
    const make = async (name: string): Promise<Job> => ended(jobs, (await ask(name)).id);
    const [first, second, other] = [await make('one'), await make('one'), await make('two')];
    assert.match(first.id, /^c[0-9a-f]{24}$/);
    const inodeOf = async (job: Job): Promise<number> => statSync((await jobs.result(job))?.path ?? '').ino;
    assert.equal(await inodeOf(first), await inodeOf(second));
    assert.notEqual(await inodeOf(first), await inodeOf(other));
    assert.equal(await jobs.remove(first.id), true);
    const { name, cameras } = await manifestOf(jobs, second);
    assert.deepEqual([name, cameras.map(({ camera_id }) => camera_id)], ['one', ['gate', 'yard']]);
    assert.deepEqual(
      second.outcome?.cameras?.map(({ cameraId, reasonCode }) => [cameraId, reasonCode]),
      [
        ['gate', undefined],
        ['yard', 'no-footage'],
      ],
    );
  },
);

test('a kept case outlives a month and a restart; it ends when somebody removes it', { skip }, async (t) => {
  const { directory, open } = await stage(t);
  const kept = { case: { cameras: ['gate'], number: '17', isKept: true } };
  const before = await open();
  const { id } = await ended(before, (await before.submit(request(0, 2_000, kept))).id);
  const other = await ended(before, (await before.submit(request(0, 2_000))).id);
  await before.close();
  const wallMs = (): number => systemClock.wallMs() + 31 * 86_400_000;
  const clock = Object.assign(Object.create(systemClock) as typeof systemClock, { wallMs });
  const after = await open({ clock });
  await until(
    'the sweep has removed the other result',
    () => !existsSync(join(directory, 'results', `${other.id}.mp4`)),
  );
  const found = await after.get(id);
  assert.ok(found && (await after.result(found)));
  assert.ok((await after.list()).some((job) => job.id === id));
  assert.equal((await manifestOf(after, found)).number, '17');
  assert.equal(await after.remove(id), true);
  assert.equal(existsSync(join(directory, 'results', `${id}.mp4`)), false);
});

test(
  'without a key that is private, jobs fail with what to do, and ready warns; then they continue',
  { skip },
  async (t) => {
    const { directory, open } = await stage(t);
    const jobs = await open();
    const path = join(directory, 'signing', 'key.pem');
    assert.ok(existsSync(path), 'made at the first start');
    await jobs.close();
    chmodSync(path, 0o644);
    const after = await open();
    const codes = (): string[] => after.warnings().map(({ code }) => code);
    assert.deepEqual(codes(), ['signing-key-unusable']);
    const failed = await ended(after, (await after.submit(request(0, 2_000))).id);
    assert.equal(failed.reasonCode, 'no-signing-key');
    assert.match(failed.reason ?? '', /signing\/key\.pem can be read or written by others/);
    chmodSync(path, 0o600);
    assert.equal((await ended(after, (await after.submit(request(0, 2_000))).id)).state, 'done');
    assert.deepEqual(codes(), []);
  },
);
