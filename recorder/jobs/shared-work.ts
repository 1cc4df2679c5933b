// Does the same work once for several jobs. Two requests for the same past window are two jobs, so that each result has its
// own expiry and cannot be deleted by the other caller. The second result is a hard link to the file of the first.

import { promptly } from '../../base/promptly.ts';
import type { Job, JobOutcome, JobRequest } from './job.ts';
import type { Results } from './results.ts';

interface SharedWorkOptions {
  readonly results: Pick<Results, 'share'>;
  /** Rejects when Redis does not answer. */
  readonly jobs: () => Promise<readonly Job[]>;
  readonly wallMs: () => number;
}

interface FinishedWork {
  /** The id of the job whose result it is. */
  readonly id: string;
  readonly outcome: JobOutcome;
}

export class SharedWork {
  readonly #options: SharedWorkOptions;
  readonly #underWay = new Map<string, Promise<FinishedWork | undefined>>();

  constructor(options: SharedWorkOptions) {
    this.#options = options;
  }

  /** Throws what `make` throws, and the signal's reason. */
  async once(
    id: string,
    request: JobRequest,
    make: () => Promise<JobOutcome>,
    signal: AbortSignal,
  ): Promise<JobOutcome> {
    // An existing result lacks the footage of a window that was not over.
    if (request.assembly || request.toMs >= this.#options.wallMs()) return make();
    const key = keyOf(request);
    for (let earlier; (earlier = this.#underWay.get(key));) {
      const made = await promptly(earlier, signal);
      if (made && (await this.#options.results.share(made.id, id))) return made.outcome;
    }
    const doing = this.#sharedOrMade(key, id, make);
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

  async #sharedOrMade(key: string, id: string, make: () => Promise<JobOutcome>): Promise<JobOutcome> {
    const { jobs, results } = this.#options;
    // What an earlier job lacks may be there now: footage of a node that did not answer, or of the end of its window.
    const before = (await jobs()).find(
      (job) =>
        job.state === 'done' &&
        !job.assembly &&
        !job.outcome?.elsewhere &&
        job.toMs < job.createdAtMs &&
        keyOf(job) === key,
    );
    return before?.outcome && (await results.share(before.id, id)) ? before.outcome : make();
  }
}

/** Equal for the same work. */
const keyOf = ({ kind, cameraId, fromMs, toMs, speed, isOfAllNodes, by, case: of }: JobRequest): string =>
  JSON.stringify([kind, cameraId, fromMs, toMs, speed, isOfAllNodes, of && { ...of, isKept: undefined, by }]);
