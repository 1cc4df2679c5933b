// A log whose level can be changed while the process runs.

import type { Lines, Log } from './log.ts';

/** Ordered from the most to the fewest lines. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;

type LogLevel = (typeof LOG_LEVELS)[number];

/** The current level of a log and all its children. */
export class LevelSwitch {
  /** The level in the configuration. */
  #configured: LogLevel;
  #rank: number;
  #bugs = 0;
  /** One entry for each place in the source that has a fault. */
  readonly #loggedBugs = new Set<string>();

  constructor(level: LogLevel) {
    this.#configured = level;
    this.#rank = LOG_LEVELS.indexOf(level);
  }

  get level(): LogLevel {
    return LOG_LEVELS[this.#rank] as LogLevel;
  }

  set level(level: LogLevel) {
    this.#rank = LOG_LEVELS.indexOf(level);
  }

  get configured(): LogLevel {
    return this.#configured;
  }

  /** How many faults of this program the log was told of, at all levels. */
  get bugs(): number {
    return this.#bugs;
  }

  /** Sets the level from the configuration. A change there overrides what was set at run time. */
  configure(level: LogLevel): void {
    if (level === this.#configured) return;
    this.#configured = level;
    this.level = level;
  }

  /** Switches between `debug` and the level in the configuration. */
  toggleDebug(): void {
    this.level = this.level === 'debug' ? (this.#configured === 'debug' ? 'info' : this.#configured) : 'debug';
  }

  /**
   * Wraps `log`, which must itself write every level, so that it follows this level. pino's children would keep the level with
   * which they were created.
   */
  apply(log: Lines): Log {
    const writes = (level: LogLevel): boolean => LOG_LEVELS.indexOf(level) >= this.#rank;
    return {
      debug: (fields, message) => void (writes('debug') && log.debug(fields, message)),
      info: (fields, message) => void (writes('info') && log.info(fields, message)),
      warn: (fields, message) => void (writes('warn') && log.warn(fields, message)),
      error: (fields, message) => log.error(fields, message),
      bug: (fields, message) =>
        void (this.#isNewBug(fields.err, message) && log.error({ ...fields, bug: true }, message)),
      child: (fields) => this.apply(log.child(fields)),
    };
  }

  #isNewBug(err: unknown, message: string): boolean {
    this.#bugs++;
    const place = err instanceof Error ? err.stack?.split('\n').find((line) => /^\s+at /.test(line)) : undefined;
    const before = this.#loggedBugs.size;
    return this.#loggedBugs.add(`${message}${place}`).size > before;
  }
}
