// Gaps of a movie in, the same with their causes out, as the account of the camera's time knows them.

import type { FootageGap } from '../mp4/join.ts';
import type { JobGap } from './job.ts';

/** A stretch without footage whose cause is known. */
export interface KnownGap extends FootageGap {
  readonly cause?: string | undefined;
}

/** Each with the cause of most of it; borders of movie and account may differ by some frames. */
export function withCauses(gaps: readonly FootageGap[], known: readonly KnownGap[]): JobGap[] {
  return gaps.map(({ fromMs, toMs }) => {
    const shares = new Map<string, number>();
    for (const gap of known) {
      const sharedMs = Math.min(toMs, gap.toMs) - Math.max(fromMs, gap.fromMs);
      if (gap.cause !== undefined && sharedMs > 0) shares.set(gap.cause, (shares.get(gap.cause) ?? 0) + sharedMs);
    }
    const [most] = [...shares].sort((a, b) => b[1] - a[1]);
    return { fromMs, toMs, ...(most ? { cause: most[0] } : {}) };
  });
}
