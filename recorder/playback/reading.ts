// Which files players read, so that retention does not take them away between two requests: a player that follows a
// file, or a playlist over it, asks for one range after another.

import type { Clock } from '../../base/clock.ts';
import type { PlaybackArchive } from './deps.ts';

/** Longer than players wait before they ask for more; a paused one may find its file gone. */
const KEEP_MS = 60_000;

export class Reading {
  readonly #archive: PlaybackArchive;
  readonly #clock: Clock;
  /** By path: when it was last asked for. One hold a file, however many read it. */
  readonly #lastMs = new Map<string, number>();

  constructor(archive: PlaybackArchive, clock: Clock) {
    this.#archive = archive;
    this.#clock = clock;
  }

  /** Call it at the start of a request for a file, and at its end. */
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
