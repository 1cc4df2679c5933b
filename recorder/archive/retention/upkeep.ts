// Keeps the catalogue and retention's state in agreement with the disk: directories are read again every minute, sizes are
// measured slowly, a few files at a time, and saved for the next start.

import type { Log } from '../../../base/log.ts';
import { DAY_MS, HOUR_MS } from '../../../base/units.ts';
import { ignoreMissing } from '../../../base/file-calls.ts';
import type { Catalogue } from '../catalogue/catalogue.ts';
import type { FileSystem } from '../disk/file-system.ts';
import { dayPath, type SegmentName } from '../disk/names.ts';
import type { SegmentStore } from '../disk/segment-store.ts';
import { readIfThere, replaceFile } from '../disk/state-file.ts';
import type { Candidates } from './candidates.ts';
import type { Remover } from './remover.ts';
import { formatTotals, parseTotals } from './saved-totals.ts';
import { concurrently } from '../../../base/concurrently.ts';
import type { CameraDay } from '../catalogue/camera-day.ts';

const CONCURRENT_LOOKS = 4;

interface UpkeepDeps {
  readonly fs: FileSystem;
  readonly store: SegmentStore;
  readonly catalogue: Catalogue;
  readonly candidates: Candidates;
  readonly remover: Remover;
  readonly busy: () => ReadonlySet<string>;
  readonly wallMs: () => number;
  readonly log: Log;
}

const REFRESH_MS = 60_000;
const SAVE_MS = 300_000;
/** Everything is measured again this often, a camera's day every few seconds. */
const ROUND_MS = DAY_MS;
const CHECK_DAY_MS = 2_000;
/** The directory of an empty day that was changed more recently may be about to be filled by a restore. */
const EMPTY_DAY_MS = HOUR_MS;

export class Upkeep {
  readonly #deps: UpkeepDeps;
  readonly #measure: Measure;
  #refreshedMs: number;
  #savedMs: number;
  #checkedMs: number;
  #roundMs: number;

  constructor(deps: UpkeepDeps, nowMs: number) {
    this.#deps = deps;
    this.#measure = new Measure(deps);
    this.#refreshedMs = this.#savedMs = this.#checkedMs = this.#roundMs = nowMs;
  }

  /** Restores the sizes that the last run has saved. */
  async start(): Promise<void> {
    // The sizes are measured again.
    const text = await readIfThere(this.#deps.fs, this.#savedPath).catch(() => undefined);
    const saved = parseTotals(text ?? '');
    for (const day of this.#deps.catalogue.days()) {
      const total = saved.get(day.cameraId)?.get(day.startMs);
      if (total) day.restore(total);
    }
  }

  /** Makes the next `refresh` read the directories again. */
  refreshSoon(): void {
    this.#refreshedMs = -Infinity;
  }

  /** Others may add or remove footage, with a backup or with rm. True when the directories were read again. */
  async refresh(nowMs: number): Promise<boolean> {
    if (nowMs - this.#refreshedMs < REFRESH_MS) return false;
    const { catalogue, candidates, remover } = this.#deps;
    this.#refreshedMs = nowMs;
    await catalogue.refresh();
    candidates.forgetAll();
    remover.retry();
    for (const dayMs of catalogue.emptyDays()) await this.#removeEmptyDay(dayMs);
    return true;
  }

  /** Measures one camera's day, if it is time for that. True when more days have segments of unknown size. */
  async measure(nowMs: number): Promise<boolean> {
    if (await this.#measure.unknown()) return this.#deps.catalogue.usage.unmeasured !== undefined;
    if (nowMs - this.#roundMs >= ROUND_MS && this.#measure.isRoundOver) {
      this.#roundMs = nowMs;
      this.#measure.beginRound();
    }
    if (nowMs - this.#checkedMs < CHECK_DAY_MS) return false;
    this.#checkedMs = nowMs;
    await this.#measure.next();
    return false;
  }

  /** Saves the sizes for the next start, every few minutes or `always`. */
  async save(nowMs: number, always = false): Promise<void> {
    const { store, catalogue, fs, log } = this.#deps;
    const { usage } = catalogue;
    if (!usage.dirty || (!always && nowMs - this.#savedMs < SAVE_MS)) return;
    this.#savedMs = nowMs;
    try {
      await store.checkDisk();
      const text = formatTotals(catalogue.days());
      usage.dirty = false;
      await replaceFile(fs, this.#savedPath, text);
    } catch (err) {
      // The next start measures what is not in the file.
      usage.dirty = true;
      log.debug({ err }, 'the sizes of the archive could not be stored');
    }
  }

  get #savedPath(): string {
    return this.#deps.store.ofState('.kube-nvr/usage.json');
  }

  async #removeEmptyDay(dayMs: number): Promise<void> {
    const { fs, store, remover, wallMs } = this.#deps;
    const path = await store.locate(dayPath(dayMs));
    const facts = await fs.facts(path).catch(ignoreMissing);
    if (facts && wallMs() - facts.mtimeMs > EMPTY_DAY_MS) await remover.removeDay(dayMs);
  }
}

interface MeasureDeps {
  readonly store: SegmentStore;
  readonly catalogue: Catalogue;
  readonly busy: () => ReadonlySet<string>;
  readonly log: Log;
}

/** Measures one camera's day at a time, file by file: first days with segments of unknown size, then all again, within a day or so. */
class Measure {
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
