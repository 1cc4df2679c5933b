// Log files of limited size and number: `recorder.log` is the newest, `recorder.log.1` the one before, and so on.

import { closeSync, fstatSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock, type Clock } from './clock.ts';
import { DAY_MS } from './units.ts';

interface RotatingFileOptions {
  readonly directory: string;
  /** Name of the newest file. */
  readonly name: string;
  readonly maxBytes?: number;
  /** The number of files kept, including the newest. */
  readonly maxFiles?: number;
  readonly clock?: Pick<Clock, 'wallMs'>;
}

/** Days since 1970-01-01 UTC. */
const dayOf = (ms: number): number => Math.floor(ms / DAY_MS);

/**
 * Starts a new file before the current one would exceed `maxBytes`, and with the first line of a new day (UTC). Writes
 * synchronously: the line is in the file when `write` returns, so that the last line before a crash is kept. A disk that refuses
 * writes costs log lines, never the process.
 */
export class RotatingFile {
  readonly #path: string;
  readonly #maxBytes: number;
  readonly #maxFiles: number;
  readonly #clock: Pick<Clock, 'wallMs'>;
  #descriptor: number | undefined;
  #size = 0;
  /** The day of the last line. */
  #day = 0;

  /** Throws when the directory cannot be created or written. */
  constructor(options: RotatingFileOptions) {
    const { directory, name, maxBytes = 10 * 1024 * 1024, maxFiles = 10, clock = systemClock } = options;
    mkdirSync(directory, { recursive: true });
    this.#path = join(directory, name);
    this.#maxBytes = maxBytes;
    this.#maxFiles = maxFiles;
    this.#clock = clock;
    this.#open();
  }

  write(line: string): void {
    try {
      const bytes = Buffer.from(line);
      if (this.#descriptor === undefined) this.#open();
      const day = dayOf(this.#clock.wallMs());
      if (this.#size > 0 && (this.#size + bytes.length > this.#maxBytes || day !== this.#day)) this.#rotate();
      this.#day = day;
      this.#size += writeSync(this.#descriptor as number, bytes);
    } catch {
      // The next line opens the file again.
      this.close();
    }
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  #open(): void {
    this.#descriptor = openSync(this.#path, 'a', 0o640);
    const { size, mtimeMs } = fstatSync(this.#descriptor);
    this.#size = size;
    this.#day = dayOf(mtimeMs);
  }

  #rotate(): void {
    this.close();
    rmSync(`${this.#path}.${this.#maxFiles - 1}`, { force: true });
    for (let i = this.#maxFiles - 2; i >= 0; i--) {
      try {
        renameSync(i === 0 ? this.#path : `${this.#path}.${i}`, `${this.#path}.${i + 1}`);
      } catch {
        // There are fewer files than that yet.
      }
    }
    this.#open();
  }
}
