// Two who ask for the same window of the past have a job each, and so a result with an hour of its own that nobody else
// can delete; the work is done once. The second result is another name of the first one's file.

import type { JobOutcome } from './job.ts';

export interface Made {
  /** Of the job whose result it is. */
  readonly id: string;
  readonly outcome: JobOutcome;
}

export interface Work {
  /** What a job made before. */
  readonly made: () => Promise<Made | undefined>;
  /** Makes it the result of this job as well; false when it is gone or too old. */
  readonly adopt: (made: Made) => Promise<boolean>;
  readonly make: () => Promise<JobOutcome>;
}

export class SharedWork {
  readonly #underWay = new Map<string, Promise<Made | undefined>>();

  /** `key` is the same for the same work. Throws what `make` throws, and the signal's reason. */
  async once(key: string, id: string, work: Work, signal: AbortSignal): Promise<JobOutcome> {
    for (let earlier; (earlier = this.#underWay.get(key));) {
      const made = await unlessAborted(earlier, signal);
      if (made && (await work.adopt(made))) return made.outcome;
    }
    const doing = begin(work);
    const made = doing.then(
      (outcome) => ({ id, outcome }),
      () => undefined, // the next in line does it
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
