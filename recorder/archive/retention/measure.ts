// The slow check of sizes: one camera's day at a time is measured file by file. Days that have segments of unknown size
// come first; then all days again, within a day or so.

import { concurrently } from '../../../base/concurrently.ts';
import { ignoreMissing } from '../../../base/file-calls.ts';
import type { Log } from '../../../base/log.ts';
import type { CameraDay } from '../catalogue/camera-day.ts';
import type { Catalogue } from '../catalogue/catalogue.ts';
import type { SegmentName } from '../disk/names.ts';
import type { SegmentStore } from '../disk/segment-store.ts';

interface MeasureDeps {
  readonly store: SegmentStore;
  readonly catalogue: Catalogue;
  readonly busy: () => ReadonlySet<string>;
  readonly log: Log;
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

  async next(): Promise<void> {
    const next = this.#round.pop();
    if (next) await this.#measure(next, next.segments());
  }

  async #measure(day: CameraDay, segments: readonly SegmentName[]): Promise<void> {
    const { store, busy, log } = this.#deps;
    const open = busy();
    const closed = segments.filter((segment) => !open.has(day.pathOf(segment)));
    await concurrently(closed, CONCURRENT_LOOKS, async (segment) => {
      try {
        const facts = await store.fs.facts(await store.locate(day.pathOf(segment))).catch(ignoreMissing);
        // A file that is gone keeps its row without a size, because its name may stay in the directory.
        day.measured(segment, facts?.sizeBytes ?? 0);
      } catch (err) {
        log.debug({ err, path: day.pathOf(segment) }, 'the size of a file cannot be read');
        day.measured(segment);
      }
    });
    // Another program may have added a file meanwhile.
    const openNow = busy();
    if (day.unmeasured().every((segment) => openNow.has(day.pathOf(segment)))) day.allMeasured();
  }
}
