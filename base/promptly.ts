import { quietly } from './error.ts';

/** Rejects as soon as `signal` aborts, with its reason; the outcome of `answer` after that is ignored. */
export async function promptly<T>(answer: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return answer;
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([answer, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
    void quietly(answer);
    void quietly(aborted.promise);
  }
}
