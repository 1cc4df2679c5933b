// The jobs of one node: takes requests, does the work, hands out results, and removes them after an hour.

import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { assemble } from './assemble.ts';
import { JobError } from './error.ts';
import { TEMPORARY_SUFFIX, estimateExport, exportWindow, temporaryName } from './export.ts';
import type { JobArchive, PlannerDeps } from './export-plan.ts';
import { FfmpegCheck, makeTimelapse } from './ffmpeg.ts';
import {
  JobsUnavailable,
  QUEUE_NAMES,
  type Job,
  type JobOutcome,
  type JobQueue,
  type JobReport,
  type JobRequest,
  type QueueCount,
  type Work,
} from './job.ts';
import { memberAt } from './members.ts';
import { JobMetrics } from './metrics.ts';
import { PEER_LIMITS, type PeerLimits } from './peer-part.ts';
import type { PeerAccess } from './peer-request.ts';
import { Turns } from './turns.ts';

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
  /** Other recorders, for assemblies; without it, there are none. */
  readonly peers?: Omit<PeerAccess, 'silenceMs'>;
  readonly peerLimits?: PeerLimits;
  readonly knownGaps?: PlannerDeps['knownGaps'];
  readonly registry?: Registry;
}

/** Asking for it shows whether jobs can be had. */
const NO_JOB = 'none';
/** As many pictures are encoded at once, whatever the time-lapses are made from. */
const CONCURRENT_ENCODERS = 2;

/** How long a result can be fetched. */
export const RESULT_KEPT_MS = 3_600_000;
const SWEEP_MS = 60_000;
const FFMPEG_FOUND_FOR_MS = 15 * 60_000;
/** A scrape does not wait for a Redis that is away. */
const COUNT_TIMEOUT_MS = 500;
const RESULT_SUFFIX = '.mp4';
/** Directories with the parts of an assembly; they outlive a restart as long as their job does. */
const PARTS_SUFFIX = '.parts';

export class Jobs {
  readonly #o: JobsOptions;
  readonly #ffmpeg: FfmpegCheck;
  readonly #encoders = new Turns(CONCURRENT_ENCODERS);
  /** `Authorization` of those who asked for assemblies that have not ended. In memory only. */
  readonly #credentials = new Map<string, string>();
  #queue: Promise<JobQueue> | undefined;
  #timer: Timer | undefined;
  #closed = false;
  #ffmpegMissing = false;
  #ffmpegFoundMs = -Infinity;
  /** Why jobs cannot be had now. */
  #trouble: string | undefined;
  readonly #metrics: JobMetrics;
  #running = 0;
  /** When a job last got on, or there was none. */
  #progressMs: number;

  constructor(options: JobsOptions) {
    this.#o = options;
    const { ffmpegPath, clock, registry = new Registry() } = options;
    this.#ffmpeg = new FfmpegCheck(ffmpegPath, clock);
    this.#progressMs = clock.monotonicMs();
    this.#metrics = new JobMetrics(registry, {
      isAvailable: () => this.#trouble === undefined && !this.#ffmpegMissing,
      counts: () => this.#counts(),
      progressAgeMs: () => clock.monotonicMs() - this.#progressMs,
    });
  }

  /** Removes what a crash left, and goes on with jobs that were interrupted. Never throws. */
  async start(): Promise<void> {
    const { directory, log } = this.#o;
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      for (const name of await readdir(directory, { recursive: true })) {
        if (name.endsWith(TEMPORARY_SUFFIX)) await rm(join(directory, name), { force: true });
      }
      if (await this.#o.mayHaveJobs()) await this.#asked((queue) => queue.get(NO_JOB));
    } catch (err) {
      if (!(err instanceof JobsUnavailable)) log.error({ err }, 'the directory of results cannot be used');
    }
    await this.#sweep();
  }

  /** What keeps people from asking for jobs, as of the last minute; that ffmpeg was removed, as of the last quarter of an hour. */
  warnings(): { code: string; message: string; cameraId: undefined }[] {
    const warnings: { code: string; message: string; cameraId: undefined }[] = [];
    if (this.#ffmpegMissing) {
      const message = `ffmpeg is not installed (${this.#o.ffmpegPath}): exports and time-lapses are refused`;
      warnings.push({ code: 'ffmpeg-missing', message, cameraId: undefined });
    }
    if (this.#trouble !== undefined) {
      const message = `exports and time-lapses are refused: ${this.#trouble}`;
      warnings.push({ code: 'jobs-unavailable', message, cameraId: undefined });
    }
    return warnings;
  }

  /** Whether exports and time-lapses can be asked for. */
  ffmpegIsThere(): Promise<boolean> {
    return this.#ffmpeg.isThere();
  }

  /** Whether this node may fetch from an address. */
  isMember(address: string): boolean {
    const { peers } = this.#o;
    return peers !== undefined && memberAt(peers.members(), address, peers.scheme) !== undefined;
  }

  /**
   * Two who ask for the same window of the past share one job. `credential`: the `Authorization` that an assembly's peers
   * are asked with. Throws JobsUnavailable.
   */
  async submit(request: JobRequest, credential?: string): Promise<Job> {
    return this.#asked((queue) => this.#submit(queue, request, credential));
  }

  async #submit(queue: JobQueue, request: JobRequest, credential: string | undefined): Promise<Job> {
    const same = request.assembly ? undefined : (await queue.list()).find((job) => this.#isSame(job, request));
    if (same) return same;
    const id = `${request.assembly ? 'a' : request.kind[0]}${randomBytes(12).toString('hex')}`;
    if (credential !== undefined) this.#credentials.set(id, credential);
    if (this.#running === 0) this.#progressed();
    try {
      await queue.add(id, request);
    } catch (err) {
      this.#credentials.delete(id);
      throw err;
    }
    const job = await queue.get(id);
    if (!job) throw new JobsUnavailable('redis lost the job');
    return job;
  }

  async get(id: string): Promise<Job | undefined> {
    return this.#asked((queue) => queue.get(id));
  }

  /** Newest first. */
  async list(): Promise<Job[]> {
    return this.#asked((queue) => queue.list());
  }

  /** False for an unknown one. */
  async remove(id: string): Promise<boolean> {
    const removed = await this.#asked((queue) => queue.remove(id));
    if (removed) {
      this.#credentials.delete(id);
      await rm(this.#resultPath(id), { force: true });
      await rm(this.#partsPath(id), { recursive: true, force: true });
    }
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
    this.#timer?.cancel();
    await (await this.#queue?.catch(() => undefined))?.close();
  }

  /** Notes and logs once when jobs cannot be had, and when they can again. Throws JobsUnavailable. */
  async #asked<T>(ask: (queue: JobQueue) => Promise<T>): Promise<T> {
    try {
      const answer = await ask(await this.#opened());
      if (this.#trouble !== undefined) this.#o.log.info({}, 'jobs are available again');
      this.#trouble = undefined;
      return answer;
    } catch (err) {
      if (err instanceof JobsUnavailable && !this.#closed) {
        if (this.#trouble !== err.message) this.#o.log.warn({ reason: err.message }, 'jobs are not available');
        this.#trouble = err.message;
      }
      throw err;
    }
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
      job.assembly === undefined &&
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

  #progressed(): void {
    this.#progressMs = this.#o.clock.monotonicMs();
  }

  /** For metrics: starts nothing, and does not wait long; what it hears late is known at the next scrape. */
  async #counts(): Promise<readonly QueueCount[] | undefined> {
    const answered = new AbortController();
    const late = this.#o.clock.sleep(COUNT_TIMEOUT_MS, answered.signal).then(() => undefined);
    const asked = this.#queue && this.#asked((queue) => queue.counts()).catch(() => undefined);
    const counts = asked
      ? await Promise.race([asked, late])
      : QUEUE_NAMES.map((queue) => ({ queue, waiting: 0, running: 0 }));
    answered.abort();
    if (counts?.every(({ waiting, running }) => waiting + running === 0)) this.#progressed();
    return counts;
  }

  async #work(id: string, request: JobRequest, report: JobReport, signal: AbortSignal): Promise<JobOutcome> {
    const progress = (share: number): void => {
      this.#progressed();
      report.progress(share);
    };
    this.#running++;
    this.#progressed();
    try {
      const outcome = await this.#make(id, request, { ...report, progress }, signal);
      this.#metrics.finished(request.kind, 'done');
      return outcome;
    } catch (err) {
      // One that was cancelled, or goes on after a restart, has not failed.
      if (!signal.aborted) this.#metrics.finished(request.kind, 'failed');
      throw err;
    } finally {
      this.#running--;
      this.#progressed();
    }
  }

  async #make(id: string, request: JobRequest, report: JobReport, signal: AbortSignal): Promise<JobOutcome> {
    const path = this.#resultPath(id);
    if (request.kind === 'export') return this.#copy(id, request, path, report, signal);
    const { speed = 2 } = request;
    if (!(await this.#ffmpeg.isThere())) {
      throw new JobError('ffmpeg-missing', `ffmpeg is not installed: ${this.#o.ffmpegPath}`);
    }
    // Both names go with the next start, should this process die. The encoder may live on then, and opens its output by
    // name once more at its end: what the next attempt writes must have another.
    const attempt = `${path}.${randomBytes(4).toString('hex')}`;
    const source = `${attempt}.source${TEMPORARY_SUFFIX}`;
    const output = temporaryName(attempt);
    const copyShare = request.assembly ? 0.5 : 0.1;
    try {
      const copied = { ...report, progress: (share: number): void => report.progress(share * copyShare) };
      const { durationMs, gaps } = await this.#copy(id, request, source, copied, signal);
      const progress = (share: number): void => report.progress(copyShare + share * (1 - copyShare));
      const { ffmpegPath: program, room, clock } = this.#o;
      const run = { program, input: source, output, speed, durationMs, progress, room, clock };
      await this.#encoders.take(() => makeTimelapse(run, signal), signal);
      await rename(output, path);
      return { sizeBytes: (await stat(path)).size, durationMs: durationMs / speed, gaps };
    } finally {
      await Promise.all([source, output].map((left) => rm(left, { force: true })));
    }
  }

  /** The footage of a job as one movie. */
  async #copy(
    id: string,
    request: JobRequest,
    path: string,
    report: JobReport,
    signal: AbortSignal,
  ): Promise<JobOutcome> {
    const { room, peers, peerLimits: limits = PEER_LIMITS, clock, version } = this.#o;
    if (!request.assembly) {
      const deps = { ...this.#plannerDeps(), room, progress: report.progress };
      return exportWindow({ ...request, lapseSpeed: request.speed }, path, deps, signal);
    }
    const access = { members: () => [], scheme: 'http' as const, ...peers, silenceMs: limits.silenceMs };
    const parts = this.#partsPath(id);
    const deps = { access, limits, clock, room, version, report };
    try {
      return await assemble(request, this.#credentials.get(id), parts, path, deps, signal);
    } finally {
      // After a stop the job goes on with the parts that are here.
      if (!signal.aborted) {
        this.#credentials.delete(id);
        await rm(parts, { recursive: true, force: true });
      }
    }
  }

  #plannerDeps(): PlannerDeps {
    const { recordPath, archive, clock, version, knownGaps } = this.#o;
    return { recordPath, archive, version, wallMs: () => clock.wallMs(), ...(knownGaps ? { knownGaps } : {}) };
  }

  #resultPath(id: string): string {
    return join(this.#o.directory, `${id}${RESULT_SUFFIX}`);
  }

  #partsPath(id: string): string {
    return join(this.#o.directory, `${id}${PARTS_SUFFIX}`);
  }

  async #sweepAgain(): Promise<void> {
    // For the sake of the warnings: whether Redis is there is known before anyone asks for a job.
    if (this.#queue || this.#trouble !== undefined) await this.get(NO_JOB).catch(() => {});
    await this.#sweep();
  }

  /** For the warnings. What was there is seldom removed, and to start it costs as much as recording for a second. */
  async #lookForFfmpeg(): Promise<void> {
    const nowMs = this.#o.clock.monotonicMs();
    if (nowMs < this.#ffmpegFoundMs + FFMPEG_FOUND_FOR_MS) return;
    this.#ffmpegMissing = !(await this.#ffmpeg.isThere());
    if (!this.#ffmpegMissing) this.#ffmpegFoundMs = nowMs;
  }

  /** Removes results an hour after their jobs ended, and those that no job knows. */
  async #sweep(): Promise<void> {
    if (this.#closed) return;
    await this.#lookForFfmpeg();
    try {
      const names = (await readdir(this.#o.directory)).filter((name) => /\.(?:mp4|parts)$/.test(name));
      for (const name of names) {
        const job = await this.get(name.slice(0, name.lastIndexOf('.')));
        // A job that runs again replaces the result of a run whose end was not noted.
        const wanted = name.endsWith(RESULT_SUFFIX)
          ? job && !this.#isExpired(job)
          : job && job.completedAtMs === undefined;
        if (!wanted) await rm(join(this.#o.directory, name), { recursive: true, force: true });
      }
    } catch (err) {
      if (!(err instanceof JobsUnavailable)) this.#o.log.error({ err }, 'expired results cannot be removed');
    }
    if (!this.#closed) this.#timer = this.#o.clock.after(SWEEP_MS, () => void this.#sweepAgain());
  }
}
