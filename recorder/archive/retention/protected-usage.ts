// How many bytes of each camera's footage are protected. The catalogue knows the size of whole days; only the days in
// which a window begins or ends are looked at file by file.

import { DAY_MS } from '../../../base/units.ts';
import type { CameraDay } from '../catalogue/camera-day.ts';
import type { Catalogue } from '../catalogue/catalogue.ts';
import type { SegmentStore } from '../disk/segment-store.ts';
import type { Protections } from './protections.ts';

export interface ProtectedUsageDeps {
  readonly store: SegmentStore;
  readonly catalogue: Catalogue;
  readonly protections: Protections;
}

export class ProtectedUsage {
  readonly #deps: ProtectedUsageDeps;
  readonly #bytes = new Map<string, number>();
  readonly #stale = new Set<string>();

  constructor(deps: ProtectedUsageDeps) {
    this.#deps = deps;
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
    const { protections, catalogue } = this.#deps;
    const spans = protections.spans(cameraId);
    let bytes = 0;
    for (const day of catalogue.days()) {
      if (day.cameraId !== cameraId) continue;
      const { startMs } = day;
      const whole = spans.some(({ fromMs, toMs }) => fromMs <= startMs && toMs >= startMs + DAY_MS);
      // A segment of the evening reaches into the next day.
      const touched = protections.covers(cameraId, startMs, startMs + 2 * DAY_MS);
      if (whole) bytes += day.bytes;
      else if (touched) bytes += await this.#measureDay(day);
    }
    return bytes;
  }

  async #measureDay(day: CameraDay): Promise<number> {
    const { store, catalogue, protections } = this.#deps;
    const { cameraId } = day;
    const segments = day.segments();
    let bytes = 0;
    for (const [i, segment] of segments.entries()) {
      const { startMs } = segment;
      const nextStartMs = segments[i + 1]?.startMs;
      if (!protections.covers(cameraId, startMs, nextStartMs ?? startMs + 2 * DAY_MS)) continue;
      const inside = protections.covers(cameraId, startMs, startMs);
      const endMs = inside ? startMs : await catalogue.endOf({ segment, nextStartMs });
      if (endMs === undefined || !protections.covers(cameraId, startMs, endMs)) continue;
      const facts = await store.fs.facts(store.absolute(day.pathOf(segment))).catch(() => undefined);
      bytes += facts?.sizeBytes ?? 0;
    }
    return bytes;
  }
}
