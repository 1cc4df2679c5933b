// A stretch of time.

/** From the first instant to the last, without the latter; milliseconds since 1970. */
export interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}
