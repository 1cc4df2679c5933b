// Pictures of the archive one after the other, as fast as the recorder makes them: for scrubbing, for hovering over the timeline,
// for speeds that no decoder reaches, and where a browser cannot decode the video.

import { signal } from '@preact/signals';
import { Problem, request } from '../app/api.ts';
import { footageIdOf, type Stream } from './stream.ts';

/** At most twelve a second. */
const APART_MS = 84;
const BUSY_MS = 1_000;

interface Still {
  readonly url: string;
  /** When the picture was captured. */
  readonly atMs: number;
}

export class StillShow {
  readonly shown = signal<Still | undefined>(undefined);
  /** Whether the recorder can make pictures: it needs ffmpeg for that. */
  isAvailable = true;
  readonly #cameraId: string;
  readonly #width: number;
  #wantedMs: number | undefined;
  #stream: Stream = 'main';
  #shownForMs: number | undefined;
  #isBusy = false;
  #ended = false;

  constructor(cameraId: string, width: number) {
    this.#cameraId = cameraId;
    this.#width = width;
  }

  /** Shows the picture of a moment; only the last wanted one counts. */
  show(atMs: number, stream: Stream): void {
    this.#stream = stream;
    this.#wantedMs = Math.floor(atMs);
    if (!this.#isBusy && this.#wantedMs !== this.#shownForMs) void this.#next();
  }

  clear(): void {
    this.#wantedMs = undefined;
    this.#shownForMs = undefined;
    this.#keep(undefined);
  }

  end(): void {
    this.#ended = true;
    this.clear();
  }

  async #next(): Promise<void> {
    this.#isBusy = true;
    while (this.#wantedMs !== undefined && this.#wantedMs !== this.#shownForMs && !this.#ended) {
      const atMs = this.#wantedMs;
      const begunMs = performance.now();
      let pauseMs = APART_MS;
      try {
        const still = await readStill(footageIdOf(this.#cameraId, this.#stream), atMs, this.#width);
        this.#shownForMs = atMs;
        if (this.#wantedMs === undefined || this.#ended) URL.revokeObjectURL(still.url);
        else this.#keep(still);
      } catch (error) {
        const code = error instanceof Problem ? error.code : '';
        if (code === 'not-found' || code === 'ffmpeg-missing') this.isAvailable = false;
        if (error instanceof Problem && error.status === 404) {
          this.#shownForMs = atMs;
          this.#keep(undefined);
        } else pauseMs = BUSY_MS;
      }
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, begunMs + pauseMs - performance.now())));
    }
    this.#isBusy = false;
  }

  #keep(still: Still | undefined): void {
    const before = this.shown.peek();
    this.shown.value = still;
    if (before) URL.revokeObjectURL(before.url);
  }
}

/** Rejects with Problem where nothing is recorded. The caller revokes its URL. */
async function readStill(footageId: string, atMs: number, width: number): Promise<Still> {
  const response = await request(stillPath(footageId, atMs, width));
  const blob = await response.blob();
  return { url: URL.createObjectURL(blob), atMs: Number(response.headers.get('x-picture-time-ms') ?? atMs) };
}

export const stillPath = (footageId: string, atMs: number, width: number): string =>
  `/api/archive/${encodeURIComponent(footageId)}/still?at=${Math.floor(atMs) / 1000}&width=${width}`;
