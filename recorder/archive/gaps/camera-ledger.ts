// The account of one camera's time, without clock and disk: records and footage in; which time was to be recorded, and
// which of it is missing and why, out (docs/design/gaps.md).

import type { Interval } from '../catalogue/interval.ts';
import { isExplainedBy, isPassing, LEDGER_STATES, type GapCause, type LedgerState } from './cause.ts';
import { DegradedTime, type Degraded } from './degraded.ts';
import { IntervalSet } from './intervals.ts';
import type { LedgerRecord } from './record.ts';
import { Stretches, type Stretch } from './stretches.ts';

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
  /** Of the footage, that in which pictures are missing; oldest first, whole also where it reaches beyond the interval. */
  readonly degraded: readonly Degraded[];
}

/** Names, and clocks that are slewed, are not finer: less between two recordings is no gap. */
export const MIN_GAP_MS = 100;
/** A camera that is connected and sends nothing is given up after 10 s; until then nobody knows why nothing is written. */
const UNEXPLAINED_MS = 15_000;
/** What waits for a slow disk may still be written; the next try may tell why the last one failed. */
const PROVISIONAL_MS = 20_000;
/**
 * States are noticed by so much later than what they cost was captured: pictures are written up to three seconds after it,
 * and only then the disk fails.
 */
const NOTICED_MS = 5_000;
const PROVISIONAL: ReadonlySet<LedgerState> = new Set<LedgerState>(['starting', 'connection-lost', 'disk-slow']);
/** Bounds what a camera that comes and goes all day costs in memory: beyond, the oldest tenth is forgotten. */
const MAX_SPANS = 20_000;

/** A stretch of time in one state. */
interface Span extends Interval {
  readonly state: LedgerState;
}

const toSpan = ({ fromMs, toMs, tag }: Stretch): Span => ({ fromMs, toMs, state: LEDGER_STATES[tag] as LedgerState });

export class CameraLedger {
  /** Sorted and apart; what no span covers was not to be recorded. */
  readonly #spans = new Stretches();
  #state: LedgerState = 'absent';
  #sinceMs = -Infinity;
  /** The latest time that any span covers. */
  #reachedMs = -Infinity;
  /** The process stood still, and the clock was behind when it went on: what that time is called once the clock is right. */
  #waitingCause: GapCause | undefined;
  readonly #recorded = new IntervalSet(MIN_GAP_MS - 1);
  /** When newer pictures were last seen to be written. */
  #grewAtMs = -Infinity;
  readonly #degraded = new DegradedTime();

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
    return Math.max(this.#reachedMs, this.#sinceMs, this.#recorded.last?.toMs ?? -Infinity);
  }

  apply(record: LedgerRecord): void {
    switch (record.kind) {
      case 'state':
        return this.#enter(record.state, record.atMs, record.untilMs ?? record.atMs, record.because);
      case 'missed':
        return this.#missed(record.fromMs, record.toMs, record.cause);
      case 'recorded':
        return this.wrote(record.fromMs, record.toMs);
      case 'degraded':
        return this.#degraded.add(record);
    }
  }

  /** Pictures of this time are in a file. `nowMs`: seen so now. */
  wrote(fromMs: number, toMs: number, nowMs?: number): void {
    const grew = toMs > (this.#recorded.last?.toMs ?? -Infinity);
    if (grew && nowMs !== undefined) this.#grewAtMs = nowMs;
    this.#recorded.add(fromMs, toMs);
    if (this.#recorded.length > MAX_SPANS) this.forgetBefore(this.#recorded.at(MAX_SPANS / 10)?.fromMs ?? 0);
  }

  /** Pictures that were taken for being of this time are not. */
  unwrote(fromMs: number, toMs: number): void {
    this.#recorded.remove(fromMs, toMs);
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
      const unknownFromMs = open ? unexplainedFrom(hole, nowMs, this.#grewAtMs) : Infinity;
      knownUntilMs = Math.max(fromMs, Math.min(knownUntilMs, unknownFromMs));
      const noticed = open ? undefined : this.#noticedBehind(hole.at(-1)?.toMs ?? nowMs, nowMs);
      for (const span of explain(
        hole.filter((span) => span.fromMs < unknownFromMs),
        noticed,
      )) {
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
    const degraded = this.#degraded.within(fromMs, toMs);
    return { fromMs, toMs, gaps, knownUntilMs, wantedMs, recordedMs: wantedMs - missingMs, degraded };
  }

  /** Forgets what is older, as if the camera had not been wanted then. */
  forgetBefore(ms: number): void {
    this.#spans.splice(0, this.#spans.firstEndingAfter(ms), []);
    const first = this.#spans.at(0);
    if (first && first.fromMs < ms) this.#spans.splice(0, 1, [{ ...first, fromMs: ms }]);
    if (this.#sinceMs < ms && this.#reachedMs <= ms) this.#sinceMs = ms;
    this.#recorded.forgetBefore(ms);
    this.#degraded.forgetBefore(ms);
  }

  /** Records that make the same account again. */
  *records(): Generator<LedgerRecord> {
    let atMs: number | undefined;
    for (const stretch of this.#spans) {
      const { fromMs, toMs, state } = toSpan(stretch);
      if (atMs !== undefined && atMs < fromMs) yield { kind: 'state', state: 'absent', atMs };
      yield { kind: 'state', state, atMs: fromMs };
      atMs = toMs;
    }
    // The clock was set back: the present state began before the last one ended.
    if (atMs !== undefined && atMs !== this.#sinceMs) yield { kind: 'state', state: 'absent', atMs };
    if (this.#sinceMs > -Infinity) yield { kind: 'state', state: this.#state, atMs: this.#sinceMs };
    for (const { fromMs, toMs } of this.#recorded) yield { kind: 'recorded', fromMs, toMs };
    for (const stretch of this.#degraded.all) yield { kind: 'degraded', ...stretch };
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
    while (low > 0 && (spans.at(low - 1) as Stretch).toMs > fromMs) low--;
    const replaced: Stretch[] = [];
    let high = low;
    for (let old = spans.at(high); old && old.fromMs < toMs; old = spans.at(++high)) {
      if (old.fromMs < fromMs) replaced.push({ ...old, toMs: fromMs });
      if (old.toMs > toMs) replaced.push({ ...old, fromMs: toMs });
    }
    if (state !== 'absent') {
      const at = replaced.findIndex((span) => span.fromMs >= toMs);
      replaced.splice(at < 0 ? replaced.length : at, 0, { fromMs, toMs, tag: LEDGER_STATES.indexOf(state) });
    }
    spans.splice(low, high - low, replaced);
    const first = replaced[0];
    const before = spans.at(low - 1);
    if (first && before && before.toMs === first.fromMs && before.tag === first.tag) {
      spans.splice(low - 1, 2, [{ ...before, toMs: first.toMs }]);
    }
    if (spans.length > MAX_SPANS) this.forgetBefore(spans.at(MAX_SPANS / 10)?.fromMs ?? 0);
  }

  /** Wanted time in [fromMs, toMs), cut to it, with the state that lasts until now. */
  *#spansIn(fromMs: number, toMs: number, nowMs: number): Generator<Span> {
    // Behind its beginning the present state counts, also where the clock was set back to a time that has spans.
    const endMs = Math.min(toMs, this.#sinceMs);
    for (let i = this.#spans.firstEndingAfter(fromMs); i < this.#spans.length; i++) {
      const span = toSpan(this.#spans.at(i) as Stretch);
      if (Math.max(span.fromMs, fromMs) >= endMs) break;
      yield { ...span, fromMs: Math.max(span.fromMs, fromMs), toMs: Math.min(span.toMs, endMs) };
    }
    const present = { fromMs: Math.max(fromMs, this.#sinceMs), toMs: Math.min(toMs, nowMs), state: this.#state };
    if (present.fromMs < present.toMs && present.state !== 'absent') yield present;
  }

  /** The first failure that was noticed shortly behind a hole. */
  #noticedBehind(ms: number, nowMs: number): GapCause | undefined {
    for (const { state } of this.#spansIn(ms, ms + NOTICED_MS, nowMs)) if (isPassing(state)) return state;
    return undefined;
  }

  #wanted(fromMs: number, toMs: number, nowMs: number): number {
    let sum = 0;
    for (const span of this.#spansIn(fromMs, toMs, nowMs)) sum += span.toMs - span.fromMs;
    return sum;
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

/**
 * Where the end of an open hole begins of which nothing is known yet. While pictures are being written, those of the
 * time since the last one may be on their way, however late a slow link brings them.
 */
function unexplainedFrom(hole: readonly Span[], nowMs: number, grewAtMs: number): number {
  let fromMs = Infinity;
  for (const span of hole.toReversed()) {
    if (span.state !== 'recording') break;
    fromMs = span.fromMs;
  }
  return nowMs - Math.max(fromMs, Math.min(grewAtMs, nowMs)) < UNEXPLAINED_MS ? fromMs : Infinity;
}

interface Explained extends Span {
  readonly cause: GapCause;
}

/**
 * What is noticed late explains what came before it, and what is over explains what follows until footage does. `noticed`:
 * behind the hole.
 */
function explain(hole: readonly Span[], noticed: GapCause | undefined): Explained[] {
  const explained: Explained[] = [];
  let next: Explained | undefined;
  for (const span of hole.toReversed()) {
    if (span.state === 'recording' || span.state === 'absent') {
      explained.push({ ...span, cause: next?.cause ?? noticed ?? 'unknown' });
      continue;
    }
    next = { ...span, cause: next && isExplainedBy(span.state, next.state) ? next.cause : span.state };
    explained.push(next);
  }
  explained.reverse();
  explained.forEach((span, i) => {
    const before = explained[i - 1]?.cause;
    // The node that takes over begins with the camera because the other one was lost.
    if (span.cause === 'starting' && before === 'moved') explained[i] = { ...span, cause: before };
    // And the key frame is missing because packets of it were lost.
    if (span.cause === 'no-key-frame' && before === 'packets-lost') explained[i] = { ...span, cause: before };
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
