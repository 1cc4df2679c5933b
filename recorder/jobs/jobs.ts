// The jobs of one node: takes requests, does the work, hands out results, and removes them after an hour.

import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { JobError } from './error.ts';
import { TEMPORARY_SUFFIX, estimateExport, exportWindow, temporaryName } from './export.ts';
import type { JobArchive, PlannerDeps } from './export-plan.ts';
import { FfmpegCheck, makeTimelapse } from './ffmpeg.ts';
import { JobsUnavailable, type Job, type JobOutcome, type JobQueue, type JobRequest, type Work } from './job.ts';

export interface JobsOptions {
  /** Of results. */
  readonly directory: string;
  readonly recordPath: string;
  readonly archive: JobArchive;
  readonly ffmpegPath: string;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
  /** What may be written in `directory` without taking room from recording. */
  readonly room: () => Promise<number>;
  /** Whether there may be jobs from before: without any, nothing is started until somebody asks for one. */
  readonly mayHaveJobs: () => Promise<boolean>;
  /** Throws JobsUnavailable. Called again after it has failed. */
  readonly openQueue: (work: Work) => Promise<JobQueue>;
}

/** How long a result can be fetched. */
export const RESULT_KEPT_MS = 3_600_000;
const SWEEP_MS = 60_000;
const RESULT_SUFFIX = '.mp4';

export class Jobs {
  readonly #o: JobsOptions;
  readonly #ffmpeg: FfmpegCheck;
  #queue: Promise<JobQueue> | undefined;
  #sweep: Timer | undefined;
  #closed = false;
  #ffmpegMissing = false;

  constructor(options: JobsOptions) {
    this.#o = options;
    this.#ffmpeg = new FfmpegCheck(options.ffmpegPath, options.clock);
  }

  /** Removes what a crash left, and goes on with jobs that were interrupted. Never throws. */
  async start(): Promise<void> {
    const { directory, log } = this.#o;
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      for (const name of await readdir(directory)) {
        if (name.endsWith(TEMPORARY_SUFFIX)) await rm(join(directory, name), { force: true });
      }
      if (await this.#o.mayHaveJobs()) await this.#opened();
    } catch (err) {
      log.warn({ err }, 'jobs are not available');
    }
    await this.#sweepLater();
  }

  /** What keeps people from asking for jobs, as of the last minute. */
  warnings(): { code: string; message: string; cameraId: undefined }[] {
    if (!this.#ffmpegMissing) return [];
    const message = `ffmpeg is not installed (${this.#o.ffmpegPath}): exports and time-lapses are refused`;
    return [{ code: 'ffmpeg-missing', message, cameraId: undefined }];
  }

  /** Whether exports and time-lapses can be asked for. */
  ffmpegIsThere(): Promise<boolean> {
    return this.#ffmpeg.isThere();
  }

  /** Two who ask for the same window of the past share one job. Throws JobsUnavailable. */
  async submit(request: JobRequest): Promise<Job> {
    const queue = await this.#opened();
    const same = (await queue.list()).find((job) => this.#isSame(job, request));
    if (same) return same;
    const id = `${request.kind[0]}${randomBytes(12).toString('hex')}`;
    await queue.add(id, request);
    const job = await queue.get(id);
    if (!job) throw new JobsUnavailable('redis lost the job');
    return job;
  }

  async get(id: string): Promise<Job | undefined> {
    return (await this.#opened()).get(id);
  }

  /** Newest first. */
  async list(): Promise<Job[]> {
    return (await this.#opened()).list();
  }

  /** False for an unknown one. */
  async remove(id: string): Promise<boolean> {
    const removed = await (await this.#opened()).remove(id);
    if (removed) await rm(this.#resultPath(id), { force: true });
    return removed;
  }

  /** Throws JobError. */
  estimate(request: JobRequest): Promise<JobOutcome> {
    return estimateExport(request, this.#plannerDeps());
  }

  /** The file of a job that is done; undefined when it has expired. */
  async result(job: Job): Promise<{ path: string; sizeBytes: number; modifiedMs: number } | undefined> {
    if (this.#isExpired(job)) return undefined;
    const path = this.#resultPath(job.id);
    const stats = await stat(path).catch(() => undefined);
    return stats && { path, sizeBytes: stats.size, modifiedMs: stats.mtimeMs };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#sweep?.cancel();
    await (await this.#queue?.catch(() => undefined))?.close();
  }

  #opened(): Promise<JobQueue> {
    if (this.#closed) return Promise.reject(new JobsUnavailable('the recorder stops'));
    this.#queue ??= this.#o.openQueue((id, ...rest) => this.#work(id, ...rest));
    const queue = this.#queue;
    queue.catch(() => {
      if (this.#queue === queue) this.#queue = undefined;
    });
    return queue;
  }

  #isSame(job: Job, request: JobRequest): boolean {
    const asked =
      job.kind === request.kind &&
      job.cameraId === request.cameraId &&
      job.fromMs === request.fromMs &&
      job.toMs === request.toMs &&
      job.speed === request.speed;
    // Footage of the window that came after the job is not in its result.
    return asked && job.state !== 'failed' && job.toMs < job.createdAtMs && !this.#isExpired(job);
  }

  #isExpired({ completedAtMs }: Job): boolean {
    return completedAtMs !== undefined && this.#o.clock.wallMs() - completedAtMs >= RESULT_KEPT_MS;
  }

  async #work(
    id: string,
    request: JobRequest,
    progress: (share: number) => void,
    signal: AbortSignal,
  ): Promise<JobOutcome> {
    const path = this.#resultPath(id);
    const deps = { ...this.#plannerDeps(), room: this.#o.room };
    if (request.kind === 'export') return exportWindow(request, path, { ...deps, progress }, signal);
    const { speed = 2 } = request;
    if (!(await this.#ffmpeg.isThere())) {
      throw new JobError('ffmpeg-missing', `ffmpeg is not installed: ${this.#o.ffmpegPath}`);
    }
    // Both names go with the next start, should this process die.
    const source = `${path}.source${TEMPORARY_SUFFIX}`;
    const output = temporaryName(path);
    try {
      const copied = (share: number): void => progress(share / 10);
      const footage = await exportWindow({ ...request, silent: true }, source, { ...deps, progress: copied }, signal);
      const { durationMs, gaps } = footage;
      const encoded = (share: number): void => progress(0.1 + share * 0.9);
      const run = { program: this.#o.ffmpegPath, input: source, output, speed, durationMs, progress: encoded };
      await makeTimelapse(run, signal);
      await rename(output, path);
      return { sizeBytes: (await stat(path)).size, durationMs: durationMs / speed, gaps };
    } finally {
      await Promise.all([source, output].map((left) => rm(left, { force: true })));
    }
  }

  #plannerDeps(): PlannerDeps {
    const { recordPath, archive, clock, version } = this.#o;
    return { recordPath, archive, version, wallMs: () => clock.wallMs() };
  }

  #resultPath(id: string): string {
    return join(this.#o.directory, `${id}${RESULT_SUFFIX}`);
  }

  /** Removes results an hour after their jobs ended, and those that no job knows. */
  async #sweepLater(): Promise<void> {
    if (this.#closed) return;
    this.#ffmpegMissing = !(await this.#ffmpeg.isThere());
    try {
      const results = (await readdir(this.#o.directory)).filter((name) => name.endsWith(RESULT_SUFFIX));
      const queue = results.length > 0 ? await this.#opened() : undefined;
      for (const name of queue ? results : []) {
        const job = await queue?.get(name.slice(0, -RESULT_SUFFIX.length));
        // A job that runs again replaces the result of a run whose end was not noted.
        if (!job || this.#isExpired(job)) await rm(join(this.#o.directory, name), { force: true });
      }
    } catch (err) {
      if (!(err instanceof JobsUnavailable)) this.#o.log.error({ err }, 'expired results cannot be removed');
    }
    if (!this.#closed) this.#sweep = this.#o.clock.after(SWEEP_MS, () => void this.#sweepLater());
  }
}
