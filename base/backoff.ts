// Retry delays that double, with jitter, from a first delay up to a maximum.

interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  /** The share of the delay that is random, 0 to 1. */
  readonly jitter?: number;
  /** Returns a number in [0, 1); tests pass their own. */
  readonly random?: () => number;
}

export class Backoff {
  readonly #options: Required<BackoffOptions>;
  #attempts = 0;

  constructor(options: BackoffOptions) {
    this.#options = { jitter: 0.2, random: Math.random, ...options };
  }

  /** The next delay in milliseconds. The first is exactly `firstMs`; no delay exceeds `maxMs`. */
  next(): number {
    const { firstMs, maxMs, jitter, random } = this.#options;
    const plainMs = Math.min(maxMs, firstMs * 2 ** Math.min(this.#attempts, 30));
    const delayMs = this.#attempts === 0 ? plainMs : plainMs * (1 - jitter * random());
    this.#attempts++;
    return Math.round(delayMs);
  }

  reset(): void {
    this.#attempts = 0;
  }
}
