// The wall clock of the view: which moment is shown. It runs at the chosen speed, backwards too, and stands while nothing can
// be shown.

export class MasterClock {
  readonly #nowMs: () => number;
  #atMs: number;
  #sinceMs: number;
  #speed = 1;
  #isRunning = false;

  /** `nowMs`: a clock that never steps, such as `performance.now`. */
  constructor(nowMs: () => number, atMs: number) {
    this.#nowMs = nowMs;
    this.#atMs = atMs;
    this.#sinceMs = nowMs();
  }

  /** The shown moment, milliseconds since 1970. */
  get atMs(): number {
    if (!this.#isRunning) return this.#atMs;
    return this.#atMs + (this.#nowMs() - this.#sinceMs) * this.#speed;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  get speed(): number {
    return this.#speed;
  }

  set(change: { readonly atMs?: number; readonly speed?: number; readonly isRunning?: boolean }): void {
    this.#atMs = change.atMs ?? this.atMs;
    this.#sinceMs = this.#nowMs();
    this.#speed = change.speed ?? this.#speed;
    this.#isRunning = change.isRunning ?? this.#isRunning;
  }
}
