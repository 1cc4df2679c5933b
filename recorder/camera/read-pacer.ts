// Lets the event loop rest for a moment after cameras' bytes were read, so that the next turn finds more of them.
//
// A camera behind a 100 Mbit/s port spreads a picture's packets over milliseconds. A loop that wakes for each of them
// spends most of its time waking up: polling, one read, one callback, for 1.4 KB. Network cards answer the same
// question by interrupt moderation, and this is the same answer one floor up: turns in which camera data was read
// begin at least `intervalMs` apart, and the kernel gathers in between. What arrives is at most that much later.

const DEFAULT_INTERVAL_MS = 2;
/** A rest shorter than this costs more than it saves. */
const LEAST_REST_MS = 0.2;

export interface ReadPacerOptions {
  readonly intervalMs?: number;
  readonly nowMs?: () => number;
  /** Blocks the thread; tests hand in their own. */
  readonly rest?: (ms: number) => void;
  /** Runs a callback when the present turn of the event loop has handled all that was ready. */
  readonly afterTurn?: (callback: () => void) => void;
}

export class ReadPacer {
  readonly #intervalMs: number;
  readonly #nowMs: () => number;
  readonly #rest: (ms: number) => void;
  readonly #afterTurn: (callback: () => void) => void;
  #armed = false;
  #turnStartedMs = -Infinity;
  #awake = 0;

  constructor(options: ReadPacerOptions = {}) {
    const cell = new Int32Array(new SharedArrayBuffer(4));
    this.#intervalMs = options.intervalMs ?? DEFAULT_INTERVAL_MS;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#rest = options.rest ?? ((ms) => void Atomics.wait(cell, 0, 0, ms));
    this.#afterTurn = options.afterTurn ?? setImmediate;
  }

  /** A session calls this for each read from a camera's socket; only the first of a turn does anything. */
  noteRead(): void {
    if (this.#armed) return;
    this.#armed = true;
    this.#afterTurn(this.#turnEnded);
  }

  /** No rests until the returned function is called: a request is being answered that takes several turns. */
  keepAwake(): () => void {
    let held = true;
    this.#awake++;
    return () => {
      if (held) this.#awake--;
      held = false;
    };
  }

  readonly #turnEnded = (): void => {
    this.#armed = false;
    const restMs = this.#turnStartedMs + this.#intervalMs - this.#nowMs();
    // A loop that is busy for longer than the interval gathers without resting.
    if (this.#awake === 0 && restMs >= LEAST_REST_MS) this.#rest(Math.min(restMs, this.#intervalMs));
    this.#turnStartedMs = this.#nowMs();
  };
}
