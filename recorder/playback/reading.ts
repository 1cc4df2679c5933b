// Keeps files from retention while players read them: a player requests a file, or the parts of a playlist, one range after
// another.

import type { Clock } from '../../base/clock.ts';
import type { OwnArchive } from '../footage/own-footage.ts';

/** Longer than players wait between two requests; a paused player may find its file removed. */
const KEEP_MS = 60_000;

export class Reading {
  readonly #archive: OwnArchive;
  readonly #clock: Clock;
  /** Time of the last request by path. Each file is held once, however many players read it. */
  readonly #lastMs = new Map<string, number>();

  constructor(archive: OwnArchive, clock: Clock) {
    this.#archive = archive;
    this.#clock = clock;
  }

  /** To be called at the start and at the end of a request for a file. */
  touch(path: string): void {
    const held = this.#lastMs.has(path);
    this.#lastMs.set(path, this.#clock.monotonicMs());
    if (!held) this.#releaseLater(path, this.#archive.holdForReading(path), KEEP_MS);
  }

  #releaseLater(path: string, release: () => void, inMs: number): void {
    this.#clock.after(inMs, () => {
      const leftMs = (this.#lastMs.get(path) ?? 0) + KEEP_MS - this.#clock.monotonicMs();
      if (leftMs > 0) return this.#releaseLater(path, release, leftMs);
      this.#lastMs.delete(path);
      return release();
    });
  }
}
