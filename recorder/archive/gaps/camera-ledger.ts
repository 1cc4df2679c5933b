// The account of one camera's time, without clock and disk: records and footage in; which time was to be recorded, and
// which of it is missing and why, out (docs/design/gaps.md).

import { isExplainedBy, type GapCause, type LedgerState } from './cause.ts';
import { IntervalSet, type Interval } from './intervals.ts';
import type { LedgerRecord } from './record.ts';

export interface Gap extends Interval {
  readonly cause: GapCause;
  /** It reaches to the present. */
  readonly isOpen: boolean;
  /** The present may still explain it otherwise. */
  readonly isProvisional: boolean;
}

/** Footage and gaps of an interval: together they are the time that was to be recorded, and they do not overlap. */
export interface GapReport {
  readonly fromMs: number;
  readonly toMs: number;
  /** Oldest first. */
  readonly gaps: readonly Gap[];
  /** What lies behind this is being written, or not understood yet; at most `toMs` and the present. */
  readonly knownUntilMs: number;
  /** Of the time up to there, that in which the camera was to be recorded, and that of which there is footage. */
  readonly wantedMs: number;
  readonly recordedMs: number;
}

/** Names, and clocks that are slewed, are not finer: less between two recordings is no gap. */
export const MIN_GAP_MS = 100;
/** A camera that is connected and sends nothing is given up after 10 s; until then nobody knows why nothing is written. */
const UNEXPLAINED_MS = 15_000;
/** What waits for a slow disk may still be written; the next try may tell why the last one failed. */
const PROVISIONAL_MS = 20_000;
const PROVISIONAL: ReadonlySet<LedgerState> = new Set<LedgerState>(['starting', 'connection-lost', 'disk-slow']);
/** Bounds what a camera that comes and goes all day costs in memory: beyond, the oldest tenth is forgotten. */
const MAX_SPANS = 20_000;

/** A stretch of time in one state. */
interface Span extends Interval {
  readonly state: LedgerState;
}

export class CameraLedger {
  /** Sorted and apart; what no span covers was not to be recorded. */
  #spans: Span[] = [];
  #state: LedgerState = 'absent';
  #sinceMs = -Infinity;
  /** The latest time that any span covers. */
  #reachedMs = -Infinity;
  /** The process stood still, and the clock was behind when it went on: what that time is called once the clock is right. */
  #waitingCause: GapCause | undefined;
  readonly #recorded = new IntervalSet(MIN_GAP_MS - 1);

  /** What the camera is in now. */
  get state(): LedgerState {
    return this.#state;
  }

  /** Since when; -Infinity when nothing was ever said. */
  get sinceMs(): number {
    return this.#sinceMs;
  }

  /** The latest time that anything is known of. */
  get lastKnownMs(): number {
    return Math.max(this.#reachedMs, this.#sinceMs, this.#recorded.all.at(-1)?.toMs ?? -Infinity);
  }

  apply(record: LedgerRecord): void {
    switch (record.kind) {
      case 'state':
        return this.#enter(record.state, record.atMs, record.untilMs ?? record.atMs, record.because);
      case 'missed':
        return this.#missed(record.fromMs, record.toMs, record.cause);
      case 'recorded':
        return this.wrote(record.fromMs, record.toMs);
    }
  }

  /** Pictures of this time are in a file. */
  wrote(fromMs: number, toMs: number): void {
    this.#recorded.add(fromMs, toMs);
    if (this.#recorded.all.length > MAX_SPANS) this.forgetBefore(this.#recorded.all[MAX_SPANS / 10]?.fromMs ?? 0);
  }

  /** Of [fromMs, toMs), as far as it is over at `nowMs`. `files`: footage that is known from elsewhere. */
  report(fromMs: number, toMs: number, nowMs: number, files: Iterable<Interval> = []): GapReport {
    const limitMs = Math.max(fromMs, Math.min(toMs, nowMs));
    const footage = this.#recorded.with(files);
    const firstMs = footage.holeStart(fromMs);
    const lastMs = Math.min(nowMs, footage.holeEnd(limitMs));
    const gaps: Gap[] = [];
    let knownUntilMs = limitMs;
    for (const hole of holes(this.#spansIn(firstMs, lastMs, nowMs), footage)) {
      const open = hole.at(-1)?.toMs === nowMs;
      const unknownFromMs = open ? unexplainedFrom(hole, nowMs) : Infinity;
      knownUntilMs = Math.max(fromMs, Math.min(knownUntilMs, unknownFromMs));
      for (const span of explain(hole.filter((span) => span.fromMs < unknownFromMs))) {
        const gap = {
          fromMs: Math.max(span.fromMs, fromMs),
          toMs: Math.min(span.toMs, limitMs),
          cause: span.cause,
          isOpen: span.toMs === nowMs && limitMs === nowMs,
          isProvisional: span.toMs === nowMs && PROVISIONAL.has(span.state) && nowMs - span.fromMs < PROVISIONAL_MS,
        };
        if (gap.fromMs < gap.toMs) append(gaps, gap);
      }
    }
    const wantedMs = this.#wanted(fromMs, knownUntilMs, nowMs);
    const missingMs = gaps.reduce((sum, gap) => sum + gap.toMs - gap.fromMs, 0);
    return { fromMs, toMs, gaps, knownUntilMs, wantedMs, recordedMs: wantedMs - missingMs };
  }

  /** Forgets what is older, as if the camera had not been wanted then. */
  forgetBefore(ms: number): void {
    this.#spans = this.#spans.slice(this.#firstEndingAfter(ms));
    const [first] = this.#spans;
    if (first && first.fromMs < ms) this.#spans[0] = { ...first, fromMs: ms };
    if (this.#sinceMs < ms && this.#reachedMs <= ms) this.#sinceMs = ms;
    this.#recorded.forgetBefore(ms);
  }

  /** Records that make the same account again. */
  *records(): Generator<LedgerRecord> {
    let atMs: number | undefined;
    for (const { fromMs, toMs, state } of this.#spans) {
      if (atMs !== undefined && atMs < fromMs) yield { kind: 'state', state: 'absent', atMs };
      yield { kind: 'state', state, atMs: fromMs };
      atMs = toMs;
    }
    // The clock was set back: the present state began before the last one ended.
    if (atMs !== undefined && atMs !== this.#sinceMs) yield { kind: 'state', state: 'absent', atMs };
    if (this.#sinceMs > -Infinity) yield { kind: 'state', state: this.#state, atMs: this.#sinceMs };
    for (const { fromMs, toMs } of this.#recorded.all) yield { kind: 'recorded', fromMs, toMs };
  }

  #enter(state: LedgerState, atMs: number, untilMs: number, because: GapCause | undefined): void {
    this.#close(untilMs);
    if (because !== undefined && this.#state !== 'absent') {
      // Time that the clock had shown before, when it was set back meanwhile, is accounted for already.
      const fromMs = Math.max(untilMs, this.#reachedMs);
      if (fromMs < atMs) this.#paint(fromMs, atMs, this.#waitingCause ?? because);
      this.#waitingCause = fromMs > atMs && because !== 'clock-step' ? because : undefined;
    }
    this.#state = state;
    this.#sinceMs = atMs;
  }

  #missed(fromMs: number, toMs: number, cause: GapCause): void {
    if (toMs > this.#sinceMs) {
      this.#close(fromMs);
      this.#sinceMs = toMs;
    }
    this.#paint(fromMs, toMs, cause);
  }

  /** The present state has lasted up to here. */
  #close(untilMs: number): void {
    if (!(untilMs > this.#sinceMs)) return;
    if (untilMs > this.#reachedMs) this.#waitingCause = undefined;
    this.#paint(this.#sinceMs, untilMs, this.#state);
  }

  /** The last word on an instant counts. */
  #paint(fromMs: number, toMs: number, state: LedgerState): void {
    if (!(fromMs < toMs) || fromMs === -Infinity) return;
    this.#reachedMs = Math.max(this.#reachedMs, toMs);
    const spans = this.#spans;
    let low = spans.length;
    while (low > 0 && (spans[low - 1] as Span).toMs > fromMs) low--;
    const replaced: Span[] = [];
    let high = low;
    for (let old = spans[high]; old && old.fromMs < toMs; old = spans[++high]) {
      if (old.fromMs < fromMs) replaced.push({ ...old, toMs: fromMs });
      if (old.toMs > toMs) replaced.push({ ...old, fromMs: toMs });
    }
    if (state !== 'absent') {
      const at = replaced.findIndex((span) => span.fromMs >= toMs);
      replaced.splice(at < 0 ? replaced.length : at, 0, { fromMs, toMs, state });
    }
    spans.splice(low, high - low, ...replaced);
    const first = replaced[0];
    const before = spans[low - 1];
    if (first && before && before.toMs === first.fromMs && before.state === first.state) {
      spans.splice(low - 1, 2, { ...before, toMs: first.toMs });
    }
    if (spans.length > MAX_SPANS) this.forgetBefore(spans[MAX_SPANS / 10]?.fromMs ?? 0);
  }

  /** Wanted time in [fromMs, toMs), cut to it, with the state that lasts until now. */
  *#spansIn(fromMs: number, toMs: number, nowMs: number): Generator<Span> {
    // Behind its beginning the present state counts, also where the clock was set back to a time that has spans.
    const endMs = Math.min(toMs, this.#sinceMs);
    for (let i = this.#firstEndingAfter(fromMs); i < this.#spans.length; i++) {
      const span = this.#spans[i] as Span;
      if (Math.max(span.fromMs, fromMs) >= endMs) break;
      yield { ...span, fromMs: Math.max(span.fromMs, fromMs), toMs: Math.min(span.toMs, endMs) };
    }
    const present = { fromMs: Math.max(fromMs, this.#sinceMs), toMs: Math.min(toMs, nowMs), state: this.#state };
    if (present.fromMs < present.toMs && present.state !== 'absent') yield present;
  }

  #wanted(fromMs: number, toMs: number, nowMs: number): number {
    let sum = 0;
    for (const span of this.#spansIn(fromMs, toMs, nowMs)) sum += span.toMs - span.fromMs;
    return sum;
  }

  #firstEndingAfter(ms: number): number {
    let low = 0;
    let high = this.#spans.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#spans[middle] as Span).toMs > ms) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** Wanted time without footage, as stretches that nothing interrupts, each as the states it went through. */
function* holes(spans: Iterable<Span>, footage: IntervalSet): Generator<Span[]> {
  let hole: Span[] = [];
  for (const span of spans) {
    for (const { fromMs, toMs } of footage.holes(span.fromMs, span.toMs)) {
      if (hole.length > 0 && hole.at(-1)?.toMs !== fromMs) {
        yield hole;
        hole = [];
      }
      hole.push({ fromMs, toMs, state: span.state });
    }
  }
  if (hole.length > 0) yield hole;
}

/** Where the end of an open hole begins of which nothing is known yet. */
function unexplainedFrom(hole: readonly Span[], nowMs: number): number {
  let fromMs = Infinity;
  for (const span of hole.toReversed()) {
    if (span.state !== 'recording') break;
    fromMs = span.fromMs;
  }
  return nowMs - fromMs < UNEXPLAINED_MS ? fromMs : Infinity;
}

interface Explained extends Span {
  readonly cause: GapCause;
}

/** What is noticed late explains what came before it, and what is over explains what follows until footage does. */
function explain(hole: readonly Span[]): Explained[] {
  const explained: Explained[] = [];
  let next: Explained | undefined;
  for (const span of hole.toReversed()) {
    if (span.state === 'recording' || span.state === 'absent') {
      explained.push({ ...span, cause: next?.cause ?? 'unknown' });
      continue;
    }
    next = { ...span, cause: next && isExplainedBy(span.state, next.state) ? next.cause : span.state };
    explained.push(next);
  }
  explained.reverse();
  // The node that takes over begins with the camera because the other one was lost.
  explained.forEach((span, i) => {
    if (span.cause === 'starting' && explained[i - 1]?.cause === 'moved') explained[i] = { ...span, cause: 'moved' };
  });
  const last = explained.findLast(({ state }) => state !== 'recording');
  return last
    ? explained.map((span) => (span.fromMs > last.fromMs ? { ...span, cause: last.cause } : span))
    : explained;
}

/** Neighbours with one cause are one gap. */
function append(gaps: Gap[], gap: Gap): void {
  const before = gaps.at(-1);
  if (before?.toMs === gap.fromMs && before.cause === gap.cause && before.isProvisional === gap.isProvisional) {
    gaps[gaps.length - 1] = { ...gap, fromMs: before.fromMs };
  } else gaps.push(gap);
}
