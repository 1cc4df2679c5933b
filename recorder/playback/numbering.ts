// Numbers the parts of a playlist so that the numbers continue from one request to the next.
//
// Players that follow a recording request its playlist repeatedly, and identify parts by number (RFC 8216 §6.2.2). So a
// number never means another part, parts are removed only at the front, and the first number grows by as many. A file that
// retention removes from the middle, such as between two protected windows, stays listed as a gap.

import type { Clock } from '../../base/clock.ts';
import { MINUTE_MS } from '../../base/units.ts';
import { originOf } from '../mp4/meta.ts';
import type { Footage } from '../footage/footage.ts';
import { Lru } from '../footage/lru.ts';
import { wallOfPart } from '../footage/part-times.ts';
import { targetSecondsOf } from './target-duration.ts';
import { isSettled, partsInTurn, startOf } from '../footage/turns.ts';

/** A file in a playlist. */
export interface ListedFile extends Footage {
  /** Media sequence number of the first part of the file's turn, whether or not that part lies in the interval. */
  readonly number: number;
  /** Discontinuity sequence number. */
  readonly discontinuity: number;
  /** The file was removed since it was listed. */
  readonly gone: boolean;
}

interface Numbered {
  readonly listed: readonly ListedFile[];
  /** Players request the playlist again, or did while it grew. */
  readonly followed: boolean;
  /** The target duration, which stays as it was first listed. */
  readonly targetSeconds: number;
}

interface Followed {
  readonly listed: readonly ListedFile[];
  readonly askedMs: number;
  readonly targetSeconds: number;
}

/** A playlist that is not requested for this time is forgotten. */
const FORGET_MS = 10 * MINUTE_MS;
/** A day has 14 400 parts: their numbers end before those of a day that begins one second later. */
const NUMBERS_A_MS = 100;
/** Playlists of about ten days. Their files are mostly in the cache of parts as well. */
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
   * `key` is the same for all requests for the same playlist. `live`: players request it again. Files after one that is
   * still being completed are then listed only when that one is complete.
   */
  number(key: string, footage: readonly Footage[], live: boolean): Numbered {
    const incomplete = live ? footage.findIndex((item) => !isSettled(item)) : -1;
    const whole = incomplete < 0 ? footage : footage.slice(0, incomplete + 1);
    const nowMs = this.#clock.monotonicMs();
    const known = this.#followed.get(key);
    const remembered = known && nowMs - known.askedMs < FORGET_MS ? known : undefined;
    const before = remembered?.listed ?? [];
    const listed = continued(before, whole) ?? numberedFromTime(whole);
    const followed = live || before.length > 0;
    const promised = before.some((item) => partCount(item) > 0) ? remembered?.targetSeconds : undefined;
    const targetSeconds = promised ?? targetSecondsOf(listed);
    if (followed) this.#followed.set(key, { listed, askedMs: nowMs, targetSeconds });
    return { listed, followed, targetSeconds };
  }
}

/**
 * Numbers count from the time of the first part. A process that has forgotten the previous numbers, such as after a restart,
 * gives the same ones again as long as the first part is the same. If it is another, all numbers are larger than before, so
 * that no number means another part.
 */
function numberedFromTime([first, ...rest]: readonly Footage[]): ListedFile[] {
  if (!first) return [];
  const { wallStartMs, sequence } = first.parts.meta;
  const number = Math.max(0, Math.floor(wallStartMs)) * NUMBERS_A_MS;
  return appended([{ ...first, number, discontinuity: sequence, gone: false }], rest);
}

/** Continues the previous list; undefined when none of its files is left. */
function continued(before: readonly ListedFile[], now: readonly Footage[]): ListedFile[] | undefined {
  const there = new Map(now.map((item) => [keyOf(item), item]));
  const first = before.findIndex((item) => there.has(keyOf(item)));
  if (first < 0) return undefined;
  const listed = before.slice(first).map((item) => {
    const found = there.get(keyOf(item));
    return found ? { ...item, ...found, ...keptTurn(item, found), gone: false } : { ...item, gone: true };
  });
  return appended(
    listed,
    now.filter((item) => isAfter(item, listed)),
  );
}

/** A file of a node, and which of its turns. */
const keyOf = ({ nodeId, path, turn }: Footage): string => `${nodeId ?? ''} ${path} ${turn?.fromMs ?? -Infinity}`;

/** Files that were listed stay listed, even if another node has recorded their end under a higher epoch. */
function keptTurn(before: ListedFile, { turn }: Footage): Pick<Footage, 'turn'> {
  if (!turn) return {};
  const { parts } = before;
  const listedMs = Math.min(before.turn?.toMs ?? Infinity, wallOfPart(parts, parts.starts.length - 1));
  return { turn: { fromMs: turn.fromMs, toMs: Math.max(turn.toMs, listedMs) } };
}

/**
 * Whether a file comes after those that were listed. A node numbers its files. Times do not decide among them: a clock may
 * have been set back.
 */
function isAfter(item: Footage, listed: readonly ListedFile[]): boolean {
  if (listed.some((other) => keyOf(other) === keyOf(item))) return false;
  const last = listed.at(-1) as ListedFile;
  const { meta } = item.parts;
  const { sequence } = meta;
  // A file that fills a gap has a later number than the files after it. Playlists that begin now contain it.
  if (originOf(meta) === 'edge') return startOf(item) >= startOf(last);
  const ofNode = listed.filter(({ nodeId, parts }) => nodeId === item.nodeId && originOf(parts.meta) !== 'edge');
  // A later turn of the last file is listed, too.
  if (ofNode.some(({ parts, path }) => parts.meta.sequence >= sequence && path !== item.path)) return false;
  return last.nodeId === item.nodeId || startOf(item) >= startOf(last);
}

function appended(listed: ListedFile[], more: readonly Footage[]): ListedFile[] {
  for (const item of more) {
    const last = listed.at(-1) as ListedFile;
    const { number, discontinuity } = last;
    listed.push({ ...item, number: number + partCount(last), discontinuity: discontinuity + 1, gone: false });
  }
  return listed;
}

const ALWAYS = { fromMs: -Infinity, toMs: Infinity };

function partCount(item: Footage): number {
  if (!item.turn) return item.parts.starts.length - 1;
  const [from, to] = partsInTurn(item, ALWAYS);
  return to - from;
}

const weightOf = (listed: readonly ListedFile[]): number =>
  listed.reduce((sum, { parts }) => sum + NUMBERS_BESIDE_PARTS + 2 * parts.starts.length, 0);
