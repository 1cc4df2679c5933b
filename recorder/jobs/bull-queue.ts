// Keeps jobs in Redis: one BullMQ queue for each kind and node. A job that was running when the process died is found as
// stalled and runs again. A job that has ended is kept for a week, so that its state can be read.

import { Queue, UnrecoverableError, Worker, type Job as BullJob, type RedisOptions } from 'bullmq';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import {
  JobsUnavailable,
  JOB_KEPT_MS,
  QUEUE_NAMES,
  isAssembled,
  type Job,
  type JobKind,
  type JobOutcome,
  type JobQueue,
  type JobRequest,
  type QueueCount,
  type QueueName,
  type Work,
} from './job.ts';
import { Turns } from '../../base/turns.ts';
import { JobError } from './error.ts';
import { isJobId } from './job-id.ts';
import { redisTrouble, type RedisTrouble } from './redis-trouble.ts';

interface BullQueueOptions {
  readonly connection: RedisOptions;
  readonly nodeName: string;
  readonly work: Work;
  /** Called with the id of a job when Redis has recorded its end. */
  readonly ended: (id: string) => void;
  /** A Redis for this queue only; it is closed together with the queue. */
  readonly server: { close(): Promise<void> } | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

const CONCURRENCY: Readonly<Record<QueueName, number>> = { export: 4, timelapse: 2, assemble: 2 };
/** Limit over all queues: an assembly also counts as an export or a time-lapse. */
const AT_ONCE: Readonly<Record<JobKind, number>> = { export: 4, timelapse: 2 };

/** Names of queues must not contain a colon, and two nodes that share a Redis must not have the same name. */
export const queueNodeName = (nodeName: string): string =>
  /^[A-Za-z0-9.-]+$/.test(nodeName) ? nodeName : `~${Buffer.from(nodeName).toString('base64url')}`;

const queueNameOf = (request: JobRequest): QueueName => (isAssembled(request) ? 'assemble' : request.kind);

/** A worker that does not renew its lock for this time counts as dead. */
const LOCK_MS = 15_000;
const STALLED_CHECK_MS = 5_000;
/** No limit: a job may be interrupted any number of times. */
const MAX_STALLED = 1_000_000;
const KEEP_ENDED = { age: JOB_KEPT_MS / 1000, count: 5_000 };
const MAX_LISTED = 1_000;
/** BullMQ's token of a caller that does not hold the lock of the job. */
const NO_LOCK = '0';
const PROGRESS_INTERVAL_MS = 500;
const COMMAND_TIMEOUT_MS = 3_000;
const CONNECT_TIMEOUT_MS = 5_000;

/** The request, and what is known of its failure. */
type Data = JobRequest & Pick<Job, 'reasonCode' | 'retry'>;
type Queued = BullJob<Data, JobOutcome>;

const INTERNAL = { reasonCode: 'internal-error' } as const;

export class BullQueue implements JobQueue {
  readonly #o: BullQueueOptions;
  readonly #queues: Readonly<Record<QueueName, Queue<Data, JobOutcome>>>;
  readonly #workers: readonly Worker<Data, JobOutcome>[];
  readonly #running = new Map<string, { readonly cancel: AbortController; readonly ended: Promise<void> }>();
  readonly #turns = { export: new Turns(AT_ONCE.export), timelapse: new Turns(AT_ONCE.timelapse) };
  /** Jobs that are running, until Redis has recorded their end; `noted` is called then. */
  readonly #atWork = new Map<string, { readonly queue: QueueName; readonly noted: () => void }>();
  readonly #closed = new AbortController();
  #closing = false;
  /** The last problem since Redis answered. */
  #trouble: RedisTrouble | undefined;
  readonly #refused: Promise<false>;

  constructor(options: BullQueueOptions) {
    this.#o = options;
    let refuse = (): void => {};
    this.#refused = new Promise((resolve) => (refuse = () => resolve(false)));
    const reportTrouble = (err: unknown): void => {
      this.#trouble = redisTrouble(err);
      if (this.#trouble.isLasting) refuse();
      options.log.debug({ reason: this.#trouble.message }, 'the connection to redis failed');
    };
    const nameOf = (kind: QueueName): string => `${queueNodeName(options.nodeName)}_${kind}`;
    // Requests of clients fail soon while Redis cannot be reached; workers wait for it.
    const asking = { ...options.connection, commandTimeout: COMMAND_TIMEOUT_MS };
    const working = { ...options.connection, maxRetriesPerRequest: null };
    const queueOf = (kind: QueueName): Queue<Data, JobOutcome> => {
      const queue = new Queue<Data, JobOutcome>(nameOf(kind), {
        connection: asking,
        prefix: 'kube-nvr',
        defaultJobOptions: { attempts: 1, removeOnComplete: KEEP_ENDED, removeOnFail: KEEP_ENDED },
      });
      queue.on('error', reportTrouble);
      return queue;
    };
    this.#queues = { export: queueOf('export'), timelapse: queueOf('timelapse'), assemble: queueOf('assemble') };
    this.#workers = QUEUE_NAMES.map((kind) => {
      const worker = new Worker<Data, JobOutcome>(nameOf(kind), (job) => this.#process(job), {
        connection: working,
        prefix: 'kube-nvr',
        concurrency: CONCURRENCY[kind],
        lockDuration: LOCK_MS,
        stalledInterval: STALLED_CHECK_MS,
        maxStalledCount: MAX_STALLED,
        autorun: false,
      });
      worker.on('error', reportTrouble);
      const noted = (id: string): void => {
        this.#atWork.get(id)?.noted();
        options.ended(id);
      };
      worker.on('completed', ({ id = '' }) => noted(id));
      worker.on('failed', (job) => noted(job?.id ?? ''));
      return worker;
    });
  }

  /** Starts the workers, first with the jobs of the previous process. Throws JobsUnavailable when Redis does not answer. */
  async start(): Promise<void> {
    const ready = Promise.all(QUEUE_NAMES.map((name) => this.#queues[name].waitUntilReady())).then(() => true);
    ready.catch(() => {});
    const late = this.#o.clock.sleep(CONNECT_TIMEOUT_MS).then(() => false);
    const isReady = Promise.race([ready, late, this.#refused]).catch((err: unknown) => {
      this.#trouble = redisTrouble(err);
      return false;
    });
    if (!(await isReady)) throw this.#unavailable();
    // No other process works for this node: jobs that are still active were interrupted, and need not wait for their lock
    // to expire.
    for (const name of QUEUE_NAMES) {
      for (const job of await this.#available(this.#queues[name].getActive())) {
        await job?.moveToWait(NO_LOCK).catch(() => {}); // otherwise it is found as stalled within seconds
      }
    }
    for (const worker of this.#workers) {
      worker.run().catch((err: unknown) => {
        this.#o.log.error({ reason: redisTrouble(err).message }, 'a queue of jobs has stopped');
      });
    }
  }

  async add(id: string, request: JobRequest): Promise<void> {
    const name = queueNameOf(request);
    await this.#available(this.#queues[name].add(name, request, { jobId: id }));
  }

  async get(id: string): Promise<Job | undefined> {
    const atWork = new Set(this.#atWork.keys());
    const found = await this.#find(id);
    return found && toJob(found, atWork);
  }

  async list(): Promise<Job[]> {
    // Read before Redis is asked, so that a job which ends or starts meanwhile is listed as ended or pending.
    const atWork = new Set(this.#atWork.keys());
    const lists = QUEUE_NAMES.map((kind) => this.#queues[kind].getJobs(undefined, 0, MAX_LISTED - 1));
    const found = (await this.#available(Promise.all(lists))).flat();
    const jobs = found.filter((job) => job !== undefined).map((job) => toJob(job, atWork));
    return jobs.sort((a, b) => b.createdAtMs - a.createdAtMs);
  }

  async counts(): Promise<QueueCount[]> {
    const atWork = [...this.#atWork.values()];
    const counts = QUEUE_NAMES.map(async (queue) => {
      const { wait = 0, active = 0 } = await this.#queues[queue].getJobCounts('wait', 'active');
      const running = atWork.filter((job) => job.queue === queue).length;
      return { queue, waiting: Math.max(0, wait + active - running), running };
    });
    return this.#available(Promise.all(counts));
  }

  async unfinishedOf(by: string): Promise<number> {
    const lists = QUEUE_NAMES.map((kind) => this.#queues[kind].getJobs(['wait', 'active']));
    const found = (await this.#available(Promise.all(lists))).flat();
    return found.filter((job) => job?.data.by === by).length;
  }

  async remove(id: string): Promise<boolean> {
    const found = await this.#find(id);
    if (!found) return false;
    const running = this.#running.get(id);
    running?.cancel.abort(new UnrecoverableError('cancelled'));
    await running?.ended;
    // BullMQ records the end of a job after its worker has returned.
    for (let tries = 0; ; tries++) {
      try {
        await this.#available(found.remove());
        return true;
      } catch (err) {
        if (err instanceof JobsUnavailable || tries === 20) throw err;
        await this.#o.clock.sleep(50);
      }
    }
  }

  async close(): Promise<void> {
    this.#closing = true;
    for (const { cancel } of this.#running.values()) cancel.abort(new Error('the recorder is stopping'));
    // Forced: cancelled jobs are not reported as failed, and run again after the next start.
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
    await Promise.allSettled(this.#workers.map((worker) => worker.close(true)));
    await Promise.allSettled(QUEUE_NAMES.map((kind) => this.#queues[kind].close()));
    this.#closed.abort();
    await this.#o.server?.close();
  }

  async #process(job: Queued): Promise<JobOutcome> {
    const id = job.id as string;
    const cancel = new AbortController();
    let end = (): void => {};
    // If Redis was unreachable for longer than a lock lasts, it hands the job out again.
    for (let earlier; (earlier = this.#running.get(id));) {
      earlier.cancel.abort(new Error('the job runs again'));
      await earlier.ended;
      this.#atWork.get(id)?.noted();
    }
    this.#running.set(id, { cancel, ended: new Promise((resolve) => (end = resolve)) });
    let toldMs = -Infinity;
    const progress = (share: number): void => {
      const nowMs = this.#o.clock.monotonicMs();
      if (nowMs - toldMs < PROGRESS_INTERVAL_MS) return;
      toldMs = nowMs;
      job.updateProgress(Math.round(share * 100) / 100).catch(() => {});
    };
    const window = (fromMs: number, toMs: number): Promise<void> => job.updateData({ ...job.data, fromMs, toMs });
    let hasTurn = false;
    try {
      await this.#turn(id, job.data, cancel.signal);
      hasTurn = true;
      return await this.#o.work(id, job.data, { progress, window }, cancel.signal);
    } catch (err) {
      if (this.#closing) {
        end();
        // A promise that never settles keeps the job active: the next start continues it.
        return await new Promise<never>(() => {});
      }
      this.#o.log.warn({ err, job: id, camera: job.data.cameraId }, 'a job failed');
      const failure = err instanceof JobError ? { reasonCode: err.code, retry: err.retry } : INTERNAL;
      await job.updateData({ ...job.data, ...failure }).catch(() => {});
      throw err;
    } finally {
      end();
      this.#running.delete(id);
      // If Redis cannot be reached, it never records the end of the job.
      const place = hasTurn ? this.#atWork.get(id) : undefined;
      if (place) void this.#o.clock.sleep(LOCK_MS, this.#closed.signal).then(place.noted);
    }
  }

  /** Resolves when it is the turn of the job, which lasts until Redis has recorded its end. */
  #turn(id: string, request: JobRequest, signal: AbortSignal): Promise<void> {
    return new Promise((begin, giveUp) => {
      const hold = (): Promise<void> =>
        new Promise((resolve) => {
          const noted = (): void => {
            if (this.#atWork.get(id) === place) this.#atWork.delete(id);
            resolve();
          };
          const place = { queue: queueNameOf(request), noted };
          this.#atWork.set(id, place);
          begin();
        });
      this.#turns[request.kind].take(hold, signal).catch(giveUp);
    });
  }

  async #find(id: string): Promise<Queued | undefined> {
    // Redis stores other data under the same prefix too.
    if (!isJobId(id)) return undefined;
    for (const kind of QUEUE_NAMES) {
      const job = await this.#available(this.#queues[kind].getJob(id));
      if (job) return job;
    }
    return undefined;
  }

  async #available<T>(command: Promise<T>): Promise<T> {
    try {
      const answer = await command;
      this.#trouble = undefined;
      return answer;
    } catch (err) {
      if (err instanceof Error && /could not be removed|locked/.test(err.message)) throw err;
      // An error of the connection says more than the timeout of a command.
      const trouble = redisTrouble(err);
      if (trouble.isLasting || !this.#trouble) this.#trouble = trouble;
      throw this.#unavailable();
    }
  }

  #unavailable(): JobsUnavailable {
    return new JobsUnavailable(this.#trouble?.message ?? 'redis does not answer');
  }
}

function toJob(job: Queued, atWork: ReadonlySet<string>): Job {
  const id = job.id as string;
  const hasEnded = job.finishedOn !== undefined;
  const hasFailed = hasEnded && job.failedReason !== undefined;
  const state = hasFailed ? 'failed' : hasEnded ? 'done' : atWork.has(id) ? 'running' : 'pending';
  return {
    ...job.data,
    id,
    state,
    progress: state === 'done' ? 1 : typeof job.progress === 'number' ? job.progress : 0,
    createdAtMs: job.timestamp,
    completedAtMs: job.finishedOn,
    outcome: state === 'done' ? job.returnvalue : undefined,
    reason: hasFailed ? job.failedReason : undefined,
    reasonCode: hasFailed ? (job.data.reasonCode ?? INTERNAL.reasonCode) : undefined,
    retry: hasFailed ? job.data.retry : undefined,
  };
}
