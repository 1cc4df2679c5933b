// The tracks' frames in the order in which a camera hands them out, over and over.

import type { CameraFrame, Track } from './tracks.ts';

export class Playout {
  readonly #tracks: readonly Track[];
  #next: number[];

  constructor(tracks: readonly Track[]) {
    this.#tracks = tracks;
    this.#next = tracks.map(() => 0);
  }

  /** The frame that leaves next, without taking it. */
  peek(): CameraFrame | undefined {
    let first: CameraFrame | undefined;
    for (const [trackIndex] of this.#tracks.entries()) {
      const frame = this.#frame(trackIndex);
      if (frame && (!first || frame.sendAtMs < first.sendAtMs)) first = frame;
    }
    return first;
  }

  take(): CameraFrame | undefined {
    const frame = this.peek();
    if (frame) this.#next[frame.track] = frame.index + 1;
    return frame;
  }

  /** Goes on with the first frames handed out at `ms` or later. */
  seek(ms: number): void {
    this.#next = this.#tracks.map(() => 0);
    for (const [trackIndex] of this.#tracks.entries()) {
      for (let frame = this.#frame(trackIndex); frame && frame.sendAtMs < ms; frame = this.#frame(trackIndex)) {
        this.#next[trackIndex] = frame.index + 1;
      }
    }
  }

  #frame(trackIndex: number): CameraFrame | undefined {
    const track = this.#tracks[trackIndex];
    const index = this.#next[trackIndex];
    if (!track || index === undefined || track.frames.length === 0) return undefined;
    const round = Math.floor(index / track.frames.length);
    const frame = track.frames[index % track.frames.length];
    if (!frame) return undefined;
    return {
      ...frame,
      track: trackIndex,
      index,
      sendAtMs: frame.sendAtMs + round * track.durationMs,
      timestamp: frame.timestamp + (round * track.durationMs * track.clockRate) / 1000,
    };
  }
}
