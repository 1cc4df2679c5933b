// How large the archive is, without walking it: what was closed and removed in, bytes by camera and day out. Kept in a
// small file between runs; where the number of names does not agree with it, files are measured again.

import { assert } from '../../../base/assert.ts';
import { dayPath, dayStartMs, parseDay, type SegmentName } from '../disk/names.ts';
import { parseJson } from '../disk/state-file.ts';

/** Closed segments of one camera that begin on one UTC day. */
export interface DayTotal {
  readonly count: number;
  readonly bytes: number;
}

/** Names in the archive: how many a camera has on a day. */
export interface DayCount {
  readonly cameraId: string;
  readonly dayStartMs: number;
  readonly count: number;
}

interface DayState {
  count: number;
  bytes: number;
  /** False while the bytes are only known from an earlier run, or not at all: then they are no more than there are. */
  measured: boolean;
  /** So that a measurement notices what happened meanwhile. */
  changes: number;
}

interface CameraState {
  bytes: number;
  readonly days: Map<number, DayState>;
}

const VERSION = 1;

/** What a file of totals says, by camera and start of the day. */
export type SavedTotals = ReadonlyMap<string, ReadonlyMap<number, DayTotal>>;

export class UsageLedger {
  readonly #cameras = new Map<string, CameraState>();
  #bytes = 0;
  #unmeasured = 0;
  /** Something differs from what was last saved. */
  dirty = false;

  /** Of closed segments. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether every file was measured; while not, `bytes` may be less than there are. */
  get isComplete(): boolean {
    return this.#unmeasured === 0;
  }

  bytesOf(cameraId: string): number {
    return this.#cameras.get(cameraId)?.bytes ?? 0;
  }

  cameras(): Iterable<string> {
    return this.#cameras.keys();
  }

  day(cameraId: string, startMs: number): DayTotal {
    return this.#cameras.get(cameraId)?.days.get(startMs) ?? { count: 0, bytes: 0 };
  }

  /** A segment was closed. */
  add({ cameraId, startMs }: SegmentName, sizeBytes: number): void {
    const day = this.#dayFor(cameraId, dayStartMs(startMs));
    day.count++;
    day.changes++;
    this.#change(cameraId, day, sizeBytes);
  }

  /** A closed segment of this size was removed. */
  remove({ cameraId, startMs }: SegmentName, sizeBytes: number): void {
    const dayMs = dayStartMs(startMs);
    const day = this.#cameras.get(cameraId)?.days.get(dayMs);
    if (!day) return;
    day.count = Math.max(0, day.count - 1);
    day.changes++;
    this.#change(cameraId, day, -Math.min(sizeBytes, day.bytes));
    if (day.count === 0) this.#drop(cameraId, dayMs);
  }

  /**
   * Compares with the names that the archive has: days that differ are to be measured, days without names are gone.
   * `saved` is what an earlier run left, for days that nothing is known of.
   */
  reconcile(names: Iterable<DayCount>, saved: SavedTotals = new Map()): void {
    const seen = new Map<string, Set<number>>();
    for (const { cameraId, dayStartMs: dayMs, count } of names) {
      if (count === 0) continue;
      let days = seen.get(cameraId);
      if (!days) seen.set(cameraId, (days = new Set()));
      days.add(dayMs);
      const known = this.#cameras.get(cameraId)?.days.get(dayMs);
      if (known ? known.count === count : this.#restore(cameraId, dayMs, count, saved)) continue;
      const day = this.#dayFor(cameraId, dayMs);
      // Never more than there is: nothing is removed for footage that somebody else has removed already.
      if (day.count > count) this.#change(cameraId, day, Math.round(-day.bytes * (1 - count / day.count)));
      day.count = count;
      day.changes++;
      this.#setMeasured(day, false);
    }
    for (const [cameraId, { days }] of this.#cameras) {
      for (const dayMs of days.keys()) if (!seen.get(cameraId)?.has(dayMs)) this.#drop(cameraId, dayMs);
    }
  }

  /** A day whose files are to be measured; undefined when all are known. */
  nextUnmeasured(): { readonly cameraId: string; readonly dayStartMs: number } | undefined {
    if (this.#unmeasured === 0) return undefined;
    for (const [cameraId, { days }] of this.#cameras) {
      for (const [dayMs, day] of days) if (!day.measured) return { cameraId, dayStartMs: dayMs };
    }
    return undefined;
  }

  /** What a measurement hands back to `measured`. */
  versionOf(cameraId: string, dayMs: number): number {
    return this.#cameras.get(cameraId)?.days.get(dayMs)?.changes ?? 0;
  }

  /** The files of a day were measured. False when something has changed since `version`: measure again. */
  measured(cameraId: string, dayMs: number, total: DayTotal, version: number): boolean {
    if (this.versionOf(cameraId, dayMs) !== version) return false;
    if (total.count === 0) {
      this.#drop(cameraId, dayMs);
      return true;
    }
    const day = this.#dayFor(cameraId, dayMs);
    this.#change(cameraId, day, total.bytes - day.bytes);
    day.count = total.count;
    this.#setMeasured(day, true);
    return true;
  }

  format(): string {
    const days: Record<string, Record<string, [count: number, bytes: number]>> = {};
    for (const [cameraId, camera] of this.#cameras) {
      for (const [dayMs, { count, bytes, measured }] of camera.days) {
        if (measured) (days[dayPath(dayMs)] ??= {})[cameraId] = [count, bytes];
      }
    }
    return JSON.stringify({ version: VERSION, days });
  }

  #restore(cameraId: string, dayMs: number, count: number, saved: SavedTotals): boolean {
    const total = saved.get(cameraId)?.get(dayMs);
    if (!total) return false;
    const day = this.#dayFor(cameraId, dayMs);
    this.#change(cameraId, day, total.bytes);
    day.count = total.count;
    return total.count === count;
  }

  #dayFor(cameraId: string, dayMs: number): DayState {
    let camera = this.#cameras.get(cameraId);
    if (!camera) this.#cameras.set(cameraId, (camera = { bytes: 0, days: new Map() }));
    let day = camera.days.get(dayMs);
    if (!day) camera.days.set(dayMs, (day = { count: 0, bytes: 0, measured: true, changes: 0 }));
    return day;
  }

  #change(cameraId: string, day: DayState, bytes: number): void {
    const camera = this.#cameras.get(cameraId);
    assert(camera, 'a day of no camera');
    day.bytes += bytes;
    camera.bytes += bytes;
    this.#bytes += bytes;
    this.dirty = true;
  }

  #setMeasured(day: DayState, measured: boolean): void {
    if (day.measured === measured) return;
    day.measured = measured;
    this.#unmeasured += measured ? -1 : 1;
    this.dirty = true;
  }

  #drop(cameraId: string, dayMs: number): void {
    const camera = this.#cameras.get(cameraId);
    const day = camera?.days.get(dayMs);
    if (!camera || !day) return;
    this.#change(cameraId, day, -day.bytes);
    this.#setMeasured(day, true);
    camera.days.delete(dayMs);
    if (camera.days.size === 0) this.#cameras.delete(cameraId);
  }
}

/** What `format` wrote; empty for anything else. */
export function parseTotals(text: string): SavedTotals {
  const totals = new Map<string, Map<number, DayTotal>>();
  const value = parseJson(text);
  if (!isRecord(value) || value['version'] !== VERSION || !isRecord(value['days'])) return totals;
  for (const [path, cameras] of Object.entries(value['days'])) {
    const [year = '', month = '', day = ''] = path.split('/');
    const dayMs = parseDay(year, month, day);
    if (dayMs === undefined || !isRecord(cameras)) continue;
    for (const [cameraId, total] of Object.entries(cameras)) {
      if (!Array.isArray(total)) continue;
      const [count, bytes] = total as unknown[];
      if (!isAmount(count) || !isAmount(bytes)) continue;
      let days = totals.get(cameraId);
      if (!days) totals.set(cameraId, (days = new Map()));
      days.set(dayMs, { count, bytes });
    }
  }
  return totals;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isAmount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
