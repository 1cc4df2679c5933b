// Tells an observer how jobs change: `queued` is the first change of a job, and its end is told when Redis has recorded it, so
// that a client which then reads the job sees its end.

import type { Clock } from '../../base/clock.ts';
import type { Job, JobObserver, JobRequest } from './job.ts';

/** Between two changes of the progress of one job. */
const INTERVAL_MS = 1_000;

export class JobNews {
  readonly #observer: JobObserver;
  readonly #clock: Clock;
  /** Jobs that were accepted, and whose `queued` was not told yet. */
  readonly #untold = new Set<string>();
  /** Jobs that are being removed: their failure is not told. */
  readonly #leaving = new Set<string>();

  constructor(observer: JobObserver, clock: Clock) {
    this.#observer = observer;
    this.#clock = clock;
  }

  /** Before the job is added. */
  accepted(id: string): void {
    this.#untold.add(id);
  }

  /** The job could not be added. */
  withdrawn(id: string): void {
    this.#untold.delete(id);
  }

  /** Called by the one that submits a job and by the one that works on it: a job may start before its caller has the answer. */
  queued(id: string, request: JobRequest): void {
    if (this.#untold.delete(id)) this.#observer('queued', { ...request, id, progress: 0 });
  }

  /** Returns what to call with the progress of a job that has begun, from 0 to 1. */
  begun(id: string, request: JobRequest): (share: number) => void {
    this.queued(id, request);
    let toldMs = -Infinity;
    let told = -1;
    const progress = (share: number): void => {
      const nowMs = this.#clock.monotonicMs();
      const percent = Math.floor(share * 100);
      if (percent <= told || nowMs - toldMs < INTERVAL_MS) return;
      [told, toldMs] = [percent, nowMs];
      this.#observer('progress', { ...request, id, progress: share });
    };
    progress(0);
    return progress;
  }

  async ended(id: string, find: (id: string) => Promise<Job | undefined>): Promise<void> {
    if (this.#leaving.has(id)) return;
    const job = await find(id).catch(() => undefined); // Redis is away: nobody sees the end, either
    if (job?.state === 'done' || job?.state === 'failed') this.#observer(job.state, job);
  }

  /** Tells that the job is removed, if `remove` resolves to true. */
  async removed(job: Job, remove: () => Promise<boolean>): Promise<boolean> {
    this.#leaving.add(job.id);
    const isRemoved = await remove().finally(() => this.#leaving.delete(job.id));
    if (isRemoved) this.#observer('removed', job);
    return isRemoved;
  }
}
