// The slow check of sizes: one camera's day at a time is measured file by file, first those of which nothing certain is
// known, then all of them again within a day or so.

import { concurrently } from '../../../base/concurrently.ts';
import type { Footage } from '../catalogue/footage.ts';
import { formatPath } from '../disk/names.ts';
import type { SegmentStore } from '../disk/segment-store.ts';
import type { UsageLedger } from './ledger.ts';

export interface MeasureDeps {
  readonly store: SegmentStore;
  readonly footage: Footage;
  readonly ledger: UsageLedger;
  readonly busy: () => ReadonlySet<string>;
}

const CONCURRENT_LOOKS = 4;

export class Measure {
  readonly #deps: MeasureDeps;
  /** What is left of the present round of the check. */
  #round: { cameraId: string; dayStartMs: number }[] = [];

  constructor(deps: MeasureDeps) {
    this.#deps = deps;
  }

  /** Begins to check everything again. */
  beginRound(): void {
    this.#round = [...this.#deps.footage.counts()];
  }

  get isRoundOver(): boolean {
    return this.#round.length === 0;
  }

  /** Measures a day that is not known. False when there is none. */
  async unknown(): Promise<boolean> {
    const next = this.#deps.ledger.nextUnmeasured();
    if (!next) return false;
    await this.#measure(next.cameraId, next.dayStartMs);
    return true;
  }

  /** Measures the next day of the round. */
  async next(): Promise<void> {
    const next = this.#round.pop();
    if (next) await this.#measure(next.cameraId, next.dayStartMs);
  }

  async #measure(cameraId: string, dayMs: number): Promise<void> {
    const { store, footage, ledger, busy } = this.#deps;
    const version = ledger.versionOf(cameraId, dayMs);
    const writing = busy();
    const paths = footage.segmentsOf(cameraId, dayMs).map(formatPath);
    const closed = paths.filter((path) => !writing.has(path));
    let bytes = 0;
    await concurrently(closed, CONCURRENT_LOOKS, async (path) => {
      // A file that is gone, or cannot be looked at, counts as a name, as it does in the directory, and has no size.
      const facts = await store.fs.facts(store.absolute(path)).catch(() => undefined);
      bytes += facts?.sizeBytes ?? 0;
    });
    ledger.measured(cameraId, dayMs, { count: closed.length, bytes }, version);
  }
}
