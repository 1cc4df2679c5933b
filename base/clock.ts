// Time as a dependency: the system clock, and a virtual clock that tests move by hand.

/** A timer that can be cancelled; cancelling twice is harmless. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Milliseconds on a clock that never steps; only differences are meaningful. */
  monotonicMs(): number;
  /**
   * Milliseconds in which this process ran, on the clock of `monotonicMs` without the time in which the process stood still (it
   * was stopped, its machine was paused, one turn of its event loop took more than a second). How long another side has been
   * silent is measured by it: what that side sent meanwhile is read only after the timers that are due.
   */
  ranMs(): number;
  /** Milliseconds since 1970-01-01 UTC; the host may step it in both directions. */
  wallMs(): number;
  /** Runs `callback` once, `delayMs` from now. The timer does not keep the process alive. */
  after(delayMs: number, callback: () => void): Timer;
  /** Resolves after `delayMs`, or at once when `signal` aborts (it never rejects). */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

export function sleepOn(clock: Pick<Clock, 'after'>, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const finish = (): void => {
      timer.cancel();
      signal?.removeEventListener('abort', finish);
      resolve();
    };
    const timer = clock.after(delayMs, finish);
    signal?.addEventListener('abort', finish, { once: true });
  });
}

/** How often the clock is read at least, and after how long without a look the process stood still. */
const LOOK_MS = 250;
const STOOD_STILL_MS = 1_000;

/** Reads the clock at least every `LOOK_MS`, and adds up the time in which nothing could. The first reader after it notices. */
class Looks {
  #timer: NodeJS.Timeout | undefined;
  #lookedMs = 0;
  #stoodMs = 0;

  ranMs(): number {
    const nowMs = performance.now();
    if (!this.#timer) {
      this.#timer = setInterval(() => this.ranMs(), LOOK_MS).unref();
      this.#lookedMs = nowMs;
    }
    const awayMs = nowMs - this.#lookedMs;
    this.#lookedMs = nowMs;
    if (awayMs > STOOD_STILL_MS) this.#stoodMs += awayMs - LOOK_MS;
    return nowMs - this.#stoodMs;
  }
}

const looks = new Looks();

/** Milliseconds for which this thread had a processor. */
export const threadCpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  ranMs: () => looks.ranMs(),
  wallMs: () => Date.now(),
  after(delayMs, callback) {
    const handle = setTimeout(callback, delayMs);
    handle.unref();
    return { cancel: () => clearTimeout(handle) };
  },
  sleep(delayMs, signal) {
    return sleepOn(systemClock, delayMs, signal);
  },
};

interface VirtualTimer {
  readonly atMs: number;
  readonly callback: () => void;
}

/** A clock that stands still until a test moves it. Wall and monotonic time can be moved apart. */
export class VirtualClock implements Clock {
  #monotonicMs: number;
  #wallMs: number;
  #stoodMs = 0;
  readonly #timers = new Set<VirtualTimer>();

  constructor(wallMs: number = Date.UTC(2026, 0, 1, 12), monotonicMs = 1_000) {
    this.#wallMs = wallMs;
    this.#monotonicMs = monotonicMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  ranMs(): number {
    return this.#monotonicMs - this.#stoodMs;
  }

  wallMs(): number {
    return this.#wallMs;
  }

  /** The number of pending timers. */
  get timers(): number {
    return this.#timers.size;
  }

  after(delayMs: number, callback: () => void): Timer {
    const entry: VirtualTimer = { atMs: this.#monotonicMs + Math.max(0, delayMs), callback };
    this.#timers.add(entry);
    return { cancel: () => void this.#timers.delete(entry) };
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, delayMs, signal);
  }

  /** Moves both clocks forward, running due timers in order, each at its own time. */
  advance(ms: number): void {
    const targetMs = this.#monotonicMs + ms;
    for (;;) {
      // Timers due at the same time run in the order in which they were set: a Set keeps insertion order.
      let due: VirtualTimer | undefined;
      for (const timer of this.#timers) if (timer.atMs <= targetMs && timer.atMs < (due?.atMs ?? Infinity)) due = timer;
      if (!due) break;
      this.#timers.delete(due);
      this.#move(Math.max(0, due.atMs - this.#monotonicMs));
      due.callback();
    }
    this.#move(targetMs - this.#monotonicMs);
  }

  /** The process stands still: timers that are due meanwhile run when time goes on. */
  standStill(ms: number): void {
    this.#stoodMs += ms;
    this.#move(ms);
  }

  /** Steps the wall clock only, as an NTP step or an administrator does. */
  stepWall(ms: number): void {
    this.#wallMs += ms;
  }

  #move(ms: number): void {
    this.#monotonicMs += ms;
    this.#wallMs += ms;
  }
}
