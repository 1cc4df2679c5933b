// Repeats what may fail for a moment.

import type { Clock } from './clock.ts';

interface Patience {
  /** Of errors: whether the same may succeed soon. */
  readonly mayPass: (err: unknown) => boolean;
  /** After this time the last error counts. */
  readonly forMs: number;
  readonly everyMs: number;
  readonly clock: Pick<Clock, 'monotonicMs' | 'sleep'>;
}

/** Rejects as `work` does: with an error that does not pass, or the last one. */
export async function patiently<T>(work: () => Promise<T>, { mayPass, forMs, everyMs, clock }: Patience): Promise<T> {
  const untilMs = clock.monotonicMs() + forMs;
  for (;;) {
    try {
      return await work();
    } catch (err) {
      if (!mayPass(err) || clock.monotonicMs() > untilMs) throw err;
    }
    await clock.sleep(everyMs);
  }
}
