// Formats and parses the paths of segments: `YYYY/MM/DD/<name>_<camera_id>_<YYYYMMDD>_<HHMMSSmmm>.mp4`. All times are UTC. The
// footage of a preview has the id `<camera_id>~preview`.
// Listing and recovery need to know nothing but the path of a file.

import { isFootageId } from '../../../base/camera-id.ts';
import { DAY_MS } from '../../../base/units.ts';

/** The parts of the path of a segment. */
export interface SegmentName {
  /** Contains only characters for file names; see `fileNameOf`. */
  readonly name: string;
  readonly cameraId: string;
  /** Milliseconds since 1970 of the first picture. */
  readonly startMs: number;
}

/**
 * The longest `<name>`: with the longest camera id and the prefix of a marker, a name has less than the 255 bytes of ext4
 * and XFS.
 */
export const MAX_NAME_BYTES = 128;
const NAME = /^[A-Za-z0-9-][A-Za-z0-9.-]{0,127}$/;
const BASE_NAME = /^([^_]+)_([^_]+)_(\d{8})_(\d{9})\.mp4$/;

/** The display name of a camera in file names. Other characters become `-`, so that `_` is a separator only. */
export function fileNameOf(displayName: string): string {
  // One `-` for a character of two UTF-16 units; no leading dot, which would hide the file from `ls`.
  const name = displayName.replace(/[^A-Za-z0-9.-]/gu, '-').replace(/^\./, '-');
  return name.slice(0, MAX_NAME_BYTES) || '-';
}

/** The directory of a day, relative to the record path: `2026/11/21`. */
export function dayPath(ms: number): string {
  const { year, month, day } = fields(ms);
  return `${year}/${month}/${day}`;
}

/** Milliseconds since 1970 at which the day in `year`, `month`, `day` begins; undefined when there is no such day. */
export function parseDay(year: string, month: string, day: string): number | undefined {
  if (!/^\d{4}$/.test(year) || !/^\d{2}$/.test(month) || !/^\d{2}$/.test(day)) return undefined;
  const ms = Date.UTC(Number(year), Number(month) - 1, Number(day));
  // Date.UTC turns the 31st of a short month into the next day, and the years 0 to 99 into 1900 to 1999.
  return dayPath(ms) === `${year}/${month}/${day}` ? ms : undefined;
}

/** The file's name without its directory. */
export function formatBaseName(segment: SegmentName): string {
  const { year, month, day, time } = fields(segment.startMs);
  return `${segment.name}_${segment.cameraId}_${year}${month}${day}_${time}.mp4`;
}

/** The path relative to the record path, with `/`. */
export const formatPath = (segment: SegmentName): string => `${dayPath(segment.startMs)}/${formatBaseName(segment)}`;

/** `formatBaseName` for a time of a day in `YYYY/MM/DD`, without a Date: a listing forms hundreds of names. */
export function baseNameInDay(day: string, timeMs: number, { name, cameraId }: Stem): string {
  return `${name}_${cameraId}_${day.slice(0, 4)}${day.slice(5, 7)}${day.slice(8)}_${formatTime(timeMs)}.mp4`;
}

/** Undefined for every file that is not named as a segment. */
export function parseBaseName(text: string): SegmentName | undefined {
  const match = BASE_NAME.exec(text);
  if (!match) return undefined;
  const [, name = '', cameraId = '', date = '', time = ''] = match;
  if (!NAME.test(name) || !isFootageId(cameraId)) return undefined;
  const dayMs = parseDay(date.slice(0, 4), date.slice(4, 6), date.slice(6));
  const timeMs = parseTime(time, 0);
  if (dayMs === undefined || timeMs === undefined) return undefined;
  return { name, cameraId, startMs: dayMs + timeMs };
}

/** The common part of all names of a camera. */
type Stem = Pick<SegmentName, 'name' | 'cameraId'>;
/** `_YYYYMMDD_HHMMSSmmm.mp4` */
const SUFFIX_BYTES = 23;
const TIME_BYTES = 9;

/** A camera's segments on one day under one name. */
export interface NamedTimes extends Stem {
  /** Milliseconds since midnight, in the order of the names that were read. */
  readonly timesMs: readonly number[];
}

/**
 * Parses the names in the directory of one day, and ignores names that are not segments of that day. There are thousands of
 * names that differ in their last digits, and half a million at a start: no object is allocated for a name.
 */
export function readNamesOfDay(dayMs: number, names: readonly string[]): NamedTimes[] {
  const date = `_${dayPath(dayMs).replaceAll('/', '')}_`;
  const known = new Map<string, (Stem & { timesMs: number[] }) | undefined>();
  for (const text of names) {
    const cut = text.length - SUFFIX_BYTES;
    if (cut < 3 || !text.startsWith(date, cut) || !text.endsWith('.mp4')) continue;
    const timeMs = parseTime(text, cut + date.length);
    if (timeMs === undefined) continue;
    const stem = text.slice(0, cut);
    let found = known.get(stem);
    if (!found) {
      if (known.has(stem)) continue;
      const parsed = parseStem(stem);
      known.set(stem, (found = parsed && { ...parsed, timesMs: [] }));
    }
    found?.timesMs.push(timeMs);
  }
  return [...known.values()].filter((found) => found !== undefined);
}

function parseStem(text: string): Stem | undefined {
  const [name = '', cameraId = '', ...more] = text.split('_');
  return NAME.test(name) && isFootageId(cameraId) && more.length === 0 ? { name, cameraId } : undefined;
}

/** Undefined when the path is not that of a segment, or its directory does not match the day in the name. */
export function parsePath(path: string): SegmentName | undefined {
  const segment = parseBaseName(path.slice(path.lastIndexOf('/') + 1));
  return segment && formatPath(segment) === path ? segment : undefined;
}

/** The first instant of the UTC day in which `ms` lies. */
export const dayStartMs = (ms: number): number => Math.floor(ms / DAY_MS) * DAY_MS;

/** `HHMMSSmmm` in `text` from `at` on, as milliseconds since midnight; undefined when that is no time. */
function parseTime(text: string, at: number): number | undefined {
  let digits = 0;
  for (let i = at; i < at + TIME_BYTES; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (!(digit >= 0 && digit <= 9)) return undefined;
    digits = digits * 10 + digit;
  }
  const hours = Math.floor(digits / 10_000_000);
  const minutes = Math.floor(digits / 100_000) % 100;
  const seconds = Math.floor(digits / 1000) % 100;
  if (hours > 23 || minutes > 59 || seconds > 59) return undefined;
  return ((hours * 60 + minutes) * 60 + seconds) * 1000 + (digits % 1000);
}

/** Milliseconds since midnight as `HHMMSSmmm`. */
function formatTime(timeMs: number): string {
  const seconds = Math.floor(timeMs / 1000);
  const minutes = Math.floor(seconds / 60);
  const digits = (Math.floor(minutes / 60) * 100 + (minutes % 60)) * 100 + (seconds % 60);
  return String(digits * 1000 + (timeMs % 1000)).padStart(9, '0');
}

function fields(ms: number): { year: string; month: string; day: string; time: string } {
  const iso = new Date(ms).toISOString(); // 2026-11-21T02:45:07.123Z
  return {
    year: iso.slice(0, 4),
    month: iso.slice(5, 7),
    day: iso.slice(8, 10),
    time: iso.slice(11, 13) + iso.slice(14, 16) + iso.slice(17, 19) + iso.slice(20, 23),
  };
}
