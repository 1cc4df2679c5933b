// What key frames show, as a grid of small cells: from the luminance of the cells, what has changed since the key frames before, and
// how sure that is. Pure, and of one file alone: the same file gives the same answer whenever it is looked at.

export const COLUMNS = 32;
export const ROWS = 18;
export const CELLS = COLUMNS * ROWS;
/** A bit for each cell, row by row, the first one the lowest of its byte. */
export const MAP_BYTES = CELLS / 8;

export interface Frame {
  /** When it was captured, milliseconds since 1970. */
  readonly timeMs: number;
  readonly cells: Uint8Array;
}

export interface Look {
  readonly timeMs: number;
  /** How many cells have changed; 0 where that cannot be told. */
  readonly level: number;
  /** 0: cannot tell; from SURE on, it counts as activity, or as quiet. At most 100. */
  readonly confidence: number;
  readonly changed: Uint8Array;
}

/** Below, something may have happened: leaves, a clock in the picture, or a small change. */
export const SURE = 50;

/** Key frames with which one is compared. */
const PAST = 8;
const LEAST_PAST = 3;
/** Steps of luminance by which a cell must leave the range in which it was: an encoder alone changes it by less. */
const FLOOR = 6;
/** With more cells than this, the light or the whole picture has changed, not something in it. */
const MOST_CELLS = CELLS * 0.4;
/** A cell that has left its range so often in one file does so without cause. */
const RESTLESS_SHARE = 0.06;
const RESTLESS_LEAST = 4;
/** A lamp, the sun behind a cloud. */
const LIGHT_CHANGED = 10;
/** The brightest cell of a picture in which nothing can be seen. */
const DARK = 24;

/** `frames`: the key frames of one file, by time. As many looks, in the same order. */
export function looksAt(frames: readonly Frame[]): Look[] {
  const compared = frames.map((_, i) => compare(frames, i));
  const isRestless = restlessCells(compared.map((one) => one?.excess));
  return frames.map(({ timeMs, cells }, i) => lookOf(timeMs, cells, compared[i], isRestless));
}

interface Compared {
  readonly excess: Uint8Array;
  /** By how much the light differs at most, in steps of luminance. */
  readonly light: number;
}

/**
 * By how much each cell lies outside of the range that it had in the key frames before, without what is common to all cells: the
 * light. The first key frames of a file are compared with those that follow. Undefined if there are too few.
 */
function compare(frames: readonly Frame[], i: number): Compared | undefined {
  const others = i >= LEAST_PAST ? frames.slice(Math.max(0, i - PAST), i) : frames.slice(i + 1, i + 1 + PAST);
  if (others.length < LEAST_PAST) return undefined;
  const { cells } = frames[i] as Frame;
  // The lowest and the highest count only if there are others: something that passed a moment ago does not hide what follows.
  const cut = others.length >= PAST - 2 ? 1 : 0;
  const excess = new Int16Array(CELLS);
  const values = new Uint8Array(others.length);
  const lights = others.map((other) => lightOf(cells, other.cells));
  for (let c = 0; c < CELLS; c++) {
    for (const [k, other] of others.entries()) {
      values[k] = clamped((other.cells[c] as number) + (lights[k] as number));
    }
    values.sort();
    const [low, high, value] = [values[cut] as number, values[values.length - 1 - cut] as number, cells[c] as number];
    excess[c] = value < low ? low - value : Math.max(0, value - high);
  }
  return { excess: Uint8Array.from(excess), light: Math.max(...lights.map(Math.abs)) };
}

/** By how much all cells of a picture are brighter than those of another: the median of the differences. */
function lightOf(cells: Uint8Array, others: Uint8Array): number {
  const differences = new Int16Array(CELLS);
  for (let c = 0; c < CELLS; c++) differences[c] = (cells[c] as number) - (others[c] as number);
  return differences.sort()[CELLS / 2] as number;
}

const clamped = (value: number): number => Math.max(0, Math.min(255, value));

/** 1 for each cell that leaves its range again and again. */
function restlessCells(excess: readonly (Uint8Array | undefined)[]): Uint8Array {
  const departures = new Uint16Array(CELLS);
  for (const [i, now] of excess.entries()) {
    const before = excess[i - 1];
    if (!now || count(now) > MOST_CELLS) continue;
    for (let c = 0; c < CELLS; c++) {
      if ((now[c] as number) >= FLOOR && (before?.[c] ?? 0) < FLOOR) (departures[c] as number) += 1;
    }
  }
  const most = Math.max(RESTLESS_LEAST, excess.length * RESTLESS_SHARE);
  return Uint8Array.from(departures, (times) => (times > most ? 1 : 0));
}

const count = (excess: Uint8Array): number => excess.reduce((sum, value) => sum + (value >= FLOOR ? 1 : 0), 0);

function lookOf(timeMs: number, cells: Uint8Array, compared: Compared | undefined, isRestless: Uint8Array): Look {
  const changed = new Uint8Array(MAP_BYTES);
  const unclear = { timeMs, level: 0, confidence: 0, changed };
  if (!compared || Math.max(...cells) < DARK || count(compared.excess) > MOST_CELLS) return unclear;
  const { excess, light } = compared;
  const calm = new Uint8Array(CELLS);
  let [level, calmCells, doubtful] = [0, 0, 0];
  for (let c = 0; c < CELLS; c++) {
    const by = excess[c] as number;
    if (by >= FLOOR) {
      level++;
      (changed[c >> 3] as number) |= 1 << (c & 7);
      if (isRestless[c] === 1) continue;
      calmCells++;
      calm[c] = by;
    } else if (isRestless[c] === 0) doubtful = Math.max(doubtful, by);
  }
  // Quiet is the less sure the nearer a cell came to the edge.
  if (level === 0) return { ...unclear, confidence: Math.round(100 - (SURE * doubtful) / FLOOR) };
  const found = { timeMs, level, changed };
  // Only cells that change all the time: leaves, a clock.
  if (calmCells === 0) return { ...found, confidence: SURE / 2 };
  // Surfaces do not all follow the light alike.
  const floor = light > LIGHT_CHANGED ? 2 * FLOOR : FLOOR;
  return { ...found, confidence: Math.max(1, Math.min(100, Math.round(SURE * (strongestPair(calm) / floor - 0.25)))) };
}

/** The mean of two changed cells side by side, where that is largest: one alone is a digit of a clock, or noise. */
function strongestPair(calm: Uint8Array): number {
  let strongest = 0;
  for (let c = 0; c < CELLS; c++) {
    const own = calm[c] as number;
    if (own === 0) continue;
    const [isLast, isFirst] = [c % COLUMNS === COLUMNS - 1, c % COLUMNS === 0];
    for (const next of [
      isLast ? -1 : c + 1,
      isFirst ? -1 : c + COLUMNS - 1,
      c + COLUMNS,
      isLast ? -1 : c + COLUMNS + 1,
    ]) {
      const other = calm[next] ?? 0;
      if (other > 0) strongest = Math.max(strongest, (own + other) / 2);
    }
  }
  return strongest;
}
