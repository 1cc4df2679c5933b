// The metrics of jobs.

import { Counter, type Registry } from 'prom-client';
import { scraped } from '../../base/scraped.ts';
import type { JobKind, QueueCount } from './job.ts';

/** Values that each scrape reads. */
interface JobFigures {
  /** Whether jobs were available at the last request. */
  readonly isAvailable: () => boolean;
  /** Undefined while Redis does not answer. */
  readonly counts: () => Promise<readonly QueueCount[] | undefined>;
  /** Time since a waiting or running job last made progress; 0 without such jobs. */
  readonly progressAgeMs: () => number;
}

export class JobMetrics {
  readonly #finished: Counter<'kind' | 'outcome'>;

  constructor(registry: Registry, { isAvailable, counts, progressAgeMs }: JobFigures) {
    const { gauge } = scraped(registry);
    gauge('jobs_available', '1 while exports and time-lapses can be requested.', [], () => (isAvailable() ? 1 : 0));
    gauge(
      'jobs',
      'Jobs that wait or run, by queue; absent while Redis does not answer.',
      ['queue', 'state'],
      async () =>
        ((await counts()) ?? []).flatMap(({ queue, waiting, running }) => [
          [{ queue, state: 'waiting' }, waiting],
          [{ queue, state: 'running' }, running],
        ]),
    );
    gauge(
      'jobs_progress_age_seconds',
      'Time since any job that waits or runs last made progress; 0 without such jobs. If it only grows, the jobs are stuck.',
      [],
      async () => {
        // Updates the age if there are no jobs.
        await counts();
        return progressAgeMs() / 1000;
      },
    );
    this.#finished = new Counter({
      name: 'kube_nvr_jobs_finished_total',
      help: 'Jobs that ended, by kind and outcome.',
      labelNames: ['kind', 'outcome'],
      registers: [registry],
    });
    // Initialized with 0, so that the first failure counts as an increase.
    for (const kind of ['export', 'timelapse']) {
      for (const outcome of ['done', 'failed']) this.#finished.inc({ kind, outcome }, 0);
    }
  }

  finished(kind: JobKind, outcome: 'done' | 'failed'): void {
    this.#finished.inc({ kind, outcome });
  }
}
