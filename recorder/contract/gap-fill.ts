// The results of edge recovery: which parts of gaps were filled from the memory of the camera, and why others were not.

import type { Interval } from '../../base/interval.ts';
import type { Seam } from '../mp4/meta.ts';
import type { GapCause } from './gap-cause.ts';

/** What happened, in Markdown, and whether it is tried again. docs/edge-recovery.md prints it. */
const REASONS = {
  'not-recorded': ['the memory has no footage of this time', false],
  overwritten: ['the oldest footage in the memory is from after the gap', false],
  'not-supported': ['the camera offers no replay that the recorder understands', false],
  'other-profile': ['the memory has pictures of another codec or size than the live stream', false],
  'key-frames-only': ['the memory has only key frames, and the live stream has more', false],
  'clock-not-tied': [
    'no picture beside the gap is in the memory byte for byte, and the clock of the camera is not known to 500 ms',
    false,
  ],
  'starts-at-key-frame': [
    'what the memory has begins with a key frame later in the gap, and no pictures before can be decoded',
    false,
  ],
  'range-ignored': ['the camera replays other times than the recorder requests', false],
  undated: ['nothing in the replay says when its pictures were taken', false],
  'bad-answer': ['the answers of the camera, or the replay, cannot be understood', true],
  'card-failed': ['the camera says that its memory is missing or broken', true],
  'refused-login': ['wrong or missing user and password', true],
  busy: ['the camera is replaying to other clients, or accepts no more connections', true],
  unreachable: ['no connection to the camera, or no answer in time', true],
  cut: ['the connection ended before all was sent', true],
  'disk-failed': ['the archive could not be written', true],
} as const;

export type NotFilledReason = keyof typeof REASONS;

export const NOT_FILLED_REASONS = Object.keys(REASONS) as [NotFilledReason, ...NotFilledReason[]];

export const isNotFilledReason = (text: unknown): text is NotFilledReason =>
  NOT_FILLED_REASONS.some((reason) => reason === text);

export const meaningOf = (reason: NotFilledReason): string => REASONS[reason][0];

/** Whether the same is asked again later. */
export const isTriedAgain = (reason: NotFilledReason): boolean => REASONS[reason][1];

/** A part of a gap that was filled: it has footage now. */
export interface Filled extends Interval {
  /** That of the gap. */
  readonly cause: GapCause;
  /** When its last part was filled. */
  readonly atMs: number;
  readonly seam: Seam;
}

/** A part of a gap that could not be filled. */
export interface NotFilled extends Interval {
  readonly atMs: number;
  readonly reason: NotFilledReason;
}

/** Limits the memory for a camera that fails all day: beyond it, the oldest tenth is dropped. */
const MAX_ENTRIES = 4_000;
/** Files of one replay are at most this far apart. */
const JOIN_MS = 99;

/** Entries by start, without overlap: a new one replaces what it covers, and is joined with an equal one next to it. */
class FillList<T extends Interval> {
  readonly #alike: (a: T, b: T) => boolean;
  #entries: T[] = [];

  constructor(alike: (a: T, b: T) => boolean) {
    this.#alike = alike;
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.#entries[Symbol.iterator]();
  }

  add(entry: T): void {
    let { fromMs, toMs } = entry;
    const kept: T[] = [];
    for (const old of this.#entries) {
      if (old.toMs < fromMs - JOIN_MS || old.fromMs > toMs + JOIN_MS) kept.push(old);
      else if (this.#alike(old, entry) && !this.#isBetween(old, entry)) {
        fromMs = Math.min(fromMs, old.fromMs);
        toMs = Math.max(toMs, old.toMs);
      } else {
        if (old.fromMs < entry.fromMs) kept.push({ ...old, toMs: Math.min(old.toMs, entry.fromMs) });
        if (old.toMs > entry.toMs) kept.push({ ...old, fromMs: Math.max(old.fromMs, entry.toMs) });
      }
    }
    kept.push({ ...entry, fromMs, toMs });
    this.#entries = kept.sort((a, b) => a.fromMs - b.fromMs);
    if (kept.length > MAX_ENTRIES) this.#entries.splice(0, MAX_ENTRIES / 10);
  }

  /** Whether an entry of another kind lies between the two. */
  #isBetween(a: T, b: T): boolean {
    const [fromMs, toMs] = [Math.min(a.toMs, b.toMs), Math.max(a.fromMs, b.fromMs)];
    return this.#entries.some((one) => one !== a && one.fromMs < toMs && one.toMs > fromMs);
  }

  /** Cut to [fromMs, toMs). */
  within(fromMs: number, toMs: number): T[] {
    return this.#entries
      .map((entry) => ({ ...entry, fromMs: Math.max(entry.fromMs, fromMs), toMs: Math.min(entry.toMs, toMs) }))
      .filter((entry) => entry.fromMs < entry.toMs);
  }

  forgetBefore(ms: number): void {
    this.#entries = this.#entries.filter(({ toMs }) => toMs > ms);
  }
}

export const filledList = (): FillList<Filled> =>
  new FillList((a, b) => a.cause === b.cause && a.seam === b.seam && b.fromMs >= a.fromMs);
export const notFilledList = (): FillList<NotFilled> => new FillList((a, b) => a.reason === b.reason);
