// How much of the archive is protected: windows and totals in, bytes by camera out. Whole days are taken from the
// ledger; only the days in which a window begins or ends are looked at file by file.

import { DAY_MS } from '../../../base/units.ts';
import type { ArchiveIndex } from '../catalogue/catalogue.ts';
import type { Footage } from '../catalogue/footage.ts';
import { formatPath } from '../disk/names.ts';
import type { SegmentStore } from '../disk/segment-store.ts';
import type { UsageLedger } from './ledger.ts';
import type { Protections } from './protections.ts';

export interface ProtectedUsageDeps {
  readonly store: SegmentStore;
  readonly index: ArchiveIndex;
  readonly ledger: UsageLedger;
  readonly protections: Protections;
}

export class ProtectedUsage {
  readonly #deps: ProtectedUsageDeps;
  readonly #footage: Footage;
  readonly #bytes = new Map<string, number>();
  readonly #stale = new Set<string>();

  constructor(deps: ProtectedUsageDeps) {
    this.#deps = deps;
    this.#footage = deps.index.footage;
  }

  /** As of the last `refresh`. */
  bytesOf(cameraId: string): number {
    return this.#bytes.get(cameraId) ?? 0;
  }

  get bytes(): number {
    let sum = 0;
    for (const bytes of this.#bytes.values()) sum += bytes;
    return sum;
  }

  /** Windows or footage of the camera have changed. */
  changed(cameraId: string): void {
    this.#stale.add(cameraId);
  }

  /** A segment was closed. */
  closed(cameraId: string, startMs: number, endMs: number, sizeBytes: number): void {
    if (!this.#deps.protections.covers(cameraId, startMs, endMs)) return;
    this.#bytes.set(cameraId, this.bytesOf(cameraId) + sizeBytes);
  }

  /** Brings what has changed up to date. Never throws: what cannot be read counts as it did. */
  async refresh(): Promise<void> {
    for (const cameraId of this.#stale) {
      this.#stale.delete(cameraId);
      const bytes = await this.#measure(cameraId).catch(() => undefined);
      if (bytes === undefined) continue;
      if (bytes > 0) this.#bytes.set(cameraId, bytes);
      else this.#bytes.delete(cameraId);
    }
  }

  async #measure(cameraId: string): Promise<number> {
    const { protections, ledger } = this.#deps;
    const spans = protections.spans(cameraId);
    let bytes = 0;
    for (const { dayStartMs: dayMs, ...day } of this.#footage.counts()) {
      if (day.cameraId !== cameraId) continue;
      const whole = spans.some(({ fromMs, toMs }) => fromMs <= dayMs && toMs >= dayMs + DAY_MS);
      // A segment of the evening reaches into the next day.
      const touched = protections.covers(cameraId, dayMs, dayMs + 2 * DAY_MS);
      if (whole) bytes += ledger.day(cameraId, dayMs).bytes;
      else if (touched) bytes += await this.#measureDay(cameraId, dayMs);
    }
    return bytes;
  }

  async #measureDay(cameraId: string, dayMs: number): Promise<number> {
    const { store, index, protections } = this.#deps;
    const segments = this.#footage.segmentsOf(cameraId, dayMs);
    let bytes = 0;
    for (const [i, segment] of segments.entries()) {
      const { startMs } = segment;
      const nextStartMs = segments[i + 1]?.startMs;
      if (!protections.covers(cameraId, startMs, nextStartMs ?? startMs + 2 * DAY_MS)) continue;
      const inside = protections.covers(cameraId, startMs, startMs);
      const endMs = inside ? startMs : await index.endOf({ segment, nextStartMs });
      if (endMs === undefined || !protections.covers(cameraId, startMs, endMs)) continue;
      const facts = await store.fs.facts(store.absolute(formatPath(segment))).catch(() => undefined);
      bytes += facts?.sizeBytes ?? 0;
    }
    return bytes;
  }
}
