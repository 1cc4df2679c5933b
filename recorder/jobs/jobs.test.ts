// Jobs of a node with a Redis of its own, over an archive on a real disk.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { VirtualClock, systemClock } from '../../base/clock.ts';
import { decodePictures } from '../../test/camera/frame-numbers.ts';
import { encodeVideo } from '../../test/support/encoded-samples.ts';
import { probe } from '../../test/support/probe.ts';
import { until } from '../../test/support/until.ts';
import { ended, request, stage } from '../../test/support/jobs-stage.ts';
import { JobsUnavailable, type JobQueue, type QueueCount } from './job.ts';

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
    outcome: { sizeBytes: statSync(path).size, durationMs: 2_000, gaps: [] },
    reason: undefined,
  });
  assert.equal((await jobs.result(done))?.path, path);
  assert.equal((await decodePictures(path)).numbers.length, 50);
});

test('two who ask for the same window share a job; results outlive a restart', { skip }, async (t) => {
  const { open } = await stage(t);
  const before = await open();
  const first = await before.submit(request(0, 2_000));
  assert.equal((await before.submit(request(0, 2_000))).id, first.id);
  assert.notEqual((await before.submit(request(0, 2_040))).id, first.id);
  const done = await ended(before, first.id);
  await before.close();
  const after = await open();
  assert.deepEqual(await after.get(first.id), done);
  assert.equal((await after.list()).length, 2);
  assert.ok(await after.result(done));
});

test('a job without footage fails with its reason', { skip }, async (t) => {
  const { open } = await stage(t);
  const jobs = await open();
  const failed = await ended(jobs, (await jobs.submit(request(60_000, 70_000))).id);
  assert.equal(failed.state, 'failed');
  assert.match(failed.reason ?? '', /^this node has no footage of camera gate from 2026-01-05T10:01:00\.000Z/);
});

test('more than four exports wait; one that waits and one that runs can be cancelled', { skip }, async (t) => {
  const { directory, open } = await stage(t);
  let release = (): void => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  t.after(release);
  const jobs = await open({
    room: async () => {
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
      .map((id) => `${id}.mp4`)
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
  writeFileSync(ffmpegPath, `#!/bin/sh\necho run >> '${runs}'\n`, { mode: 0o755 });
  const looks = (): number => readFileSync(runs, 'utf8').trim().split('\n').length;
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
    assert.deepEqual(readdirSync(join(directory, 'results')), [`${id}.mp4`]);
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
  const room = (): Promise<number> => held.then(() => Infinity);
  const jobs = await open({ registry, clock, room });
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
