// What a playlist lists now in, the same with what it has listed before and with numbers that go on from there out.
//
// Players that follow a recording ask for its playlist again and again, and know what they have by number (RFC 8216
// §6.2.2): a number never means another part, parts go only at the front, and the first number rises by as many. What
// retention takes from the middle, as between two protected windows, stays listed as a gap.

import type { Clock } from '../../base/clock.ts';
import { MINUTE_MS } from '../../base/units.ts';
import type { FileParts } from '../mp4/parts.ts';
import type { Footage } from './footage.ts';
import { Lru } from './lru.ts';
import { targetSecondsOf } from './target-duration.ts';

/** A file in a playlist. */
export interface Listed extends Footage {
  /** Media sequence number of the file's first part, whether or not that part lies in the interval. */
  readonly number: number;
  /** Discontinuity sequence number. */
  readonly discontinuity: number;
  /** The file was removed since it was listed. */
  readonly gone: boolean;
}

export interface Numbered {
  readonly listed: readonly Listed[];
  /** It is asked for again, or was when it grew. */
  readonly followed: boolean;
  /** What is promised to be the longest duration, since it was listed first. */
  readonly targetSeconds: number;
}

interface Followed {
  readonly listed: readonly Listed[];
  readonly askedMs: number;
  readonly targetSeconds: number;
}

/** Nobody follows a playlist any more that nobody has asked for in this time. */
const FORGET_MS = 10 * MINUTE_MS;
/** A day has 14 400 parts: their numbers end before those of a day that begins a second later. */
const NUMBERS_A_MS = 100;
/** Lists of some ten days, whose files are mostly known to the cache of parts anyway. */
const MAX_PART_NUMBERS = 400_000;
const NUMBERS_BESIDE_PARTS = 50;

export class Numbering {
  readonly #clock: Clock;
  readonly #followed: Lru<Followed>;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#followed = new Lru(clock, { capacity: MAX_PART_NUMBERS, weigh: ({ listed }) => weightOf(listed) });
  }

  /**
   * `key` is the same for all who ask for the same playlist. `live`: it is asked for again. What follows a file that is
   * still being completed then waits for its last parts.
   */
  number(key: string, footage: readonly Footage[], live: boolean): Numbered {
    const incomplete = live ? footage.findIndex(({ parts }) => !parts.complete) : -1;
    const whole = incomplete < 0 ? footage : footage.slice(0, incomplete + 1);
    const nowMs = this.#clock.monotonicMs();
    const known = this.#followed.get(key);
    const remembered = known && nowMs - known.askedMs < FORGET_MS ? known : undefined;
    const before = remembered?.listed ?? [];
    const listed = goingOn(before, whole) ?? anew(whole);
    const followed = live || before.length > 0;
    const promised = before.some(({ parts }) => partCount(parts) > 0) ? remembered?.targetSeconds : undefined;
    const targetSeconds = promised ?? targetSecondsOf(listed);
    if (followed) this.#followed.set(key, { listed, askedMs: nowMs, targetSeconds });
    return { listed, followed, targetSeconds };
  }
}

/**
 * From the time of the first part. So a process that knows nothing of numbers given before, as after a restart, gives the
 * same ones again while the first part is the same; when it is not, all are larger than any before, and nobody takes one
 * part for another.
 */
function anew([first, ...rest]: readonly Footage[]): Listed[] {
  if (!first) return [];
  const { wallStartMs, sequence } = first.parts.meta;
  const number = Math.max(0, Math.floor(wallStartMs)) * NUMBERS_A_MS;
  return behind([{ ...first, number, discontinuity: sequence, gone: false }], rest);
}

/** Undefined when nothing is left of what was listed before. */
function goingOn(before: readonly Listed[], now: readonly Footage[]): Listed[] | undefined {
  const there = new Map(now.map((item) => [item.path, item]));
  const first = before.findIndex(({ path }) => there.has(path));
  if (first < 0) return undefined;
  const listed = before.slice(first).map((item) => {
    const found = there.get(item.path);
    return found ? { ...item, ...found, gone: false } : { ...item, gone: true };
  });
  // What was recorded earlier would have to go before what is listed. Not by time: a clock may have been set back.
  const last = Math.max(...listed.map(({ parts }) => parts.meta.sequence));
  return behind(
    listed,
    now.filter(({ parts }) => parts.meta.sequence > last),
  );
}

function behind(listed: Listed[], more: readonly Footage[]): Listed[] {
  for (const item of more) {
    const { number, discontinuity, parts } = listed.at(-1) as Listed;
    listed.push({ ...item, number: number + partCount(parts), discontinuity: discontinuity + 1, gone: false });
  }
  return listed;
}

const partCount = ({ starts }: FileParts): number => starts.length - 1;

const weightOf = (listed: readonly Listed[]): number =>
  listed.reduce((sum, { parts }) => sum + NUMBERS_BESIDE_PARTS + 2 * parts.starts.length, 0);
