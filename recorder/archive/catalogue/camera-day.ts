// One camera's segments of one UTC day: a row for each segment, by start. Rows are kept as columns, because half a
// million objects would take three times the memory.

import { baseNameInDay, dayPath, type NamedTimes, type SegmentName } from '../disk/names.ts';
import { ORIGINS } from '../../mp4/meta.ts';
import type { SegmentDetails } from './segment.ts';
import type { UsedDay, Usage } from './usage.ts';

/** Closed segments: how many, and their size together. */
export interface DayTotal {
  readonly count: number;
  readonly bytes: number;
}

/** Stands for the size of a segment that is not in the total: it is being written, or its size was not read yet. */
const NOT_COUNTED = -1;
/** Stands for the size of a segment of which only the day's total is known, from the last run. */
const IN_REST = -2;

/** The contents of files, row by row; NaN: not in the file, or not read yet. */
interface Details {
  mtimesMs: number[];
  sequences: number[];
  endsMs: number[];
  /** Indices of `ORIGINS`; NaN: live. */
  origins: number[];
}

export class CameraDay implements UsedDay {
  readonly cameraId: string;
  /** Midnight UTC. */
  readonly startMs: number;
  /** `YYYY/MM/DD` */
  readonly path: string;
  readonly #usage: Usage;
  /** Milliseconds since midnight, ascending. */
  #timesMs: number[] = [];
  #names: string[] = [];
  #sizes: number[] = [];
  #details: Details | undefined;
  /** Size of all rows that are IN_REST together, and their number. */
  #rest: DayTotal = { count: 0, bytes: 0 };
  #knownBytes = 0;
  #isMeasured = true;

  constructor(cameraId: string, startMs: number, usage: Usage) {
    this.cameraId = cameraId;
    this.startMs = startMs;
    this.path = dayPath(startMs);
    this.#usage = usage;
    usage.began(this);
  }

  /** Of all segments, also those that are not closed. */
  get count(): number {
    return this.#timesMs.length;
  }

  /** Start of a segment, counted from 0. */
  startAt(row: number): number {
    return this.startMs + (this.#timesMs[row] as number);
  }

  /** Where a closed segment ends; NaN unless its file was read. */
  endAt(row: number): number {
    return this.#details?.endsMs[row] ?? NaN;
  }

  segmentAt(row: number): SegmentName {
    return { name: this.#names[row] as string, cameraId: this.cameraId, startMs: this.startAt(row) };
  }

  /** All segments as they are now, by start. */
  segments(): SegmentName[] {
    return this.#names.map((_, row) => this.segmentAt(row));
  }

  /** Row of the last segment that begins before `ms`, -1 when none does. */
  lastBefore(ms: number): number {
    const timeMs = ms - this.startMs;
    let low = 0;
    let high = this.#timesMs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#timesMs[middle] as number) < timeMs) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** Path of a segment of this day, relative to the record path. */
  pathOf(segment: SegmentName): string {
    return `${this.path}/${baseNameInDay(this.path, segment.startMs - this.startMs, segment)}`;
  }

  has(segment: SegmentName): boolean {
    return this.#rowOf(segment) !== undefined;
  }

  /** Size of a closed segment; undefined when it is not known by itself. */
  sizeOf(segment: SegmentName): number | undefined {
    const row = this.#rowOf(segment);
    const size = row === undefined ? NOT_COUNTED : (this.#sizes[row] as number);
    return size < 0 ? undefined : size;
  }

  /** The details in the file of a segment, once it was read and no longer changes. */
  details(segment: SegmentName): SegmentDetails | undefined {
    const row = this.#rowOf(segment);
    if (row === undefined || !this.#details) return undefined;
    const mtimeMs = this.#details.mtimesMs[row] as number;
    if (Number.isNaN(mtimeMs)) return undefined;
    const endMs = this.#details.endsMs[row] as number;
    const origin = ORIGINS[this.#details.origins[row] as number];
    return {
      sizeBytes: this.#sizes[row] as number,
      mtimeMs,
      sequence: this.#details.sequences[row] as number,
      endMs: Number.isNaN(endMs) ? undefined : endMs,
      ...(origin && { origin }),
    };
  }

  /** Stores the details in the file of a closed segment. */
  setDetails(segment: SegmentName, { sizeBytes, mtimeMs, sequence, endMs, origin }: SegmentDetails): void {
    const row = this.#rowOf(segment);
    if (row === undefined) return;
    this.#setSize(row, sizeBytes);
    const unread = (): number[] => this.#timesMs.map(() => NaN);
    this.#details ??= { mtimesMs: unread(), sequences: unread(), endsMs: unread(), origins: unread() };
    this.#details.mtimesMs[row] = mtimeMs;
    this.#details.sequences[row] = sequence;
    this.#details.endsMs[row] = endMs ?? NaN;
    this.#details.origins[row] = origin ? ORIGINS.indexOf(origin) : NaN;
  }

  /** The file of a segment has changed although it was closed. */
  forget(segment: SegmentName): void {
    const row = this.#rowOf(segment);
    if (row === undefined) return;
    this.#uncount(row);
    this.#setMeasured(false);
    if (this.#details) this.#details.mtimesMs[row] = NaN;
  }

  /** This process has created a segment. */
  add(segment: SegmentName): void {
    if (this.has(segment)) return;
    const timeMs = segment.startMs - this.startMs;
    let row = this.count;
    const rows = { timesMs: this.#timesMs, names: this.#names };
    while (row > 0 && !isBefore(rows, row - 1, timeMs, segment.name)) row--;
    this.#timesMs.splice(row, 0, timeMs);
    this.#names.splice(row, 0, segment.name);
    this.#sizes.splice(row, 0, NOT_COUNTED);
    for (const column of this.#detailColumns()) column.splice(row, 0, NaN);
  }

  /** This process has removed a segment; `sizeBytes`: its size, if that is known. */
  remove(segment: SegmentName, sizeBytes?: number): void {
    const row = this.#rowOf(segment);
    if (row === undefined) return;
    if (sizeBytes !== undefined && this.#sizes[row] === IN_REST) this.#setSize(row, sizeBytes);
    this.#vanished(row);
    this.#timesMs.splice(row, 1);
    this.#names.splice(row, 1);
    this.#sizes.splice(row, 1);
    for (const column of this.#detailColumns()) column.splice(row, 1);
  }

  /** The directory was read: what is known of files that are still there is kept. */
  replace(found: readonly NamedTimes[]): void {
    const { timesMs, names } = sorted(found);
    const before = { count: this.count, timesMs: this.#timesMs, names: this.#names, sizes: this.#sizes };
    const details = this.#details;
    const sizes = timesMs.map(() => NOT_COUNTED);
    const kept: Details | undefined = details && {
      mtimesMs: timesMs.map(() => NaN),
      sequences: timesMs.map(() => NaN),
      endsMs: timesMs.map(() => NaN),
      origins: timesMs.map(() => NaN),
    };
    let isNew = false;
    let old = 0;
    for (let row = 0; row < timesMs.length; row++) {
      while (old < before.count && isBefore(before, old, timesMs[row] as number, names[row] as string)) {
        this.#vanished(old++);
      }
      if (before.timesMs[old] !== timesMs[row] || before.names[old] !== names[row]) {
        isNew = true;
        continue;
      }
      sizes[row] = before.sizes[old] as number;
      if (details && kept) {
        kept.mtimesMs[row] = details.mtimesMs[old] as number;
        kept.sequences[row] = details.sequences[old] as number;
        kept.endsMs[row] = details.endsMs[old] as number;
        kept.origins[row] = details.origins[old] as number;
      }
      old++;
    }
    while (old < before.count) this.#vanished(old++);
    this.#timesMs = timesMs;
    this.#names = names;
    this.#sizes = sizes;
    this.#details = kept;
    if (isNew) this.#setMeasured(false);
  }

  /** The directory of the day is gone, or has no file of the camera any more. */
  end(): void {
    this.replace([]);
    this.#setMeasured(true);
    this.#usage.ended(this);
  }

  /** Size of the closed segments; while not all are measured, there may be more. */
  get bytes(): number {
    return this.#knownBytes + this.#rest.bytes;
  }

  /** False while there are segments, other than those that are being written, of unknown size. */
  get isMeasured(): boolean {
    return this.#isMeasured;
  }

  /** The segments whose sizes are in `bytes`. */
  get total(): DayTotal {
    return { count: this.#sizes.filter((size) => size !== NOT_COUNTED).length, bytes: this.bytes };
  }

  /**
   * Takes over what an earlier run knew. If the number of segments of a day has changed, they have to be measured
   * again. Until then their size is estimated too low rather than too high, so that nothing is removed for footage that
   * another program has removed already.
   */
  restore({ count, bytes }: DayTotal): void {
    if (this.#isMeasured || count === 0) return;
    const rows = [...this.#sizes.keys()].filter((row) => this.#sizes[row] === NOT_COUNTED);
    const share = Math.min(1, this.count / count);
    const restBytes = Math.max(0, Math.round(bytes * share) - this.#knownBytes);
    for (const row of rows) this.#sizes[row] = IN_REST;
    this.#setRest({ count: rows.length, bytes: restBytes });
    if (count === this.count) this.#setMeasured(true);
  }

  /**
   * The size of a closed segment was looked at: 0 for one that is gone. Without `sizeBytes`, its disk did not say: what is
   * known stays, and what was never known counts as 0.
   */
  measured(segment: SegmentName, sizeBytes?: number): void {
    const row = this.#rowOf(segment);
    if (row === undefined) return;
    if (sizeBytes !== undefined) this.#setSize(row, sizeBytes);
    else if (this.#sizes[row] === NOT_COUNTED) this.#setSize(row, 0);
  }

  /** The segments whose own size is not known, also those that are being written. */
  unmeasured(): SegmentName[] {
    return this.segments().filter((_, row) => (this.#sizes[row] as number) < 0);
  }

  /** The sizes of all closed segments were looked at. */
  allMeasured(): void {
    this.#setMeasured(true);
  }

  #rowOf({ name, startMs }: SegmentName): number | undefined {
    const timeMs = startMs - this.startMs;
    for (let row = this.lastBefore(startMs) + 1; this.#timesMs[row] === timeMs; row++) {
      if (this.#names[row] === name) return row;
    }
    return undefined;
  }

  #detailColumns(): number[][] {
    return this.#details ? Object.values(this.#details) : [];
  }

  #setSize(row: number, sizeBytes: number): void {
    const before = this.#sizes[row] as number;
    if (before === IN_REST) this.#leaveRest(sizeBytes);
    const knownBytes = sizeBytes - Math.max(0, before);
    this.#sizes[row] = sizeBytes;
    this.#knownBytes += knownBytes;
    this.#changed(knownBytes);
  }

  #uncount(row: number): void {
    const before = this.#sizes[row] as number;
    if (before === IN_REST) this.#leaveRest(this.#rest.bytes / this.#rest.count);
    this.#sizes[row] = NOT_COUNTED;
    if (before < 0) return;
    this.#knownBytes -= before;
    this.#changed(-before);
  }

  /** The file of a row is gone: if its size was not known by itself, the others have to be measured. */
  #vanished(row: number): void {
    if (this.#sizes[row] === IN_REST) this.#setMeasured(false);
    this.#uncount(row);
  }

  #leaveRest(sizeBytes: number): void {
    const { count, bytes } = this.#rest;
    this.#setRest({ count: count - 1, bytes: count === 1 ? 0 : Math.max(0, Math.round(bytes - sizeBytes)) });
  }

  #setRest(rest: DayTotal): void {
    const change = rest.bytes - this.#rest.bytes;
    this.#rest = rest;
    this.#changed(change);
  }

  #changed(bytes: number): void {
    this.#usage.changed(this.cameraId, bytes);
  }

  #setMeasured(isMeasured: boolean): void {
    if (this.#isMeasured === isMeasured) return;
    this.#isMeasured = isMeasured;
    this.#usage.measured(this);
  }
}

/** Files of one millisecond have different names: the camera was renamed. */
function sorted(found: readonly NamedTimes[]): { timesMs: number[]; names: string[] } {
  const [only] = found;
  if (only && found.length === 1) {
    // Sorted as numbers, in a tenth of the time.
    const timesMs = Array.from(Int32Array.from(only.timesMs).sort());
    return { timesMs, names: timesMs.map(() => only.name) };
  }
  const rows = found.flatMap(({ name, timesMs }) => timesMs.map((timeMs) => ({ timeMs, name })));
  rows.sort((a, b) => a.timeMs - b.timeMs || (a.name < b.name ? -1 : 1));
  return { timesMs: rows.map(({ timeMs }) => timeMs), names: rows.map(({ name }) => name) };
}

interface Rows {
  readonly timesMs: readonly number[];
  readonly names: readonly string[];
}

/** Whether a row comes before another segment, or beside it under another name. */
function isBefore({ timesMs, names }: Rows, row: number, timeMs: number, name: string): boolean {
  const own = timesMs[row] as number;
  return own < timeMs || (own === timeMs && (names[row] as string) < name);
}
