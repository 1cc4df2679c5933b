// Keeps what retention knows in agreement with the disk: names compared every minute, sizes measured slowly, totals
// saved for the next start. Never more than a few files at a time.

import type { Log } from '../../../base/log.ts';
import { DAY_MS, HOUR_MS } from '../../../base/units.ts';
import type { Catalogue } from '../catalogue/catalogue.ts';
import type { FileSystem } from '../disk/file-system.ts';
import { dayPath } from '../disk/names.ts';
import type { SegmentStore } from '../disk/segment-store.ts';
import { readIfThere, replaceFile } from '../disk/state-file.ts';
import type { Candidates } from './candidates.ts';
import { Measure } from './measure.ts';
import type { Remover } from './remover.ts';
import { formatTotals, parseTotals } from './saved-totals.ts';

export interface UpkeepDeps {
  readonly fs: FileSystem;
  readonly store: SegmentStore;
  readonly catalogue: Catalogue;
  readonly candidates: Candidates;
  readonly remover: Remover;
  readonly busy: () => ReadonlySet<string>;
  readonly wallMs: () => number;
  readonly log: Log;
}

const COMPARE_NAMES_MS = 60_000;
const SAVE_MS = 300_000;
/** Everything is measured again this often, a camera's day every few seconds. */
const ROUND_MS = DAY_MS;
const CHECK_DAY_MS = 2_000;
/** An empty day that was touched later may be about to be filled, by a restore. */
const EMPTY_DAY_MS = HOUR_MS;

export class Upkeep {
  readonly #deps: UpkeepDeps;
  readonly #measure: Measure;
  #comparedMs: number;
  #savedMs: number;
  #checkedMs: number;
  #roundMs: number;

  constructor(deps: UpkeepDeps, nowMs: number) {
    this.#deps = deps;
    this.#measure = new Measure(deps);
    this.#comparedMs = this.#savedMs = this.#checkedMs = this.#roundMs = nowMs;
  }

  /** Takes up what the last run has saved. */
  async start(): Promise<void> {
    const text = await readIfThere(this.#deps.fs, this.#savedPath).catch(() => undefined);
    const saved = parseTotals(text ?? '');
    for (const day of this.#deps.catalogue.days()) {
      const total = saved.get(day.cameraId)?.get(day.startMs);
      if (total) day.restore(total);
    }
  }

  /** Names are to be compared at the next opportunity. */
  compareSoon(): void {
    this.#comparedMs = -Infinity;
  }

  /** Footage may come and go by another hand: by a restore, or by rm. True when it was time to look. */
  async compareNames(nowMs: number): Promise<boolean> {
    if (nowMs - this.#comparedMs < COMPARE_NAMES_MS) return false;
    const { catalogue, candidates, remover } = this.#deps;
    this.#comparedMs = nowMs;
    await catalogue.refresh();
    candidates.forgetAll();
    remover.retry();
    for (const dayMs of catalogue.emptyDays()) await this.#removeEmptyDay(dayMs);
    return true;
  }

  /** Measures one camera's day, when there is one to be measured now. True when more of them wait. */
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

  /** Keeps the totals for the next start, now and then or `always`. */
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
      // The next start measures what it does not find here.
      usage.dirty = true;
      log.debug({ err }, 'the sizes of the archive could not be kept');
    }
  }

  get #savedPath(): string {
    return this.#deps.store.absolute('.kube-nvr/usage.json');
  }

  async #removeEmptyDay(dayMs: number): Promise<void> {
    const { fs, store, remover, wallMs } = this.#deps;
    const facts = await fs.facts(store.absolute(dayPath(dayMs))).catch(() => undefined);
    if (facts && wallMs() - facts.mtimeMs > EMPTY_DAY_MS) await remover.removeDay(dayMs);
  }
}
