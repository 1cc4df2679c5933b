// kill -9 of recorder and Redis at random moments while jobs are made: each job ends once, with the right file or a
// reason, and nothing else is left.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { formatPath } from '../../recorder/archive/disk/names.ts';
import { decodePictures } from '../camera/frame-numbers.ts';
import { numberedVideo, recordedPart, WALL_START_MS } from '../support/joined-file.ts';
import { MAIN, RecorderProcess } from '../support/recorder-process.ts';
import { PATIENCE_MS, until } from '../support/until.ts';
import { LONG } from '../support/variant.ts';
import { seeded } from '../support/random.ts';
import { workspace } from '../support/workspace.ts';

/** When things happen; of the seed that is printed. */
const random = seeded();

const skip = spawnSync('redis-server', ['--version']).error ? 'redis-server is not installed' : false;
const [KILLS, JOBS] = LONG ? [50, 30] : [4, 6];
const FROM = WALL_START_MS / 1000;
const SECONDS = 20;
const FPS = 25;
const PRELOAD = ['--import', import.meta.resolve('../support/preload.ts')];

interface JobAnswer {
  readonly job_id: string;
  readonly kind: 'export' | 'timelapse';
  /** Of a case. */
  readonly cameras?: readonly unknown[];
  readonly from_ms: number;
  readonly to_ms: number;
  readonly state: string;
  readonly progress: number;
  readonly completed_at?: number;
  readonly size_bytes?: number;
  readonly reason?: string;
}

/** A recorder with footage of numbered pictures, and no camera. */
async function node(t: TestContext): Promise<RecorderProcess> {
  const directory = workspace(t);
  const path = join(directory, 'recordings', formatPath({ name: 'Gate', cameraId: 'gate', startMs: WALL_START_MS }));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, recordedPart(numberedVideo(directory, { frames: SECONDS * FPS })));
  return RecorderProcess.start({ directory, config: { cameras: [], log: { level: 'warn' } } });
}

/** Processes of a program that work in this directory, or with files of it. */
function programsOf(program: string, directory: string): number[] {
  return readdirSync('/proc').flatMap((pid) => {
    try {
      const isIt = /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith(program);
      if (!isIt) return [];
      const names = [readlinkSync(`/proc/${pid}/cwd`), ...readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')];
      return names.some((name) => name.includes(directory)) ? [Number(pid)] : [];
    } catch {
      return [];
    }
  });
}

const serversOf = (directory: string): number[] => programsOf('redis-server', directory);

/** Undefined while nobody answers. */
async function ask<T>(recorder: RecorderProcess, path: string, init: RequestInit = {}): Promise<T | undefined> {
  try {
    const answer = await fetch(`${recorder.url}/api/${path}`, { ...init, signal: AbortSignal.timeout(PATIENCE_MS) });
    return answer.ok ? ((await answer.json()) as T) : undefined;
  } catch {
    return undefined;
  }
}

/** A machine that is busy may need a while to start it. */
async function ready(recorder: RecorderProcess): Promise<void> {
  try {
    await until('the recorder is ready', async () => (await fetch(`${recorder.url}/api/health/ready`)).ok);
  } catch (cause) {
    throw new Error(`the recorder did not get ready:\n${recorder.child.output}`, { cause });
  }
}

const listed = async (recorder: RecorderProcess): Promise<JobAnswer[] | undefined> =>
  (await ask<{ jobs: JobAnswer[] }>(recorder, 'archive/jobs'))?.jobs;

const post = (body: object): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

test(
  `${KILLS} kills of recorder and Redis while ${JOBS} jobs are made: each ends once, with the right file`,
  { skip },
  async (t) => {
    let recorder = await node(t);
    t.after(async () => {
      await recorder[Symbol.asyncDispose]();
      for (const pid of serversOf(redis)) process.kill(pid, 'SIGKILL');
    });
    const work = join(recorder.recordPath, '../work');
    const redis = join(work, 'redis');
    const taken = new Set<string>();
    /** As each was when it was first seen to have ended. */
    const ended = new Map<string, JobAnswer>();
    let asked = 0;
    const note = async (): Promise<void> => {
      for (const job of (await listed(recorder)) ?? []) {
        const before = ended.get(job.job_id);
        if (before) assert.deepEqual(job, before, 'what has ended stays as it is');
        else if (job.completed_at !== undefined) ended.set(job.job_id, job);
      }
    };
    for (let kill = 0; kill < KILLS; kill++) {
      // Of three, one is a case and one a time-lapse; each has a window of its own, so that none are shared.
      for (const upTo = Math.ceil(((kill + 1) * JOBS) / KILLS); asked < upTo; asked++) {
        const [from, to] = [FROM + (asked % 10) * 0.4, FROM + SECONDS - Math.floor(asked / 10) * 0.4];
        const what = asked % 3 === 2 ? `timelapse?speed=2&` : 'export?';
        // Refused while Redis is away.
        const job = await until('the job is taken', () =>
          asked % 3 === 1
            ? ask<JobAnswer>(recorder, 'cases', post({ cameras: ['gate'], from, to }))
            : ask<JobAnswer>(recorder, `archive/gate/${what}from=${from}&to=${to}`, { method: 'POST' }),
        );
        taken.add(job.job_id);
      }
      await note();
      await sleep(random() * 1_500);
      const which = kill % 3;
      if (which !== 0) for (const pid of serversOf(redis)) process.kill(pid, 'SIGKILL');
      if (which === 1) continue;
      recorder.child.signal('SIGKILL');
      await recorder.child.exit();
      recorder = await recorder.restart({ waitUntilReady: false });
      await ready(recorder);
    }
    assert.equal(taken.size, JOBS);
    /** How far those are that have not ended; undefined while nobody knows. */
    const left = async (): Promise<readonly string[] | undefined> => {
      await note();
      const jobs = (await listed(recorder)) ?? [];
      if (jobs.length < taken.size) return undefined;
      return jobs.filter((job) => job.completed_at === undefined).map((job) => `${job.job_id} ${job.progress}`);
    };
    // As long as one of them goes on: encoders stand behind everybody else in the queue for processors.
    for (let before = await until('jobs are listed', left); before.length > 0;) {
      const further = until('a job goes on', async () => {
        const now = await left();
        return now !== undefined && !isDeepStrictEqual(now, before) && now;
      });
      before = await further.catch(async (cause: unknown) => {
        throw new Error(`still: ${JSON.stringify(await listed(recorder))}\n${recorder.child.output}`, { cause });
      });
    }
    await note();
    assert.deepEqual(
      [...taken].filter((id) => !ended.has(id)),
      [],
      'no job was lost',
    );
    const file = join(workspace(t), 'result.mp4');
    const { keys } = (await recorder.get('/api/keys')) as { keys: { fingerprint: string }[] };
    for (const [id, job] of ended) {
      if (job.state === 'failed') {
        assert.ok((job.reason ?? '') !== '', `${id} says why it failed`);
        t.diagnostic(`${job.kind} failed: ${job.reason}`);
        continue;
      }
      const answer = await fetch(`${recorder.url}/api/archive/jobs/${id}/download`);
      assert.equal(answer.status, 200);
      const bytes = Buffer.from(await answer.arrayBuffer());
      assert.equal(bytes.length, job.size_bytes);
      writeFileSync(file, bytes);
      if (job.cameras) {
        execFileSync(process.execPath, [
          ...PRELOAD,
          MAIN,
          'verify',
          file,
          '--fingerprint',
          String(keys[0]?.fingerprint),
        ]);
        const movie = await fetch(`${recorder.url}/api/archive/jobs/${id}/download?part=1`);
        writeFileSync(file, Buffer.from(await movie.arrayBuffer()));
      }
      const { numbers, complaints } = await decodePictures(file);
      assert.equal(complaints, '');
      const frame = (ms: number): number => Math.round((ms / 1000 - FROM) * FPS);
      if (job.kind === 'export') {
        const all = Array.from({ length: frame(job.to_ms) - frame(job.from_ms) }, (_, i) => frame(job.from_ms) + i);
        assert.deepEqual(numbers, all);
      } else {
        assert.equal(numbers.length, Math.round(((job.to_ms - job.from_ms) / 2000) * 30));
        assert.equal(numbers[0], frame(job.from_ms));
      }
    }
    await recorder.stop();
    assert.deepEqual(programsOf('ffmpeg', work), [], 'no encoder is left');
    const done = [...ended.values()].filter(({ state }) => state === 'done');
    t.diagnostic(`${done.length} done, ${ended.size - done.length} failed`);
    assert.deepEqual(
      readdirSync(join(work, 'jobs')).sort(),
      done.flatMap(({ job_id }) => [`${job_id}.manifest`, `${job_id}.mp4`]).sort(),
    );
    assert.deepEqual(serversOf(redis), [], 'Redis has ended with the recorder');
  },
);
