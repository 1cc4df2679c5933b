// The jobs of one node: takes requests, has the work done, hands out results, and removes them after an hour, but for cases that are kept.

import { Registry } from 'prom-client';
import type { Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Warning } from '../../base/reason.ts';
import { newJobId } from './job-id.ts';
import { FfmpegCheck } from './ffmpeg.ts';
import {
  JOB_KEPT_MS,
  JOB_KINDS,
  JobsUnavailable,
  TooManyJobs,
  type Job,
  type JobObserver,
  type JobOutcome,
  type JobQueue,
  type JobReport,
  type JobRequest,
  type QueueCount,
  type Work,
} from './job.ts';
import { JobMaker, type MakerOptions } from './job-maker.ts';
import { JobNews } from './job-news.ts';
import { memberAt } from './members.ts';
import { JobMetrics } from './metrics.ts';
import { resultName } from './movie-name.ts';
import { SigningKey, type NodeKey } from './node-key.ts';
import { QueueAccess } from './queue-access.ts';
import { Results } from './results.ts';
import { SharedWork } from './shared-work.ts';

export interface JobsOptions extends MakerOptions {
  /** The directory of results. */
  readonly directory: string;
  /** The directory of the key that signs manifests; created when it is missing. */
  readonly keyDirectory: string;
  readonly log: Log;
  /** Whether there may be jobs of an earlier process. If not, nothing is started until the first request. */
  readonly mayHaveJobs: () => Promise<boolean>;
  /** Rejects with JobsUnavailable, and is called again after a failure. */
  readonly openQueue: (work: Work, ended: (id: string) => void) => Promise<JobQueue>;
  /** Is called for every change of a job. */
  readonly observer?: JobObserver;
  readonly registry?: Registry;
}

/** Maximum number of jobs of one token that wait or run: others have to wait for them. */
const MAX_UNFINISHED_OF_ONE = 100;
/** A request for this id shows whether Redis answers. */
const NO_JOB = 'none';
const SWEEP_MS = 60_000;
/** How long a scrape waits for Redis. */
const COUNT_TIMEOUT_MS = 500;

export class Jobs {
  readonly #options: JobsOptions;
  readonly #key: SigningKey;
  readonly #ffmpeg: FfmpegCheck;
  readonly #results: Results;
  readonly #queue: QueueAccess;
  readonly #news: JobNews;
  readonly #maker: JobMaker;
  readonly #shared: SharedWork;
  readonly #metrics: JobMetrics;
  /** Number of jobs that are being added, by name of the token. */
  readonly #coming = new Map<string, number>();
  /** `Authorization` of the callers of assemblies that have not ended. In memory only: after a restart, an assembly fails without it. */
  readonly #credentials = new Map<string, string>();
  #timer: Timer | undefined;
  #closed = false;
  #running = 0;
  /** When a job last made progress, or there was no job. */
  #progressMs: number;

  constructor(options: JobsOptions) {
    const { directory, keyDirectory, ffmpegPath, clock, log, registry = new Registry(), observer } = options;
    this.#options = options;
    this.#key = new SigningKey(keyDirectory, log);
    this.#ffmpeg = new FfmpegCheck(ffmpegPath, clock);
    this.#results = new Results(directory, () => clock.wallMs());
    this.#news = new JobNews(observer ?? (() => {}), clock);
    this.#queue = new QueueAccess(
      () =>
        options.openQueue(
          (...job) => this.#work(...job),
          (id) => void this.#news.ended(id, (id) => this.get(id)),
        ),
      log,
    );
    this.#maker = new JobMaker(options, { results: this.#results, key: this.#key, ffmpeg: this.#ffmpeg });
    this.#shared = new SharedWork({
      results: this.#results,
      jobs: () => this.list(),
      wallMs: () => clock.wallMs(),
    });
    this.#progressMs = clock.monotonicMs();
    this.#metrics = new JobMetrics(registry, {
      isAvailable: () => this.#queue.trouble === undefined && !this.#ffmpeg.isMissing,
      counts: () => this.#counts(),
      progressAgeMs: () => clock.monotonicMs() - this.#progressMs,
    });
  }

  /** Removes leftovers of a crash, and continues interrupted jobs. Never throws. */
  async start(): Promise<void> {
    const { log, mayHaveJobs } = this.#options;
    await this.signingKey().catch(() => {}); // the failure is shown as a warning
    try {
      await this.#results.open();
      if (await mayHaveJobs()) await this.get(NO_JOB);
    } catch (err) {
      if (!(err instanceof JobsUnavailable)) log.error({ err }, 'the directory of job results cannot be used');
    }
    await this.#sweep();
  }

  /**
   * Problems that prevent jobs, at most a minute old. If ffmpeg is removed later, that is noticed within a quarter of an
   * hour.
   */
  warnings(): Warning[] {
    const warnings: Warning[] = [];
    if (this.#ffmpeg.isMissing) {
      const message = `ffmpeg is not installed (${this.#options.ffmpegPath}): exports and time-lapses are refused`;
      warnings.push({ code: 'ffmpeg-missing', message, cameraId: undefined });
    }
    if (this.#queue.trouble !== undefined) {
      const message = `exports and time-lapses are refused: ${this.#queue.trouble}`;
      warnings.push({ code: 'jobs-unavailable', message, cameraId: undefined });
    }
    if (this.#key.trouble !== undefined) {
      const message = `exports and time-lapses fail: the key that they are signed with cannot be used: ${this.#key.trouble}`;
      warnings.push({ code: 'signing-key-unusable', message, cameraId: undefined });
    }
    return warnings;
  }

  /** The key that signs manifests. After a failure, the next call tries again. Rejects with NodeKeyError. */
  signingKey(): Promise<NodeKey> {
    return this.#key.get();
  }

  /** Whether ffmpeg is installed, which exports and time-lapses need. */
  ffmpegIsThere(): Promise<boolean> {
    return this.#ffmpeg.seemsThere();
  }

  /** Whether the address belongs to a member of the cluster, from which this node may fetch. */
  isMember(address: string): boolean {
    const { peers } = this.#options;
    return peers !== undefined && memberAt(peers.members(), address, peers.scheme) !== undefined;
  }

  /** `credential`: of the caller of an assembly, for the other nodes. Rejects with JobsUnavailable. */
  async submit(request: JobRequest, credential?: string): Promise<Job> {
    const { by } = request;
    if (by === undefined) return this.#queue.ask((queue) => this.#submit(queue, request, credential));
    // Jobs that are being added count too: otherwise, many simultaneous requests would all pass the limit.
    const coming = (this.#coming.get(by) ?? 0) + 1;
    this.#coming.set(by, coming);
    try {
      return await this.#queue.ask(async (queue) => {
        if ((await queue.unfinishedOf(by)) + coming > MAX_UNFINISHED_OF_ONE) {
          throw new TooManyJobs(
            `${MAX_UNFINISHED_OF_ONE} jobs of ${by} wait or run: request more when some of them have ended`,
          );
        }
        return this.#submit(queue, request, credential);
      });
    } finally {
      const left = (this.#coming.get(by) ?? 1) - 1;
      if (left > 0) this.#coming.set(by, left);
      else this.#coming.delete(by);
    }
  }

  async #submit(queue: JobQueue, request: JobRequest, credential: string | undefined): Promise<Job> {
    const id = newJobId(request);
    if (credential !== undefined) this.#credentials.set(id, credential);
    if (this.#running === 0) this.#progressed();
    this.#news.accepted(id);
    try {
      await queue.add(id, request);
    } catch (err) {
      this.#news.withdrawn(id);
      this.#credentials.delete(id);
      throw err;
    }
    const job = await queue.get(id);
    if (!job) throw new JobsUnavailable('redis lost the job');
    this.#news.queued(id, request);
    return job;
  }

  async get(id: string): Promise<Job | undefined> {
    const job = await this.#queue.ask((queue) => queue.get(id));
    return job && this.#isKnown(job) ? job : undefined;
  }

  /** Newest first. */
  async list(): Promise<Job[]> {
    return (await this.#queue.ask((queue) => queue.list())).filter((job) => this.#isKnown(job));
  }

  /** False for an unknown id. */
  async remove(id: string): Promise<boolean> {
    const job = await this.#queue.ask((queue) => queue.get(id));
    if (!job) return false;
    const isRemoved = await this.#news.removed(job, () => this.#queue.ask((queue) => queue.remove(id)));
    if (isRemoved) {
      this.#credentials.delete(id);
      await this.#results.remove(id);
    }
    return isRemoved;
  }

  /** Throws JobError. */
  estimate(request: JobRequest): Promise<JobOutcome> {
    return this.#maker.estimate(request);
  }

  /** The file name under which a browser saves the result. */
  fileName(job: Job): string {
    return resultName(job, this.#options.local);
  }

  /** The file of a job that is done; undefined when it has expired. */
  result(job: Job): ReturnType<Results['result']> {
    return this.#results.result(job);
  }

  /** The manifest of a job that is done; undefined when it has expired. */
  manifest(job: Job): ReturnType<Results['manifest']> {
    return this.#results.manifest(job);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#queue.close();
  }

  /** Redis removes old jobs from time to time only. */
  #isKnown({ completedAtMs = Infinity, case: of }: Job): boolean {
    return of?.isKept || this.#options.clock.wallMs() - completedAtMs < JOB_KEPT_MS;
  }

  #progressed(): void {
    this.#progressMs = this.#options.clock.monotonicMs();
  }

  /** For metrics: does not start Redis, and does not wait for long; a late answer is used by the next scrape. */
  async #counts(): Promise<readonly QueueCount[] | undefined> {
    const answered = new AbortController();
    const late = this.#options.clock.sleep(COUNT_TIMEOUT_MS, answered.signal).then(() => undefined);
    const none = JOB_KINDS.map((queue) => ({ queue, waiting: 0, running: 0 }));
    const counts = this.#queue.isOpen
      ? // Without Redis, the metric is absent.
        await Promise.race([this.#queue.ask((queue) => queue.counts()).catch(() => undefined), late])
      : none;
    answered.abort();
    if (counts?.every(({ waiting, running }) => waiting + running === 0)) this.#progressed();
    return counts;
  }

  async #work(id: string, request: JobRequest, report: JobReport, signal: AbortSignal): Promise<JobOutcome> {
    const tell = this.#news.begun(id, request);
    const progress = (share: number): void => {
      this.#progressed();
      report.progress(share);
      tell(share);
    };
    this.#running++;
    this.#progressed();
    try {
      const credential = this.#credentials.get(id);
      const making = { id, request, credential, report: { ...report, progress }, signal };
      const outcome = await this.#shared.once(id, request, () => this.#maker.make(making), signal);
      this.#metrics.finished(request.kind, 'done');
      return outcome;
    } catch (err) {
      // A job that was cancelled or continues after a restart has not failed.
      if (!signal.aborted) this.#metrics.finished(request.kind, 'failed');
      throw err;
    } finally {
      this.#running--;
      if (!signal.aborted) this.#credentials.delete(id);
      this.#progressed();
    }
  }

  async #sweepAgain(): Promise<void> {
    // For the warnings: they show whether Redis answers before the next request for a job.
    if (this.#queue.isOpen || this.#queue.trouble !== undefined) await this.get(NO_JOB).catch(() => {}); // the failure is shown as a warning
    await this.#sweep();
  }

  /** Removes results an hour after their jobs ended, and results without a job. */
  async #sweep(): Promise<void> {
    const { clock, log } = this.#options;
    if (this.#closed) return;
    await this.#ffmpeg.look();
    try {
      await this.#results.sweep((id) => this.get(id));
    } catch (err) {
      if (!(err instanceof JobsUnavailable)) log.error({ err }, 'expired results cannot be removed');
    }
    if (!this.#closed) this.#timer = clock.after(SWEEP_MS, () => void this.#sweepAgain());
  }
}
