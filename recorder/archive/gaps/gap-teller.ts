// Tells of a camera's gaps as they become certain: the account again and again in, each gap once opened and once closed out,
// in order. What is told so is what the list of gaps shows.

import type { Gap, GapReport } from './camera-ledger.ts';

/** Times are milliseconds since 1970. No call may throw or take time. */
export interface GapObserver {
  /** No video is written any more; `sinceMs`: since when. */
  silent(sinceMs: number, cause: string): void;
  heard(sinceMs: number, untilMs: number): void;
  opened(gap: Pick<Gap, 'fromMs' | 'cause'>): void;
  closed(gap: Pick<Gap, 'fromMs' | 'toMs' | 'cause'>): void;
  /** A gap that an earlier process has told of as opened, and not as closed. */
  readonly openBefore: Pick<Gap, 'fromMs' | 'cause'> | undefined;
}

/** Of a gap that lasts, what is older is not looked at again: it may have a thousand states. */
const SETTLED_MS = 60_000;

export class GapTeller {
  readonly #observer: GapObserver;
  /** All before is told; undefined: nobody accounts for the camera yet. */
  #untilMs: number | undefined;
  #open: Pick<Gap, 'fromMs' | 'cause'> | undefined;

  constructor(observer: GapObserver) {
    this.#observer = observer;
    this.#open = observer.openBefore;
  }

  /** From here on somebody accounts for the camera. */
  beginAt(ms: number): void {
    this.#untilMs ??= Math.min(ms, this.#open?.fromMs ?? ms);
  }

  /** `report`: of an interval up to now. */
  look(nowMs: number, report: (fromMs: number, toMs: number) => GapReport): void {
    // The clock was set back: what it has shown before is told.
    if (this.#untilMs === undefined || nowMs <= this.#untilMs) return;
    const { gaps, knownUntilMs } = report(this.#untilMs, nowMs);
    for (const [i, gap] of gaps.entries()) {
      const next = gaps[i + 1];
      // The two may be one yet.
      const mayGrow = next?.isProvisional && next.fromMs === gap.toMs && next.cause === gap.cause;
      if (gap.isProvisional || mayGrow) return this.#knownUntil(gap.fromMs);
      // What was taken for a gap is footage by now.
      if (this.#open && this.#openUntilMs < gap.fromMs) this.#close({ ...this.#open, toMs: this.#openUntilMs });
      if (!this.#open) {
        this.#open = { fromMs: gap.fromMs, cause: gap.cause };
        this.#observer.opened(this.#open);
      }
      if (gap.isOpen) {
        this.#untilMs = Math.max(this.#untilMs, nowMs - SETTLED_MS);
        return undefined;
      }
      this.#close(gap);
    }
    return this.#knownUntil(knownUntilMs);
  }

  /** Up to here the open gap is certain. */
  get #openUntilMs(): number {
    return Math.max(this.#open?.fromMs ?? -Infinity, this.#untilMs ?? -Infinity);
  }

  #close({ toMs, cause }: Pick<Gap, 'toMs' | 'cause'>): void {
    const { fromMs } = this.#open as Pick<Gap, 'fromMs'>;
    this.#open = undefined;
    this.#untilMs = Math.max(toMs, this.#untilMs ?? toMs);
    this.#observer.closed({ fromMs, toMs, cause });
  }

  /** Up to here there is no gap that was not told. */
  #knownUntil(ms: number): void {
    if (this.#open) {
      if (ms <= this.#openUntilMs) return;
      this.#close({ ...this.#open, toMs: this.#openUntilMs });
    }
    this.#untilMs = Math.max(ms, this.#untilMs ?? ms);
  }
}
