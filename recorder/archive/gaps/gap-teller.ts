// Reports the gaps of a camera as they become certain: each gap is reported once when it opens and once when it closes, in
// order. It compares repeated reports of the account, so that it reports what the list of gaps shows.

import type { Gap, GapReport } from '../../contract/gap-report.ts';
import type { Filled } from '../../contract/gap-fill.ts';

/** Times are milliseconds since 1970. No call may throw or take time. */
export interface GapObserver {
  /** No video is being written since `sinceMs`. */
  silent(sinceMs: number, cause: string): void;
  heard(sinceMs: number, untilMs: number): void;
  opened(gap: Pick<Gap, 'fromMs' | 'cause'>): void;
  closed(gap: Pick<Gap, 'fromMs' | 'toMs' | 'cause'>): void;
  /** A part of a gap that was reported before has footage from the memory of the camera. */
  filled(part: Filled): void;
  /** The camera is no longer one of this node. */
  removed(): void;
  /** A gap that an earlier process has reported as opened, but not as closed. */
  readonly openBefore: Pick<Gap, 'fromMs' | 'cause'> | undefined;
}

/** Older parts of a long gap are not examined again: it may have a thousand states. */
const SETTLED_MS = 60_000;

export class GapTeller {
  readonly #observer: GapObserver;
  /** Everything before this time is reported; undefined: not started. */
  #untilMs: number | undefined;
  #open: Pick<Gap, 'fromMs' | 'cause'> | undefined;

  constructor(observer: GapObserver) {
    this.#observer = observer;
    this.#open = observer.openBefore;
  }

  /** Starts to report gaps from this time on. */
  beginAt(ms: number): void {
    this.#untilMs ??= Math.min(ms, this.#open?.fromMs ?? ms);
  }

  /** `report` returns the report of an interval that ends now. */
  look(nowMs: number, report: (fromMs: number, toMs: number) => GapReport): void {
    // The clock was set back: this time is already reported.
    if (this.#untilMs === undefined || nowMs <= this.#untilMs) return;
    const { gaps, knownUntilMs } = report(this.#untilMs, nowMs);
    for (const [i, gap] of gaps.entries()) {
      const next = gaps[i + 1];
      // The next gap may still become part of this one.
      const mayGrow = next?.isProvisional && next.fromMs === gap.toMs && next.cause === gap.cause;
      if (gap.isProvisional || mayGrow) return this.#knownUntil(gap.fromMs);
      // The open gap has footage by now.
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

  /** The open gap is certain up to this time. */
  get #openUntilMs(): number {
    return Math.max(this.#open?.fromMs ?? -Infinity, this.#untilMs ?? -Infinity);
  }

  #close({ toMs, cause }: Pick<Gap, 'toMs' | 'cause'>): void {
    const { fromMs } = this.#open as Pick<Gap, 'fromMs'>;
    this.#open = undefined;
    this.#untilMs = Math.max(toMs, this.#untilMs ?? toMs);
    this.#observer.closed({ fromMs, toMs, cause });
  }

  /** All gaps up to this time are reported. */
  #knownUntil(ms: number): void {
    if (this.#open) {
      if (ms <= this.#openUntilMs) return;
      this.#close({ ...this.#open, toMs: this.#openUntilMs });
    }
    this.#untilMs = Math.max(ms, this.#untilMs ?? ms);
  }
}
