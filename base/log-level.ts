// How much is logged, changed while the process runs: a log and a level in, a log out that follows the level.

import type { Log } from './log.ts';

/** From the most to the fewest lines. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/** The level of a log and of all its children. */
export class LevelSwitch {
  /** What the configuration says. */
  #configured: LogLevel;
  #rank: number;

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

  /** The configuration says so now, and what was said since does not count any more. */
  configure(level: LogLevel): void {
    if (level === this.#configured) return;
    this.#configured = level;
    this.level = level;
  }

  /** Everything, or what the configuration says again. */
  toggleDebug(): void {
    this.level = this.level === 'debug' ? (this.#configured === 'debug' ? 'info' : this.#configured) : 'debug';
  }

  /** `log`, which has to write every line, at this level. pino's own children keep the level that they began with. */
  apply(log: Log): Log {
    const writes = (level: LogLevel): boolean => LOG_LEVELS.indexOf(level) >= this.#rank;
    return {
      debug: (fields, message) => void (writes('debug') && log.debug(fields, message)),
      info: (fields, message) => void (writes('info') && log.info(fields, message)),
      warn: (fields, message) => void (writes('warn') && log.warn(fields, message)),
      error: (fields, message) => log.error(fields, message),
      child: (fields) => this.apply(log.child(fields)),
    };
  }
}
