// The queue of jobs, opened when it is needed, and why it cannot be used.

import type { Log } from '../../base/log.ts';
import { JobsUnavailable, type JobQueue } from './job.ts';

export class QueueAccess {
  readonly #open: () => Promise<JobQueue>;
  readonly #log: Log;
  #queue: Promise<JobQueue> | undefined;
  #trouble: string | undefined;
  #closed = false;

  /** `open` is called again after a failure. */
  constructor(open: () => Promise<JobQueue>, log: Log) {
    this.#open = open;
    this.#log = log;
  }

  /** Why the last request failed; undefined if it did not. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  get isOpen(): boolean {
    return this.#queue !== undefined;
  }

  /** Logs once when jobs become unavailable, and when they are available again. Rejects with JobsUnavailable. */
  async ask<T>(ask: (queue: JobQueue) => Promise<T>): Promise<T> {
    try {
      const answer = await ask(await this.#opened());
      if (this.#trouble !== undefined) this.#log.info({}, 'jobs are available again');
      this.#trouble = undefined;
      return answer;
    } catch (err) {
      if (err instanceof JobsUnavailable && !this.#closed) {
        if (this.#trouble !== err.message) this.#log.warn({ reason: err.message }, 'jobs are not available');
        this.#trouble = err.message;
      }
      throw err;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    // A queue that could not be opened needs no closing.
    await (await this.#queue?.catch(() => undefined))?.close();
  }

  #opened(): Promise<JobQueue> {
    if (this.#closed) return Promise.reject(new JobsUnavailable('the recorder is stopping'));
    this.#queue ??= this.#open().catch((err: unknown) => {
      this.#queue = undefined;
      throw err;
    });
    return this.#queue;
  }
}
