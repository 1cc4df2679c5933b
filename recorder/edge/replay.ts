// A replay as an iteration.

import type { EdgeUnit, Replay, ReplayEnd, ReplayRequest } from './memory.ts';
import { ReplaySession, type ReplayDeps, type ReplayPlace } from './replay-session.ts';

/** The units of a replay; at its end, how it ended. */
export type Units = AsyncGenerator<EdgeUnit, ReplayEnd | undefined, undefined>;

export async function* replayFrom(
  place: ReplayPlace,
  request: ReplayRequest,
  deps: ReplayDeps,
  signal: AbortSignal,
): Units {
  signal.throwIfAborted();
  const session = new ReplaySession(place, request, deps);
  const abort = (): void => session.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    session.start();
    for (let unit = await session.next(); unit; unit = await session.next()) yield unit;
    return session.end;
  } finally {
    signal.removeEventListener('abort', abort);
    await session.close();
  }
}

/** A replay that begins when it is iterated. */
export class LazyReplay implements Replay {
  readonly #begin: () => Units;
  #end: ReplayEnd | undefined;

  constructor(begin: () => Units) {
    this.#begin = begin;
  }

  get end(): ReplayEnd | undefined {
    return this.#end;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<EdgeUnit, void, undefined> {
    this.#end = yield* this.#begin();
  }
}
