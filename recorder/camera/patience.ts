// For how long a camera may take for something: limits that learn. One that is too short for a camera fails the same
// way for ever, so each failure doubles it; what the camera then needs brings it down again.

export interface PatienceOptions {
  /** Before anything is known of the camera. */
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

  /** The camera was not there in time. */
  exceeded(): void {
    this.#limitMs = Math.min(this.#options.mostMs, this.#limitMs * 2);
  }

  /** The camera took this long. What was slow once may be slow again: the limit comes down to a quarter at most. */
  met(tookMs: number): void {
    this.#limitMs = Math.max(this.#options.leastMs, this.#limitMs / 4, Math.min(this.#options.mostMs, 3 * tookMs));
  }
}
