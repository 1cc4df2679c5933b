// The time account of one camera, without clock and disk. From records and footage it computes which time should have been
// recorded, and which of it is missing and why (docs/design/gaps.md).

import type { GapReport, Gap } from '../../contract/gap-report.ts';
import type { Interval } from '../../../base/interval.ts';
import { MIN_GAP_MS } from '../../mp4/join.ts';
import { isExplainedBy, isPassing, LEDGER_STATES, type GapCause, type LedgerState } from '../../contract/gap-cause.ts';
import { DegradedTime } from '../../contract/degraded.ts';
import { filledList, notFilledList } from '../../contract/gap-fill.ts';
import { IntervalSet } from '../../contract/intervals.ts';
import type { LedgerRecord } from './record.ts';
import { Stops } from './stops.ts';
import { Stretches, type Stretch } from '../../contract/stretches.ts';

/** A connection without data is closed after 10 s; until then the reason for missing footage is unknown. */
const UNEXPLAINED_MS = 15_000;
/** Data that wait for a slow disk may still be written; the next attempt may show why the last one failed. */
const PROVISIONAL_MS = 20_000;
/**
 * A state is noticed up to this long after the capture time of the footage that it affects: pictures are written up to
 * three seconds after their capture, and only then does the disk report an error.
 */
const NOTICED_MS = 5_000;
const PROVISIONAL: ReadonlySet<LedgerState> = new Set<LedgerState>(['starting', 'connection-lost', 'disk-slow']);
/** Limits the memory for a camera that connects and disconnects all day: beyond it, the oldest tenth is dropped. */
const MAX_SPANS = 20_000;

interface Span extends Interval {
  readonly state: LedgerState;
}

const toSpan = ({ fromMs, toMs, tag }: Stretch): Span => ({ fromMs, toMs, state: LEDGER_STATES[tag] as LedgerState });

export class CameraLedger {
  /** Sorted and disjoint; time without a span was not to be recorded. */
  readonly #spans = new Stretches();
  #state: LedgerState = 'absent';
  #sinceMs = -Infinity;
  /** The end of the latest span. */
  #reachedMs = -Infinity;
  /**
   * Set if the process was suspended and the clock was slow when it continued: the cause of that time, once the clock is
   * right.
   */
  #waitingCause: GapCause | undefined;
  readonly #recorded = new IntervalSet(MIN_GAP_MS - 1);
  /** When newly written pictures were last noticed. */
  #grewAtMs = -Infinity;
  readonly #degraded = new DegradedTime();
  readonly #filled = filledList();
  readonly #notFilled = notFilledList();
  readonly #stops = new Stops();

  get state(): LedgerState {
    return this.#state;
  }

  /** Who stopped the camera the last time and why; undefined if it never was. */
  get lastStop(): string | undefined {
    return this.#stops.last?.detail;
  }

  /** Start of the current state; -Infinity before the first one. */
  get sinceMs(): number {
    return this.#sinceMs;
  }

  /** The latest time in the account. */
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
      case 'filled':
        return this.#filled.add(withoutKind(record));
      case 'not-filled':
        return this.#notFilled.add(withoutKind(record));
      case 'stop':
        return this.#stops.add(record);
    }
  }

  /** Pictures of this interval are in a file, as noticed at `nowMs`. */
  wrote(fromMs: number, toMs: number, nowMs?: number): void {
    const grew = toMs > (this.#recorded.last?.toMs ?? -Infinity);
    if (grew && nowMs !== undefined) this.#grewAtMs = nowMs;
    this.#recorded.add(fromMs, toMs);
    if (this.#recorded.length > MAX_SPANS) this.forgetBefore(this.#recorded.at(MAX_SPANS / 10)?.fromMs ?? 0);
  }

  /** Removes an interval in which pictures were assumed by mistake. */
  unwrote(fromMs: number, toMs: number): void {
    this.#recorded.remove(fromMs, toMs);
  }

  /** Written footage that overlaps [fromMs, toMs), not cut; retention may have removed it since. */
  writtenIn(fromMs: number, toMs: number): Interval[] {
    return [...this.#recorded.overlapping(fromMs, toMs)];
  }

  /** The report of the part of [fromMs, toMs) that has passed at `nowMs`. `files`: footage that is known from files. */
  report(fromMs: number, toMs: number, nowMs: number, files?: Iterable<Interval>): GapReport {
    const limitMs = Math.max(fromMs, Math.min(toMs, nowMs));
    const footage = files ? this.#recorded.with(files) : this.#recorded;
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
          ...this.#detailOf(span),
        };
        if (gap.fromMs < gap.toMs) for (const part of this.#tried(gap)) append(gaps, part);
      }
    }
    const wantedMs = this.#wanted(fromMs, knownUntilMs, nowMs);
    const missingMs = gaps.reduce((sum, gap) => sum + gap.toMs - gap.fromMs, 0);
    const recorded = Array.from(footage.overlapping(fromMs, limitMs), (part) => ({
      fromMs: Math.max(part.fromMs, fromMs),
      toMs: Math.min(part.toMs, limitMs),
    }));
    const degraded = this.#degraded.within(fromMs, toMs);
    const filled = this.#filled.within(fromMs, limitMs);
    return { fromMs, toMs, gaps, knownUntilMs, wantedMs, recordedMs: wantedMs - missingMs, recorded, degraded, filled };
  }

  #detailOf({ cause, toMs }: Explained): Pick<Gap, 'detail'> {
    const detail = cause === 'stopped' ? this.#stops.detailOf(toMs) : undefined;
    return detail === undefined ? {} : { detail };
  }

  /** Drops everything before `ms`, as if the camera had not been configured then. */
  forgetBefore(ms: number): void {
    this.#spans.splice(0, this.#spans.firstEndingAfter(ms), []);
    const first = this.#spans.at(0);
    if (first && first.fromMs < ms) this.#spans.splice(0, 1, [{ ...first, fromMs: ms }]);
    if (this.#sinceMs < ms && this.#reachedMs <= ms) this.#sinceMs = ms;
    this.#recorded.forgetBefore(ms);
    this.#degraded.forgetBefore(ms);
    this.#filled.forgetBefore(ms);
    this.#notFilled.forgetBefore(ms);
    this.#stops.forgetBefore(ms);
  }

  /** The parts of a gap, by the result of the attempt to fill them. */
  *#tried(gap: Gap): Generator<Gap> {
    let { fromMs } = gap;
    for (const { reason, atMs, ...part } of this.#notFilled.within(gap.fromMs, gap.toMs)) {
      // A shorter rest is part of what was tried: times of pictures are not more precise.
      if (part.fromMs - fromMs >= MIN_GAP_MS) yield { ...gap, fromMs, toMs: part.fromMs };
      else part.fromMs = fromMs;
      fromMs = gap.toMs - part.toMs < MIN_GAP_MS ? gap.toMs : part.toMs;
      yield { ...gap, ...part, toMs: fromMs, isOpen: gap.isOpen && fromMs === gap.toMs, notFilled: { reason, atMs } };
    }
    if (fromMs < gap.toMs) yield { ...gap, fromMs };
  }

  /** Records that reproduce this account. */
  *records(): Generator<LedgerRecord> {
    let atMs: number | undefined;
    for (const stretch of this.#spans) {
      const { fromMs, toMs, state } = toSpan(stretch);
      if (atMs !== undefined && atMs < fromMs) yield { kind: 'state', state: 'absent', atMs };
      yield { kind: 'state', state, atMs: fromMs };
      atMs = toMs;
    }
    // The clock was set back: the current state began before the previous one ended.
    if (atMs !== undefined && atMs !== this.#sinceMs) yield { kind: 'state', state: 'absent', atMs };
    if (this.#sinceMs > -Infinity) yield { kind: 'state', state: this.#state, atMs: this.#sinceMs };
    for (const { fromMs, toMs } of this.#recorded) yield { kind: 'recorded', fromMs, toMs };
    for (const stretch of this.#degraded.all) yield { kind: 'degraded', ...stretch };
    for (const part of this.#filled) yield { kind: 'filled', ...part };
    for (const part of this.#notFilled) yield { kind: 'not-filled', ...part };
    for (const stop of this.#stops) yield { kind: 'stop', ...stop };
  }

  #enter(state: LedgerState, atMs: number, untilMs: number, because: GapCause | undefined): void {
    this.#close(untilMs);
    if (because !== undefined && this.#state !== 'absent') {
      // Time that the clock has shown twice, because it was set back, is already in the account.
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

  /** Extends the current state up to `untilMs`. */
  #close(untilMs: number): void {
    if (!(untilMs > this.#sinceMs)) return;
    if (untilMs > this.#reachedMs) this.#waitingCause = undefined;
    this.#paint(this.#sinceMs, untilMs, this.#state);
  }

  /** Sets the state of an interval; it replaces earlier states. */
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

  /** Spans of wanted time, cut to [fromMs, toMs), including the current state up to now. */
  *#spansIn(fromMs: number, toMs: number, nowMs: number): Generator<Span> {
    // After its start, the current state applies, even where the clock was set back to a time that has spans.
    const endMs = Math.min(toMs, this.#sinceMs);
    for (let i = this.#spans.firstEndingAfter(fromMs); i < this.#spans.length; i++) {
      const span = toSpan(this.#spans.at(i) as Stretch);
      if (Math.max(span.fromMs, fromMs) >= endMs) break;
      yield { ...span, fromMs: Math.max(span.fromMs, fromMs), toMs: Math.min(span.toMs, endMs) };
    }
    const present = { fromMs: Math.max(fromMs, this.#sinceMs), toMs: Math.min(toMs, nowMs), state: this.#state };
    if (present.fromMs < present.toMs && present.state !== 'absent') yield present;
  }

  /** The first failure that was noticed shortly after `ms`. */
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

/** Wanted time without footage as continuous holes, each divided by state. */
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
 * The start of the last part of an open hole whose cause is not known yet. While pictures are being written, those since
 * the last written one may still arrive over a slow link.
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

/** Causes that are what became of the one before them: a node that takes over starts the camera, a key frame was lost. */
const FOLLOWS_FROM: Partial<Record<GapCause, readonly GapCause[]>> = {
  starting: ['moved'],
  'no-key-frame': ['packets-lost', 'machine-frozen', 'machine-dropped'],
  'packets-lost': ['machine-frozen'],
  'connection-lost': ['machine-frozen'],
};

/**
 * Assigns causes within a hole: a state that is noticed late explains the time before it, and a state that has ended
 * explains the time until there is footage. `noticed`: the failure after the hole.
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
    if (before && FOLLOWS_FROM[span.cause]?.includes(before)) explained[i] = { ...span, cause: before };
  });
  const last = explained.findLast(({ state }) => state !== 'recording');
  return last
    ? explained.map((span) => (span.fromMs > last.fromMs ? { ...span, cause: last.cause } : span))
    : explained;
}

function withoutKind<T extends { readonly kind: string }>({ kind: _kind, ...rest }: T): Omit<T, 'kind'> {
  return rest;
}

/** Adjacent gaps with the same cause are joined. */
function append(gaps: Gap[], gap: Gap): void {
  const before = gaps.at(-1);
  const isAlike =
    before?.toMs === gap.fromMs &&
    before.cause === gap.cause &&
    before.isProvisional === gap.isProvisional &&
    before.detail === gap.detail &&
    before.notFilled?.reason === gap.notFilled?.reason;
  if (isAlike) {
    gaps[gaps.length - 1] = { ...gap, fromMs: before.fromMs };
  } else gaps.push(gap);
}
