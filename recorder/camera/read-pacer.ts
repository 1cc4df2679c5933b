// Pauses the event loop briefly after bytes from cameras were read, so that the next turn finds more of them.
//
// A camera on a 100 Mbit/s port spreads a picture's packets over milliseconds. A loop that wakes up for each packet spends most
// of its time on that: a poll, a read and a callback for 1.4 KB. Network cards solve the same problem by interrupt moderation,
// and so does this: turns in which camera data was read start at least `intervalMs` apart, and the kernel collects data in
// between. Data is delayed by at most that time.
//
// TCP waits in the kernel, UDP does not: a key frame at 1 Gbit/s brings 83 datagrams a millisecond, and Linux by default keeps
// fewer than 200 of them. A turn with a datagram therefore has no pause, and the pauses after it are short.

const DEFAULT_INTERVAL_MS = 4;
/** While datagrams come, in each `DATAGRAM_TURNS` turns (10 s or more). */
const DATAGRAM_INTERVAL_MS = 1;
const DATAGRAM_TURNS = 10_000;
/** A shorter pause costs more than it saves. */
const LEAST_REST_MS = 0.2;

interface ReadPacerOptions {
  readonly intervalMs?: number;
  readonly nowMs?: () => number;
  /** Blocks the thread; tests pass their own. */
  readonly rest?: (ms: number) => void;
  /** Runs a callback when the current turn of the event loop has handled everything that was ready. */
  readonly afterTurn?: (callback: () => void) => void;
}

export class ReadPacer {
  readonly #intervalMs: number;
  readonly #nowMs: () => number;
  readonly #rest: (ms: number) => void;
  readonly #afterTurn: (callback: () => void) => void;
  #armed = false;
  #turnStartedMs = -Infinity;
  #datagramTurns = 0;
  #awake = 0;

  constructor(options: ReadPacerOptions = {}) {
    const cell = new Int32Array(new SharedArrayBuffer(4));
    this.#intervalMs = options.intervalMs ?? DEFAULT_INTERVAL_MS;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#rest = options.rest ?? ((ms) => void Atomics.wait(cell, 0, 0, ms));
    this.#afterTurn = options.afterTurn ?? setImmediate;
  }

  /** Call for each read from a camera's TCP socket; only the first one in a turn has an effect. */
  noteRead(): void {
    if (this.#armed) return;
    this.#armed = true;
    this.#afterTurn(this.#turnEnded);
  }

  /** Call for each datagram of a camera. */
  noteDatagram(): void {
    this.#turnStartedMs = -Infinity;
    this.#datagramTurns = DATAGRAM_TURNS;
  }

  /** Prevents pauses until the returned function is called, while a request is answered that takes several turns. */
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
    const intervalMs = this.#datagramTurns > 0 ? Math.min(DATAGRAM_INTERVAL_MS, this.#intervalMs) : this.#intervalMs;
    this.#datagramTurns--;
    const restMs = this.#turnStartedMs + intervalMs - this.#nowMs();
    // A loop that is busy for longer than the interval collects data without a pause.
    if (this.#awake === 0 && restMs >= LEAST_REST_MS) this.#rest(Math.min(restMs, intervalMs));
    this.#turnStartedMs = this.#nowMs();
  };
}
