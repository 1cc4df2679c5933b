// Compares the clock in a camera's sender reports (RFC 3550 §6.4.1) with ours when they arrive. Pure arithmetic.

/** After this time the clocks may have drifted apart. */
const VALID_MS = 60_000;
/** No report arrives later than this: one that seems to shows that a clock was set. */
const MAX_LATE_MS = 2_000;

export class ReportedClock {
  #best: { readonly aheadMs: number; readonly atMs: number } | undefined;

  /** `cameraMs`: the camera's clock; `wallMs` and `nowMs`: our wall clock and the monotonic one at the arrival of the report. */
  note(cameraMs: number, wallMs: number, nowMs: number): void {
    const aheadMs = cameraMs - wallMs;
    const best = this.#best;
    // A report can arrive only late, so the one that shows the camera furthest ahead is the most exact.
    const isWorse = best !== undefined && aheadMs < best.aheadMs && aheadMs >= best.aheadMs - MAX_LATE_MS;
    if (!isWorse || nowMs - best.atMs > VALID_MS) this.#best = { aheadMs, atMs: nowMs };
  }

  /** The camera's clock minus ours in milliseconds, too small by the delay of its reports. Undefined: it has not sent any. */
  get aheadMs(): number | undefined {
    return this.#best?.aheadMs;
  }
}
