// Does the same work once for several jobs. Two requests for the same past window are two jobs, so that each result has its
// own expiry and cannot be deleted by the other caller. The second result is a hard link to the file of the first.

import type { JobOutcome } from './job.ts';

export interface Made {
  /** The id of the job whose result it is. */
  readonly id: string;
  readonly outcome: JobOutcome;
}

interface Work {
  /** Finds the result of an earlier job with the same work. */
  readonly made: () => Promise<Made | undefined>;
  /** Makes it the result of this job too; false when it is gone or too old. */
  readonly adopt: (made: Made) => Promise<boolean>;
  readonly make: () => Promise<JobOutcome>;
}

export class SharedWork {
  readonly #underWay = new Map<string, Promise<Made | undefined>>();

  /** `key` is equal for the same work. Throws what `make` throws, and the signal's reason. */
  async once(key: string, id: string, work: Work, signal: AbortSignal): Promise<JobOutcome> {
    for (let earlier; (earlier = this.#underWay.get(key));) {
      const made = await unlessAborted(earlier, signal);
      if (made && (await work.adopt(made))) return made.outcome;
    }
    const doing = begin(work);
    const made = doing.then(
      (outcome) => ({ id, outcome }),
      () => undefined, // the next job tries it itself
    );
    this.#underWay.set(key, made);
    try {
      return await doing;
    } finally {
      this.#underWay.delete(key);
    }
  }
}

async function begin({ made, adopt, make }: Work): Promise<JobOutcome> {
  const before = await made();
  return before && (await adopt(before)) ? before.outcome : make();
}

function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(signal.reason as Error);
    if (signal.aborted) giveUp();
    signal.addEventListener('abort', giveUp, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
  });
}
