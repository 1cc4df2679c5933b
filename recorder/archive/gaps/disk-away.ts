// What was recorded to one of several disks that is away, as gaps. Pure.

import type { Interval } from '../../../base/interval.ts';
import type { Gap, GapReport } from '../../contract/gap-report.ts';
import { IntervalSet } from '../../contract/intervals.ts';
import { MIN_GAP_MS } from '../../mp4/join.ts';

/** Recorded time since `sinceMs` that is in no file is a gap: of files, only those of a disk that is away are missing. */
export function withDiskAway(report: GapReport, footage: readonly Interval[], sinceMs: number): GapReport {
  const files = new IntervalSet(MIN_GAP_MS - 1).with(footage);
  const away = report.recorded.flatMap((part): Gap[] => {
    const [fromMs, toMs] = [Math.max(part.fromMs, report.fromMs, sinceMs), Math.min(part.toMs, report.knownUntilMs)];
    if (fromMs >= toMs) return [];
    return Array.from(files.holes(fromMs, toMs), (hole) => ({
      fromMs: hole.fromMs,
      toMs: hole.toMs,
      cause: 'on-disk-away' as const,
      isOpen: false,
      isProvisional: false,
    })).filter((gap) => gap.toMs - gap.fromMs >= MIN_GAP_MS);
  });
  const missing = new IntervalSet(0).with(away);
  return {
    ...report,
    gaps: [...report.gaps, ...away].sort((a, b) => a.fromMs - b.fromMs),
    recorded: report.recorded.flatMap(({ fromMs, toMs }) => [...missing.holes(fromMs, toMs)]),
    recordedMs: report.recordedMs - away.reduce((sum, gap) => sum + gap.toMs - gap.fromMs, 0),
  };
}
