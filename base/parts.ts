// The parts of a program: started in order, closed in reverse.

import { quietly } from './error.ts';

export interface Part {
  readonly name: string;
  start?(): unknown;
  /** May be called even if `start` was not: a part may hold resources since its creation. */
  close?(): unknown;
}

export class Parts {
  readonly #parts: readonly Part[];
  #closing: Promise<void> | undefined;

  constructor(parts: readonly Part[]) {
    this.#parts = parts;
  }

  /** Starts one part after the other. When one fails, all parts are closed, and its error is thrown. */
  async start(): Promise<void> {
    try {
      for (const part of this.#parts) await part.start?.();
    } catch (err) {
      await quietly(this.close());
      throw err;
    }
  }

  /** Closes all parts, the last one first. Throws AggregateError after that when some could not be closed. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    const failures: { readonly name: string; readonly err: unknown }[] = [];
    for (const part of this.#parts.toReversed()) {
      try {
        await part.close?.();
      } catch (err) {
        failures.push({ name: part.name, err });
      }
    }
    if (failures.length === 0) return;
    const names = failures.map(({ name }) => name).join(', ');
    throw new AggregateError(
      failures.map(({ err }) => err),
      `not closed: ${names}`,
    );
  }
}
