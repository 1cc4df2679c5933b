// Keeps jobs in Redis: one BullMQ queue for each kind and node, so that BullMQ's concurrency is the number of jobs of a kind
// that run at once. A job that has ended is kept for a week, so that its state can be read.
//
// What BullMQ does: it hands out jobs in their order, renews the lock of each that runs, records its end, and hands a job whose
// lock has expired out again. That is how a job goes on after kill -9: at most 20 seconds later. At an orderly stop, jobs go
// back to the front of their queue and go on at the next start.
//
// What is left to do here, and why:
// - `running` is what this process works on. In Redis a job is also active after its worker died, until its lock expires.
// - A job whose lock was lost, because Redis did not answer for longer than that, is handed out again while its first attempt
//   may still run: the first one is ended before, as both write the same file.
// - A job that runs has to end before BullMQ can remove it.
// - Commands have a time limit, and errors are translated: callers get an answer while Redis is away.
//
// An assembly waits for exports, which may be in this queue, too. It cannot wait for itself: its exports were accepted before it,
// here or on another node, and so each job waits only for earlier ones.

import { Queue, UnrecoverableError, WaitingError, Worker, type Job as BullJob, type RedisOptions } from 'bullmq';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import {
  JobsUnavailable,
  JOB_KEPT_MS,
  JOB_KINDS,
  type Job,
  type JobKind,
  type JobOutcome,
  type JobQueue,
  type JobRequest,
  type QueueCount,
  type Work,
} from './job.ts';
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

/** Version 0.1.0 had a queue of its own for assemblies: what is in it ends and is kept, and nothing is added. */
const QUEUE_NAMES = [...JOB_KINDS, 'case', 'assemble'] as const;
type QueueName = (typeof QUEUE_NAMES)[number];
/** Cases that are kept have a queue of their own: BullMQ removes old jobs by queue. */
const CONCURRENCY: Readonly<Record<QueueName, number>> = { export: 4, timelapse: 2, case: 1, assemble: 1 };

/** Names of queues must not contain a colon, and two nodes that share a Redis must not have the same name. */
export const queueNodeName = (nodeName: string): string =>
  /^[A-Za-z0-9.-]+$/.test(nodeName) ? nodeName : `~${Buffer.from(nodeName).toString('base64url')}`;

/** A worker that does not renew its lock for this time counts as dead. */
const LOCK_MS = 15_000;
const STALLED_CHECK_MS = 5_000;
/** A job that was interrupted more often fails: it may be what ends the recorder. */
const MAX_INTERRUPTIONS = 10;
const KEEP_ENDED = { age: JOB_KEPT_MS / 1000, count: 5_000 };
const MAX_LISTED = 1_000;
const PROGRESS_INTERVAL_MS = 500;
const COMMAND_TIMEOUT_MS = 3_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** How long an orderly stop waits for Redis. */
const STOP_TIMEOUT_MS = 3_000;

/** The request, and what is known of its failure. */
type Data = JobRequest & Pick<Job, 'reasonCode' | 'retry'>;
type Queued = BullJob<Data, JobOutcome>;
type QueueOfKind = { readonly queue: Queue<Data, JobOutcome>; readonly worker: Worker<Data, JobOutcome> };

/** This process works on a job, or Redis has not recorded its end yet. */
interface Attempt {
  readonly kind: JobKind;
  readonly cancel: AbortController;
  /** Resolves when the work is over. */
  readonly over: Promise<void>;
}

const INTERNAL = { reasonCode: 'internal-error' } as const;
const CANCELLED = new UnrecoverableError('cancelled');

export class BullQueue implements JobQueue {
  readonly #options: BullQueueOptions;
  readonly #places: Readonly<Record<QueueName, QueueOfKind>>;
  readonly #attempts = new Map<string, Attempt>();
  /** Jobs to be removed that are locked, and what to call when Redis has recorded their end. */
  readonly #unwanted = new Map<string, () => void>();
  #isStarted = false;
  #closing = false;
  /** The last problem since Redis answered. */
  #trouble: RedisTrouble | undefined;
  readonly #refused = Promise.withResolvers<false>();

  constructor(options: BullQueueOptions) {
    this.#options = options;
    const places = QUEUE_NAMES.map((name) => [name, this.#open(name)] as const);
    this.#places = Object.fromEntries(places) as Record<QueueName, QueueOfKind>;
  }

  #open(queueName: QueueName): QueueOfKind {
    const { connection, nodeName } = this.#options;
    const name = `${queueNodeName(nodeName)}_${queueName}`;
    const queue = new Queue<Data, JobOutcome>(name, {
      // Requests of clients fail soon while Redis cannot be reached; workers wait for it.
      connection: { ...connection, commandTimeout: COMMAND_TIMEOUT_MS },
      prefix: 'kube-nvr',
      defaultJobOptions: {
        attempts: 1,
        removeOnComplete: queueName !== 'case' && KEEP_ENDED,
        removeOnFail: KEEP_ENDED,
      },
    });
    const worker = new Worker<Data, JobOutcome>(name, (job, token) => this.#process(job, token), {
      connection: { ...connection, maxRetriesPerRequest: null },
      prefix: 'kube-nvr',
      concurrency: CONCURRENCY[queueName],
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_CHECK_MS,
      maxStalledCount: MAX_INTERRUPTIONS,
      autorun: false,
    });
    queue.on('error', (err) => this.#failed(err));
    worker.on('error', (err) => this.#failed(err));
    worker.on('completed', ({ id = '' }) => this.#recorded(id));
    worker.on('failed', (job) => this.#recorded(job?.id ?? ''));
    return { queue, worker };
  }

  /** Starts the workers. Rejects with JobsUnavailable when Redis does not answer. */
  async start(): Promise<void> {
    const ready = Promise.all(this.#queues.map((queue) => queue.waitUntilReady())).then(() => true);
    const late = this.#options.clock.sleep(CONNECT_TIMEOUT_MS).then(() => false);
    const isReady = Promise.race([ready, late, this.#refused.promise]).catch((err: unknown) => {
      this.#trouble = redisTrouble(err);
      return false;
    });
    if (!(await isReady)) throw this.#unavailable();
    this.#isStarted = true;
    for (const { worker } of Object.values(this.#places)) {
      worker.run().catch((err: unknown) => {
        this.#options.log.error({ reason: redisTrouble(err).message }, 'a queue of jobs has stopped');
      });
    }
  }

  async add(id: string, request: JobRequest): Promise<void> {
    const { kind, case: of } = request;
    await this.#available(this.#places[of?.isKept ? 'case' : kind].queue.add(kind, request, { jobId: id }));
  }

  async get(id: string): Promise<Job | undefined> {
    const running = new Set(this.#attempts.keys());
    const found = await this.#find(id);
    return found && toJob(found, running);
  }

  async list(): Promise<Job[]> {
    // Read before Redis is asked, so that a job which ends or starts meanwhile is listed as ended or pending.
    const running = new Set(this.#attempts.keys());
    const found = await this.#jobsIn(undefined, MAX_LISTED - 1);
    return found.map((job) => toJob(job, running)).sort((a, b) => b.createdAtMs - a.createdAtMs);
  }

  counts(): Promise<QueueCount[]> {
    const kinds = [...this.#attempts.values()].map(({ kind }) => kind);
    const counts = JOB_KINDS.map(async (queue) => {
      const names = queue === 'export' ? (['export', 'case'] as const) : [queue];
      const counts = await Promise.all(names.map((name) => this.#places[name].queue.getJobCounts('wait', 'active')));
      const sum = (state: string): number => counts.reduce((count, one) => count + (one[state] ?? 0), 0);
      const [wait, active] = [sum('wait'), sum('active')];
      const running = Math.min(active, kinds.filter((kind) => kind === queue).length);
      return { queue, waiting: wait + active - running, running };
    });
    return this.#available(Promise.all(counts));
  }

  async unfinishedOf(by: string): Promise<number> {
    return (await this.#jobsIn(['wait', 'active'])).filter(({ data }) => data.by === by).length;
  }

  async remove(id: string): Promise<boolean> {
    const found = await this.#find(id);
    if (!found) return false;
    const queue = this.#queues.find(({ name }) => name === found.queueName);
    const isRemoved = async (): Promise<boolean> => (await this.#available(queue!.remove(id))) === 1;
    if (await isRemoved()) return true;
    // It is locked: it runs here, or it ran when the process died. It is cancelled now or when it is handed out again, and
    // otherwise its lock has expired.
    const waited = new AbortController();
    const recorded = new Promise<void>((resolve) => this.#unwanted.set(id, resolve));
    this.#attempts.get(id)?.cancel.abort(CANCELLED);
    try {
      // When the lock has expired the job may be handed out just then: the second wait is for the end of that attempt.
      for (let waits = 2; waits > 0; waits--) {
        await Promise.race([recorded, this.#options.clock.sleep(LOCK_MS, waited.signal)]);
        if (await isRemoved()) return true;
      }
    } finally {
      waited.abort();
      this.#unwanted.delete(id);
    }
    throw new JobsUnavailable('the job does not end: try again');
  }

  async close(): Promise<void> {
    this.#closing = true;
    const waited = new AbortController();
    const late = this.#options.clock.sleep(STOP_TIMEOUT_MS, waited.signal).then(() => false);
    // Without Redis nothing can be recorded, and BullMQ would wait for it.
    const counted = this.counts().then(
      () => true,
      () => false,
    );
    const answers = this.#isStarted && (await Promise.race([counted, late]));
    const closed = Promise.allSettled(Object.values(this.#places).map(({ worker }) => worker.close(!answers)));
    const attempts = [...this.#attempts.values()];
    for (const { cancel } of attempts) cancel.abort(new Error('the recorder is stopping'));
    await Promise.all(attempts.map(({ over }) => over));
    await Promise.race([closed, late]);
    waited.abort();
    for (const queue of this.#queues) {
      const quit = queue.close().catch(() => {}); // it is closed all the same
      if (answers) await quit;
      // It is closed all the same.
      else queue.disconnect().catch(() => {});
    }
    await this.#options.server?.close();
  }

  get #queues(): readonly Queue<Data, JobOutcome>[] {
    return QUEUE_NAMES.map((name) => this.#places[name].queue);
  }

  async #process(job: Queued, token: string | undefined): Promise<JobOutcome> {
    const { clock, log, work } = this.#options;
    const id = job.id as string;
    for (let earlier; (earlier = this.#attempts.get(id));) {
      earlier.cancel.abort(new Error('the job runs again'));
      await earlier.over;
      if (this.#attempts.get(id) === earlier) this.#attempts.delete(id);
    }
    const cancel = new AbortController();
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    this.#attempts.set(id, { kind: job.data.kind, cancel, over });
    let toldMs = -Infinity;
    const progress = (share: number): void => {
      const nowMs = clock.monotonicMs();
      if (nowMs - toldMs < PROGRESS_INTERVAL_MS) return;
      toldMs = nowMs;
      job.updateProgress(Math.round(share * 100) / 100).catch(() => {});
    };
    const window = (fromMs: number, toMs: number): Promise<void> => job.updateData({ ...job.data, fromMs, toMs });
    try {
      if (this.#unwanted.has(id)) cancel.abort(CANCELLED);
      return await work(id, job.data, { progress, window }, cancel.signal).finally(end);
    } catch (err) {
      if (this.#closing) {
        await job.moveToWait(token);
        throw new WaitingError();
      }
      log.warn({ err, job: id, camera: job.data.cameraId }, 'a job failed');
      const failure = err instanceof JobError ? { reasonCode: err.code, retry: err.retry } : INTERNAL;
      // The job fails in any case; only its reason is missing then.
      await job.updateData({ ...job.data, ...failure }).catch(() => {});
      throw err;
    }
  }

  #recorded(id: string): void {
    this.#attempts.delete(id);
    this.#unwanted.get(id)?.();
    this.#options.ended(id);
  }

  #failed(err: unknown): void {
    this.#trouble = redisTrouble(err);
    if (this.#trouble.isLasting) this.#refused.resolve(false);
    this.#options.log.debug({ reason: this.#trouble.message }, 'the connection to redis failed');
  }

  async #find(id: string): Promise<Queued | undefined> {
    // Redis stores other data under the same prefix too.
    if (!isJobId(id)) return undefined;
    const found = await this.#available(Promise.all(this.#queues.map((queue) => queue.getJob(id))));
    return found.find((job) => job !== undefined);
  }

  async #jobsIn(states: Parameters<Queue['getJobs']>[0], last = -1): Promise<Queued[]> {
    const lists = this.#queues.map((queue) => queue.getJobs(states, 0, last));
    return (await this.#available(Promise.all(lists))).flat();
  }

  async #available<T>(command: Promise<T>): Promise<T> {
    try {
      const answer = await command;
      this.#trouble = undefined;
      return answer;
    } catch (err) {
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

function toJob(job: Queued, running: ReadonlySet<string>): Job {
  const id = job.id as string;
  const hasEnded = job.finishedOn !== undefined;
  const hasFailed = hasEnded && job.failedReason !== undefined;
  const state = hasFailed ? 'failed' : hasEnded ? 'done' : running.has(id) ? 'running' : 'pending';
  return {
    ...job.data,
    id,
    state,
    progress: state === 'done' ? 1 : typeof job.progress === 'number' ? job.progress : 0,
    createdAtMs: job.timestamp,
    completedAtMs: job.finishedOn,
    outcome: state === 'done' ? job.returnvalue : undefined,
    ...(hasFailed ? failureOf(job) : { reason: undefined, reasonCode: undefined, retry: undefined }),
  };
}

function failureOf({ data, failedReason, stalledCounter }: Queued): Pick<Job, 'reason' | 'reasonCode' | 'retry'> {
  if (stalledCounter > MAX_INTERRUPTIONS) {
    const reason = `the recorder was killed ${stalledCounter} times while it made the result`;
    return { reason, reasonCode: 'interrupted', retry: undefined };
  }
  return { reason: failedReason, reasonCode: data.reasonCode ?? INTERNAL.reasonCode, retry: data.retry };
}
