// Removes one segment: its file, and then everything that is known of it.

import { errorCode } from '../../../base/error.ts';
import type { Log } from '../../../base/log.ts';
import type { Catalogue } from '../catalogue/catalogue.ts';
import type { FileSystem } from '../disk/file-system.ts';
import { dayStartMs } from '../disk/names.ts';
import type { SegmentStore } from '../disk/segment-store.ts';
import type { Candidate, Candidates, Respect } from './candidates.ts';
import type { RetentionMetrics } from './metrics.ts';
import type { RetentionRule } from './plan.ts';

interface RemoverDeps {
  /** The disk as it is, also when it is full. */
  readonly fs: FileSystem;
  readonly store: SegmentStore;
  readonly catalogue: Catalogue;
  readonly candidates: Candidates;
  readonly metrics: RetentionMetrics;
  readonly log: Log;
}

export class Remover {
  readonly #deps: RemoverDeps;
  #removals = 0;
  #stuck: string | undefined;

  constructor(deps: RemoverDeps) {
    this.#deps = deps;
  }

  /** How many segments were removed. */
  get removals(): number {
    return this.#removals;
  }

  /** A segment that could not be removed, and is not tried again until `retry`. */
  get stuck(): string | undefined {
    return this.#stuck;
  }

  retry(): void {
    this.#stuck = undefined;
  }

  /**
   * Removes the file first, and then its records, including its row in a database: a crash in between leaves a row
   * without a file, which the next start finds when it compares both. In the opposite order, a crash would leave a file
   * that is never listed and never removed. False when the segment may no longer be removed, or cannot be.
   */
  async remove(candidate: Candidate, rule: RetentionRule, respect: Respect): Promise<boolean> {
    const { fs, store, catalogue, candidates, metrics, log } = this.#deps;
    const { segment, path, sizeBytes } = candidate;
    if (!candidates.isFree(candidate, respect)) {
      candidates.forget(segment.cameraId);
      return false;
    }
    try {
      await fs.remove(await store.locate(path));
    } catch (err) {
      if (errorCode(err) !== 'ENOENT') return this.#leave(candidate, err);
      // Another program has removed the file; or the whole disk is gone, and then the records have to stay.
      await store.disks.checkAll();
    }
    this.#removals++;
    catalogue.removed(segment, sizeBytes);
    candidates.removed(candidate);
    metrics.removed(rule, sizeBytes);
    log.debug({ camera: segment.cameraId, file: path, rule, sizeBytes }, 'segment removed');
    const dayMs = dayStartMs(segment.startMs);
    if (!catalogue.hasDay(dayMs)) await this.removeDay(dayMs);
    return true;
  }

  /** Removes the directory of a day without segments, if it is empty. */
  async removeDay(dayMs: number): Promise<void> {
    const { store, catalogue } = this.#deps;
    if (await store.removeEmptyDay(dayMs)) catalogue.removedDay(dayMs);
  }

  #leave(candidate: Candidate, err: unknown): false {
    const { candidates, metrics, log } = this.#deps;
    candidates.unremovable(candidate);
    metrics.failed();
    if (this.#stuck === undefined) log.warn({ file: candidate.path, err }, 'segment cannot be removed');
    this.#stuck = candidate.path;
    return false;
  }
}
