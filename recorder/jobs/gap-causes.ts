// Adds the causes of gaps to a movie, from the recorded gaps of the camera.

import type { Interval } from '../../base/interval.ts';
import { MIN_GAP_MS } from '../mp4/join.ts';
import type { Elsewhere } from '../footage/holders.ts';
import { startMs } from './facts.ts';
import type { JobGap } from './job.ts';

/** Time without footage, with its cause if that is known. */
export interface KnownGap extends Interval {
  readonly cause?: string | undefined;
}

/** The recorded gaps of a camera in a window. */
export interface KnownTime {
  readonly gaps: readonly KnownGap[];
  /** Footage after this time may still be written. */
  readonly untilMs: number;
  /** Footage of the window on other nodes. */
  readonly elsewhere?: readonly Elsewhere[];
}

/** Ends the window of a movie where its footage ends or the known time ends: time that is not known yet is no gap. */
export function upToKnown<T extends { readonly window: Interval; readonly gaps: readonly Interval[] }>(
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
 * Gaps in whole milliseconds, so that job, file and answers agree, each with its most frequent cause. The boundaries of a
 * movie and of the recorded gaps may differ by some frames. Gaps are divided where footage is on another node.
 */
export function withCauses(
  gaps: readonly Interval[],
  known: readonly KnownGap[],
  elsewhere: readonly Elsewhere[] = [],
): JobGap[] {
  const edges = elsewhere.flatMap(({ fromMs, toMs }) => [fromMs, toMs]);
  return gaps
    .flatMap((gap) => dividedAt(gap, edges))
    .map(({ fromMs, toMs }) => {
      const shares = new Map<string, number>();
      for (const gap of known) {
        const sharedMs = Math.min(toMs, gap.toMs) - Math.max(fromMs, gap.fromMs);
        if (gap.cause !== undefined && sharedMs > 0) shares.set(gap.cause, (shares.get(gap.cause) ?? 0) + sharedMs);
      }
      const [most] = [...shares].sort((a, b) => b[1] - a[1]);
      return { fromMs: Math.round(fromMs), toMs: startMs(toMs), ...(most ? { cause: most[0] } : {}) };
    });
}

/** The parts of a gap between these times; none is shorter than a gap. */
function dividedAt({ fromMs, toMs }: Interval, edges: readonly number[]): Interval[] {
  const parts: Interval[] = [];
  let atMs = fromMs;
  for (const edge of [...edges].sort((a, b) => a - b)) {
    if (edge - atMs < MIN_GAP_MS || toMs - edge < MIN_GAP_MS) continue;
    parts.push({ fromMs: atMs, toMs: edge });
    atMs = edge;
  }
  return [...parts, { fromMs: atMs, toMs }];
}
