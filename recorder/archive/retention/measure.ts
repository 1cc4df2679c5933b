// The slow check of sizes: one camera's day at a time is measured file by file. Days that have segments of unknown size
// come first; then all days again, within a day or so.

import { concurrently } from '../../../base/concurrently.ts';
import type { CameraDay } from '../catalogue/camera-day.ts';
import type { Catalogue } from '../catalogue/catalogue.ts';
import type { SegmentName } from '../disk/names.ts';
import type { SegmentStore } from '../disk/segment-store.ts';

interface MeasureDeps {
  readonly store: SegmentStore;
  readonly catalogue: Catalogue;
  readonly busy: () => ReadonlySet<string>;
}

const CONCURRENT_LOOKS = 4;

export class Measure {
  readonly #deps: MeasureDeps;
  /** What is left of the current round. */
  #round: CameraDay[] = [];

  constructor(deps: MeasureDeps) {
    this.#deps = deps;
  }

  /** Begins to check everything again. */
  beginRound(): void {
    this.#round = [...this.#deps.catalogue.days()];
  }

  get isRoundOver(): boolean {
    return this.#round.length === 0;
  }

  /** Measures a day with segments of unknown size. False when there is none. */
  async unknown(): Promise<boolean> {
    const { catalogue } = this.#deps;
    const next = catalogue.usage.unmeasured;
    const day = next && catalogue.day(next.cameraId, next.startMs);
    if (!day) return false;
    await this.#measure(day, day.unmeasured());
    return true;
  }

  /** Measures the next day of the round. */
  async next(): Promise<void> {
    const next = this.#round.pop();
    if (next) await this.#measure(next, next.segments());
  }

  async #measure(day: CameraDay, segments: readonly SegmentName[]): Promise<void> {
    const { store, busy } = this.#deps;
    const open = busy();
    const closed = segments.filter((segment) => !open.has(day.pathOf(segment)));
    await concurrently(closed, CONCURRENT_LOOKS, async (segment) => {
      // A file that is gone, or cannot be examined, keeps its row without a size, because its name may stay in the
      // directory.
      const facts = await store.fs.facts(await store.locate(day.pathOf(segment))).catch(() => undefined);
      day.measured(segment, facts?.sizeBytes ?? 0);
    });
    // Another program may have added a file meanwhile.
    const openNow = busy();
    if (day.unmeasured().every((segment) => openNow.has(day.pathOf(segment)))) day.allMeasured();
  }
}
