// Gaps of a movie in, the same with their causes out, as the account of the camera's time knows them.

import { MIN_GAP_MS, type FootageGap, type JoinWindow } from '../mp4/join.ts';
import { startMs } from './facts.ts';
import type { JobGap } from './job.ts';

/** A stretch without footage whose cause is known. */
export interface KnownGap extends FootageGap {
  readonly cause?: string | undefined;
}

/** What the account of a camera's time knows of a window. */
export interface KnownTime {
  readonly gaps: readonly KnownGap[];
  /** What is later is not there yet, and may come. */
  readonly untilMs: number;
}

/**
 * A movie whose window reaches to where its footage ends, or to where it is known that there is none: what is not over has
 * no gaps.
 */
export function upToKnown<T extends { readonly window: JoinWindow; readonly gaps: readonly FootageGap[] }>(
  movie: T,
  untilMs: number,
): T {
  const { window, gaps } = movie;
  const last = gaps.at(-1);
  if (!last || last.toMs < window.toMs || untilMs >= window.toMs) return movie;
  const toMs = untilMs - last.fromMs < MIN_GAP_MS ? last.fromMs : untilMs;
  const before = gaps.slice(0, -1);
  return { ...movie, window: { ...window, toMs }, gaps: toMs > last.fromMs ? [...before, { ...last, toMs }] : before };
}

/**
 * In whole milliseconds, so that job, file and answers say the same, each with the cause of most of it; borders of movie and
 * account may differ by some frames.
 */
export function withCauses(gaps: readonly FootageGap[], known: readonly KnownGap[]): JobGap[] {
  return gaps.map(({ fromMs, toMs }) => {
    const shares = new Map<string, number>();
    for (const gap of known) {
      const sharedMs = Math.min(toMs, gap.toMs) - Math.max(fromMs, gap.fromMs);
      if (gap.cause !== undefined && sharedMs > 0) shares.set(gap.cause, (shares.get(gap.cause) ?? 0) + sharedMs);
    }
    const [most] = [...shares].sort((a, b) => b[1] - a[1]);
    return { fromMs: Math.round(fromMs), toMs: startMs(toMs), ...(most ? { cause: most[0] } : {}) };
  });
}
