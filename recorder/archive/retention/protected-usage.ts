// How many bytes of each camera's footage are protected. The catalogue knows the size of whole days; only the days in
// which a window begins or ends are looked at file by file.

import { DAY_MS } from '../../../base/units.ts';
import { ignoreMissing } from '../../../base/file-calls.ts';
import type { CameraDay } from '../catalogue/camera-day.ts';
import type { Catalogue } from '../catalogue/catalogue.ts';
import { MAX_SEGMENT_MS } from '../catalogue/segment.ts';
import type { SegmentName } from '../disk/names.ts';
import type { SegmentStore } from '../disk/segment-store.ts';
import type { Protections } from './protections.ts';

interface ProtectedUsageDeps {
  readonly store: SegmentStore;
  readonly catalogue: Catalogue;
  readonly protections: Protections;
  /** Paths of segments that are not closed. */
  readonly busy: () => ReadonlySet<string>;
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

  closed(cameraId: string, startMs: number, endMs: number): void {
    if (this.#deps.protections.covers(cameraId, startMs, endMs)) this.changed(cameraId);
  }

  /** Updates what has changed. Never throws: what cannot be read keeps its last value. */
  async refresh(): Promise<void> {
    for (const cameraId of this.#stale) {
      this.#stale.delete(cameraId);
      // It keeps its last value.
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
      // Its last segment may end on the next day, or after it.
      const touched = protections.covers(cameraId, startMs, startMs + DAY_MS + MAX_SEGMENT_MS);
      if (whole) bytes += day.bytes;
      else if (touched) bytes += await this.#measureDay(day);
    }
    return bytes;
  }

  async #measureDay(day: CameraDay): Promise<number> {
    const { catalogue, protections } = this.#deps;
    const { cameraId } = day;
    const segments = day.segments();
    let bytes = 0;
    for (const [i, segment] of segments.entries()) {
      const { startMs } = segment;
      const nextStartMs = segments[i + 1]?.startMs;
      if (!protections.covers(cameraId, startMs, nextStartMs ?? startMs + MAX_SEGMENT_MS)) continue;
      const inside = protections.covers(cameraId, startMs, startMs);
      const endMs = inside ? startMs : await catalogue.endOf({ segment, nextStartMs });
      if (endMs === undefined || !protections.covers(cameraId, startMs, endMs)) continue;
      bytes += day.sizeOf(segment) ?? (await this.#measureFile(day, segment));
    }
    return bytes;
  }

  /** Size of a closed segment; 0 when its file is gone or cannot be examined, and for an open segment. */
  async #measureFile(day: CameraDay, segment: SegmentName): Promise<number> {
    const { store, busy } = this.#deps;
    const path = day.pathOf(segment);
    if (busy().has(path)) return 0;
    const facts = await store.fs.facts(await store.locate(path)).catch(ignoreMissing);
    if (!facts) return 0;
    day.measured(segment, facts.sizeBytes);
    return facts.sizeBytes;
  }
}
