// The requests that boot.js has made before the modules of the page were loaded.

export interface TimedResponse {
  readonly response: Response;
  /** When it was requested, and when it began to arrive: `Date.now()`. */
  readonly sentMs: number;
  readonly receivedMs: number;
}

interface Asked {
  readonly sentMs: number;
  readonly answer: Promise<Pick<TimedResponse, 'response' | 'receivedMs'>>;
}

/** An older answer may no longer be true. */
const FRESH_MS = 5_000;

const asked = (globalThis as { readonly early?: Map<string, Asked> }).early;

/** The answer to a request for this path, once. Undefined: it was not requested. Rejects like `fetch`. */
export async function takeEarly(path: string): Promise<TimedResponse | undefined> {
  const one = asked?.get(path);
  if (!one) return undefined;
  asked?.delete(path);
  const { response, receivedMs } = await one.answer;
  return Date.now() - receivedMs > FRESH_MS ? undefined : { response, receivedMs, sentMs: one.sentMs };
}
