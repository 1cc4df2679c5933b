// The bit rate and the frame rate of a camera over the last ten seconds, and the frame rate that it usually has.

import type { CameraCounters } from '../contract/camera-status.ts';

const WINDOW_MS = 10_000;
const SAMPLE_MS = 1_000;
/** The usual frame rate is the median of this many windows: of an hour. */
const MAX_WINDOWS = 360;
/** Fewer windows show nothing usual. */
const MIN_WINDOWS = 6;

interface Sample {
  readonly atMs: number;
  readonly bytes: number;
  readonly frames: number;
}

export class Rates {
  readonly #samples: Sample[] = [];
  /** Frame rates of the last windows in which there were pictures, in the order of time. */
  readonly #windows: number[] = [];
  #countedMs = -Infinity;
  /** Frames per second; undefined in the first minute of pictures. */
  usualFrameRate: number | undefined;

  /** Call it a few times a second. */
  tick(nowMs: number, { bytesReceived, videoFrames }: Pick<CameraCounters, 'bytesReceived' | 'videoFrames'>): void {
    const samples = this.#samples;
    if (nowMs - (samples.at(-1)?.atMs ?? -Infinity) < SAMPLE_MS) return;
    samples.push({ atMs: nowMs, bytes: bytesReceived, frames: videoFrames });
    if (nowMs - (samples[0]?.atMs ?? nowMs) <= WINDOW_MS) return;
    samples.shift();
    if (nowMs - this.#countedMs >= WINDOW_MS) this.#count(nowMs);
  }

  /** Bits per second. */
  get bitrate(): number {
    return Math.round(this.#perSecond(({ bytes }) => bytes * 8));
  }

  /** Frames per second. */
  get frameRate(): number {
    return this.#perSecond(({ frames }) => frames);
  }

  #count(nowMs: number): void {
    this.#countedMs = nowMs;
    const { frameRate } = this;
    // Time without the camera does not change its usual frame rate.
    if (frameRate === 0) return;
    const windows = this.#windows;
    windows.push(frameRate);
    if (windows.length > MAX_WINDOWS) windows.shift();
    if (windows.length >= MIN_WINDOWS) this.usualFrameRate = windows.toSorted((a, b) => a - b)[windows.length >> 1];
  }

  #perSecond(valueOf: (sample: Sample) => number): number {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    const elapsedMs = first && last ? last.atMs - first.atMs : 0;
    return first && last && elapsedMs > 0 ? ((valueOf(last) - valueOf(first)) * 1_000) / elapsedMs : 0;
  }
}
