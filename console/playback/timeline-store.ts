// Asks the recorder what is recorded, for the stretch of time that is looked at, and keeps the answer up to date.

import { signal } from '@preact/signals';
import type { TimelineCamera } from '../app/answers.ts';
import { api, wordsOf } from '../app/api.ts';
import { now } from '../app/clock.ts';
import { onEvent } from '../app/events.ts';
import { toFootage, type CameraFootage } from './footage.ts';
import { MAX_WIDTH_MS, rangeAround, widthOf, type Range } from './scale.ts';

/** While the user drags, only the last range is requested. */
const SETTLE_MS = 120;
/** Ranges that include the present are requested again at this interval. */
const FRESH_MS = 5_000;
const RETRY_MS = 3_000;

interface Wanted {
  readonly cameras: readonly string[];
  readonly range: Range;
  /** Shorter interruptions are not distinguished. */
  readonly resolutionMs: number;
}

/** What is requested besides footage: what cameras and other systems told, and what the pictures show. */
type Also = readonly ('events' | 'activity')[];

interface Loaded extends Wanted {
  readonly atMs: number;
  readonly byCamera: ReadonlyMap<string, CameraFootage>;
}

export class TimelineStore {
  readonly loaded = signal<Loaded | undefined>(undefined);
  readonly problem = signal<string | undefined>(undefined);
  #wanted: Wanted | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #asked: AbortController | undefined;
  /** What was loaded is no longer true. */
  #isOutdated = false;
  also: Also;

  constructor(...also: Also) {
    this.also = also;
  }

  /** Call it whenever the shown range changes. */
  want(wanted: Wanted): void {
    this.#wanted = wanted;
    if (this.#timer !== undefined || this.#asked || this.#isFresh(wanted)) return;
    this.#timer = setTimeout(() => void this.#ask(), this.loaded.peek() ? SETTLE_MS : 0);
  }

  /** Requests the data again soon, for example after a protection was created, or because footage was removed. */
  refresh(): void {
    this.#isOutdated = true;
    if (this.#wanted) this.want(this.#wanted);
  }

  of(cameraId: string): CameraFootage | undefined {
    return this.loaded.value?.byCamera.get(cameraId);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#asked?.abort();
    this.#wanted = undefined;
  }

  #isFresh({ cameras, range, resolutionMs }: Wanted): boolean {
    const loaded = this.loaded.peek();
    if (!loaded || this.#isOutdated) return false;
    const nowMs = now();
    const isPresent = range.toMs > loaded.atMs;
    return (
      isCovered(loaded, { cameras, range }, nowMs) &&
      loaded.resolutionMs <= resolutionMs * 1.5 &&
      !(isPresent && nowMs - loaded.atMs > FRESH_MS)
    );
  }

  async #ask(): Promise<void> {
    this.#timer = undefined;
    const wanted = this.#wanted;
    if (!wanted || wanted.cameras.length === 0) return;
    this.#asked = new AbortController();
    this.#isOutdated = false;
    let retry = false;
    try {
      // Requests more than is shown, so that panning shows something at once.
      const around = rangeAround((wanted.range.fromMs + wanted.range.toMs) / 2, widthOf(wanted.range) * 2);
      const range = { fromMs: Math.floor(around.fromMs), toMs: Math.ceil(around.toMs) };
      const atMs = now();
      const byCamera = await readTimeline({ ...wanted, range }, this.#asked.signal, this.also);
      this.loaded.value = { ...wanted, range, atMs, byCamera };
      this.problem.value = undefined;
    } catch (error) {
      if (this.#asked.signal.aborted) return;
      this.problem.value = wordsOf(error);
      retry = true;
    }
    this.#asked = undefined;
    const next = this.#wanted;
    if (retry) this.#timer = setTimeout(() => void this.#ask(), RETRY_MS);
    else if (next) this.want(next);
  }
}

/** Whether an answer says all of the past part of a range: until it does, nothing may be said to be complete. */
export const isCovered = (
  loaded: Pick<Loaded, 'byCamera' | 'range'> | undefined,
  { cameras, range }: Pick<Wanted, 'cameras' | 'range'>,
  nowMs: number,
): boolean =>
  loaded !== undefined &&
  cameras.every((id) => loaded.byCamera.has(id)) &&
  loaded.range.fromMs <= Math.min(range.fromMs, nowMs) &&
  loaded.range.toMs >= Math.min(range.toMs, nowMs);

/** Reads again what is shown of the past when a gap of it was filled, until the returned function is called. */
export const followFilled = (stores: readonly TimelineStore[]): (() => void) =>
  onEvent(({ type }) => {
    if (type === 'gap.filled') for (const store of stores) store.refresh();
  });

/** By the id of the camera. */
export async function readTimeline(
  { cameras, range, resolutionMs }: Wanted,
  signal?: AbortSignal,
  also: Also = [],
): Promise<ReadonlyMap<string, CameraFootage>> {
  const ids = cameras.map((id) => `camera=${encodeURIComponent(id)}`).join('&');
  const toMs = Math.min(range.toMs, range.fromMs + MAX_WIDTH_MS);
  const window = `from=${range.fromMs / 1000}&to=${toMs / 1000}&resolution_ms=${Math.max(1, Math.round(resolutionMs))}`;
  const answer = await api<{ readonly cameras: readonly TimelineCamera[] }>(
    `/api/archive/timeline?scope=cluster&preview=1${also.map((one) => `&${one}=1`).join('')}&${ids}&${window}`,
    signal ? { signal } : {},
  );
  return new Map(answer.cameras.map((item) => [item.camera_id, toFootage(item)]));
}
