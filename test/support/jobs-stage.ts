// Jobs of one node with an archive of four seconds of footage on a real disk.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { numberedVideo, recordedPart, WALL_START_MS } from './joined-file.ts';
import { until } from './until.ts';
import { Archive } from '../../recorder/archive/archive.ts';
import { formatPath } from '../../recorder/archive/disk/names.ts';
import type { Job, JobRequest } from '../../recorder/jobs/job.ts';
import { Jobs, type JobsOptions } from '../../recorder/jobs/jobs.ts';
import { mayHaveJobs, openQueue, type QueueOptions } from '../../recorder/jobs/open-queue.ts';

const FOOTAGE = numberedVideo(tmpdir());

export const request = (fromMs: number, toMs: number, changes: Partial<JobRequest> = {}): JobRequest => ({
  kind: 'export',
  cameraId: 'gate',
  fromMs: WALL_START_MS + fromMs,
  toMs: WALL_START_MS + toMs,
  ...changes,
});

interface Stage {
  readonly directory: string;
  readonly open: (changes?: Partial<JobsOptions>, queue?: Partial<QueueOptions>) => Promise<Jobs>;
}

/** A camera with four seconds of footage. */
export async function stage(t: TestContext, video = FOOTAGE): Promise<Stage> {
  // Short, because it contains a socket.
  const directory = mkdtempSync(join(tmpdir(), 'jobs-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const root = join(directory, 'recordings');
  const path = join(root, formatPath({ name: 'Gate', cameraId: 'gate', startMs: WALL_START_MS }));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, recordedPart(video));
  const archive = new Archive({ root, clock: systemClock, log: silentLog, syncIntervalMs: 5_000 });
  await archive.recover();
  t.after(() => archive.close());
  return {
    directory,
    async open(changes = {}, queueChanges = {}) {
      const queue = {
        directory: join(directory, 'redis'),
        url: undefined,
        nodeName: 'rack 1',
        clock: systemClock,
        log: silentLog,
        ...queueChanges,
      };
      const jobs = new Jobs({
        directory: join(directory, 'results'),
        keyDirectory: join(directory, 'signing'),
        nodeName: 'rack 1',
        recordPath: root,
        archive,
        ffmpegPath: 'ffmpeg',
        version: '1.2.3',
        clock: systemClock,
        log: silentLog,
        spareBytes: async () => Infinity,
        mayHaveJobs: () => mayHaveJobs(queue),
        openQueue: (work, ended) => openQueue(queue, work, ended),
        ...changes,
      });
      t.after(() => jobs.close());
      await jobs.start();
      return jobs;
    },
  };
}

export async function ended(jobs: Jobs, id: string): Promise<Job> {
  // Encoders run at the lowest priority.
  const patienceMs = 180_000;
  return until(
    `job ${id} ends`,
    async () => {
      const job = await jobs.get(id);
      return job?.completedAtMs !== undefined && job;
    },
    patienceMs,
  );
}
