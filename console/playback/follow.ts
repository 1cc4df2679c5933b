// Makes a video follow the wall clock of the view, so that all cameras show the same moment whatever their decoders do.

/** Over this error a video seeks. */
const SEEK_MS = 500;
/** Over this error it plays faster or slower. */
const DRIFT_MS = 80;
/** Below this error it plays at the usual rate again. */
const CLOSE_MS = 20;
const CORRECTION = 0.05;

/** A clock is not slower than this share of the speed that people chose. */
const SLOWEST = 0.25;
const SLOW_DOWN = 0.85;
const SPEED_UP = 1.03;

type Correction =
  | { readonly kind: 'seek' }
  /** A factor of the speed. */
  | { readonly kind: 'rate'; readonly factor: number };

/** `errorMs`: how far the video is ahead of the clock, in wall time. `factor`: the one that is in force. */
export function correctionOf(errorMs: number, speed: number, factor: number): Correction {
  const scale = Math.max(1, speed);
  const error = Math.abs(errorMs);
  if (error > SEEK_MS * scale) return { kind: 'seek' };
  const towards = errorMs > 0 ? 1 - CORRECTION : 1 + CORRECTION;
  if (error > DRIFT_MS * scale) return { kind: 'rate', factor: towards };
  // A correction ends when the error is gone, not as soon as it is within the limit: otherwise it would start again at once.
  return { kind: 'rate', factor: factor === towards && error > CLOSE_MS * scale ? factor : 1 };
}

/**
 * The share of its speed at which the clock should run: a computer that decodes too slowly shows all cameras in step, but slower,
 * instead of each at another moment. `lagMs`: how far the slowest video is behind, in wall time.
 */
export function paceOf(pace: number, lagMs: number, speed: number): number {
  const isBehind = lagMs > 1.5 * DRIFT_MS * Math.max(1, speed);
  return isBehind ? Math.max(SLOWEST, pace * SLOW_DOWN) : Math.min(1, pace * SPEED_UP);
}
