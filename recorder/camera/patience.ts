// Time limits that adapt to a camera. A limit that is too short would fail in the same way for ever, so each failure doubles it;
// measured times then lower it again.

interface PatienceOptions {
  /** Before anything is known about the camera. */
  readonly firstMs: number;
  readonly leastMs: number;
  readonly mostMs: number;
}

export class Patience {
  readonly #options: PatienceOptions;
  #limitMs: number;

  constructor(options: PatienceOptions) {
    this.#options = options;
    this.#limitMs = options.firstMs;
  }

  get limitMs(): number {
    return this.#limitMs;
  }

  /** The camera did not respond in time. */
  exceeded(): void {
    this.#limitMs = Math.min(this.#options.mostMs, this.#limitMs * 2);
  }

  /** The camera took this long. It may be slow again, so the limit drops to a quarter at most. */
  met(tookMs: number): void {
    this.#limitMs = Math.max(this.#options.leastMs, this.#limitMs / 4, Math.min(this.#options.mostMs, 3 * tookMs));
  }
}
