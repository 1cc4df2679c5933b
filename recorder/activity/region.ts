// Answers from the looks at a camera: when something has changed in a part of the picture, and whether something has at each time.

import type { Interval } from '../../base/interval.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/units.ts';
import { blocksIn, eachLook, type LookSummary } from './day-file.ts';
import { COLUMNS, MAP_BYTES, ROWS, SURE } from './grid.ts';
import type { LookStore } from './store.ts';

/** A part of the picture, each from 0 to 1 from the upper left corner. */
interface Region {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** `active`: something has changed, `quiet`: nothing has, `unclear`: that cannot be told. Other time was not looked at. */
export interface Band extends Interval {
  readonly kind: 'active' | 'quiet' | 'unclear';
}

export interface FoundChange extends Interval {
  /** How many cells of the whole picture have changed at most, of CELLS. */
  readonly cells: number;
  readonly confidence: number;
}

export interface RegionQuery extends Interval {
  readonly cameraId: string;
  readonly region: Region | undefined;
  readonly leastConfidence: number;
  /** At most this many, the newest. */
  readonly limit: number;
}

/** Changes that are not further apart are one. */
const JOINED_MS = 10_000;
/** A look stands for the time until the next one, but not for longer. */
const MOST_MS = 10_000;
/** Shorter intervals are told by looks instead of by minutes. */
const FINE_MS = 2 * HOUR_MS;

/** Newest first. Rejects with the error of the system. */
export async function searchRegion(store: LookStore, query: RegionQuery): Promise<readonly FoundChange[]> {
  const { cameraId, region, fromMs, toMs, leastConfidence, limit } = query;
  const cells = cellsIn(region ?? { left: 0, top: 0, right: 1, bottom: 1 });
  const found: FoundChange[] = [];
  const days = (await store.days(cameraId)).filter((dayMs) => dayMs < toMs && dayMs + DAY_MS + 2 * HOUR_MS > fromMs);
  for (const dayMs of days.reverse()) {
    if (found.length > limit) break;
    const looks: LookSummary[] = [];
    const take = (look: LookSummary): void => {
      const { confidence, timeMs } = look;
      if (confidence >= leastConfidence && timeMs >= fromMs && timeMs < toMs) looks.push(look);
    };
    for (const block of blocksIn((await store.read(cameraId, dayMs)) ?? Buffer.alloc(0))) eachLook(block, cells, take);
    for (const { timeMs, level, confidence } of looks.sort((a, b) => b.timeMs - a.timeMs)) {
      const later = found.at(-1);
      if (!later || later.fromMs - timeMs > JOINED_MS) {
        found.push({ fromMs: timeMs, toMs: timeMs, cells: level, confidence });
      } else {
        const least = { cells: Math.max(later.cells, level), confidence: Math.max(later.confidence, confidence) };
        found[found.length - 1] = { fromMs: Math.min(timeMs, later.fromMs), toMs: later.toMs, ...least };
      }
    }
  }
  return found.slice(0, limit);
}

/** A bit for each cell that the region touches. */
export function cellsIn({ left, top, right, bottom }: Region): Uint8Array {
  const map = new Uint8Array(MAP_BYTES);
  for (let row = 0; row < ROWS; row++) {
    for (let column = 0; column < COLUMNS; column++) {
      const isBeside = (column + 1) / COLUMNS <= left || column / COLUMNS >= right;
      if (isBeside || (row + 1) / ROWS <= top || row / ROWS >= bottom) continue;
      const c = row * COLUMNS + column;
      (map[c >> 3] as number) |= 1 << (c & 7);
    }
  }
  return map;
}

/** Oldest first, disjoint. What is shorter than `resolutionMs` is part of what surrounds it, unless it is active. Rejects with the error of the system. */
export async function bandsOf(
  store: LookStore,
  cameraId: string,
  { fromMs, toMs }: Interval,
  resolutionMs: number,
): Promise<readonly Band[]> {
  const parts: Part[] = [];
  for (const dayMs of await store.days(cameraId)) {
    if (dayMs >= toMs || dayMs + DAY_MS + 2 * HOUR_MS <= fromMs) continue;
    if (toMs - fromMs > FINE_MS) {
      for (const [atMs, { level, sure, unclear }] of (await store.head(cameraId, dayMs))?.minutes() ?? []) {
        const startMs = dayMs + atMs;
        parts.push({ startMs, endMs: startMs + MINUTE_MS, active: level > 0 ? 1 : 0, unclear, quiet: sure });
      }
      continue;
    }
    for (const block of blocksIn((await store.read(cameraId, dayMs)) ?? Buffer.alloc(0))) {
      // A file of footage is not longer than two hours.
      if (block.head.startMs >= toMs || block.head.startMs + 2 * HOUR_MS <= fromMs) continue;
      eachLook(block, undefined, ({ timeMs: startMs, level, confidence }) => {
        const [isSure, isActive] = [confidence >= SURE, level > 0];
        const counts = {
          active: isSure && isActive ? 1 : 0,
          unclear: isSure ? 0 : 1,
          quiet: isSure && !isActive ? 1 : 0,
        };
        parts.push({ startMs, endMs: startMs + MOST_MS, ...counts });
      });
    }
  }
  return joined(
    parts.sort((a, b) => a.startMs - b.startMs),
    { fromMs, toMs },
    resolutionMs,
  );
}

/** A minute or a look. */
interface Part {
  readonly startMs: number;
  /** At the latest: it ends where the next one begins. */
  readonly endMs: number;
  active: number;
  unclear: number;
  quiet: number;
}

/** `parts`: by start. */
function joined(parts: readonly Part[], { fromMs, toMs }: Interval, resolutionMs: number): Band[] {
  const steps = Map.groupBy(parts, ({ startMs }) => (resolutionMs > 0 ? Math.floor(startMs / resolutionMs) : startMs));
  const bands: Band[] = [];
  const all = [...steps.values()];
  for (const [i, step] of all.entries()) {
    const sum = (count: 'active' | 'unclear' | 'quiet'): number => step.reduce((total, part) => total + part[count], 0);
    const kind = sum('active') > 0 ? 'active' : sum('unclear') > sum('quiet') ? 'unclear' : 'quiet';
    const last = bands.at(-1);
    const startMs = Math.max((step[0] as Part).startMs, fromMs, last?.toMs ?? -Infinity);
    const endMs = Math.min((step.at(-1) as Part).endMs, all[i + 1]?.[0]?.startMs ?? Infinity, toMs);
    if (startMs >= endMs) continue;
    if (last?.kind === kind && startMs - last.toMs <= resolutionMs) bands[bands.length - 1] = { ...last, toMs: endMs };
    else bands.push({ kind, fromMs: startMs, toMs: endMs });
  }
  return bands;
}
