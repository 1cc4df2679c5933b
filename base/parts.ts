// The parts of a program: started in order, closed in reverse.

export interface Part {
  readonly name: string;
  start?(): Promise<void> | void;
  /** Called by `Parts.tick` once the part has been started. */
  tick?(): void;
  close?(): Promise<void> | void;
}

export class Parts {
  readonly #started: Part[] = [];

  /**
   * Starts one part after the other. When one fails, it and those before it are closed, and its error is thrown: parts
   * may hold something before `start` resolves.
   */
  async start(parts: readonly Part[]): Promise<void> {
    try {
      for (const part of parts) {
        this.#started.push(part);
        await part.start?.();
      }
    } catch (err) {
      await this.close().catch(() => {});
      throw err;
    }
  }

  tick(): void {
    for (const part of this.#started) part.tick?.();
  }

  /** Closes all parts, the last one first. Throws AggregateError after that when some could not be closed. */
  async close(): Promise<void> {
    const failures: { readonly name: string; readonly err: unknown }[] = [];
    for (let part = this.#started.pop(); part; part = this.#started.pop()) {
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
