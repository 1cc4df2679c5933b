// When the cameras of a node have footage on its disk, and why there is none at other times: for timeline and calendar.

import type { Interval } from '../../base/interval.ts';
import type { GapReport } from './gap-report.ts';

/** Footage and gaps of long intervals. Both methods throw ArchiveError when the archive cannot be read. */
export interface FootageTimes {
  /** Looks at the directories of an interval; to be called before `of`. */
  refresh(fromMs: number, toMs: number): Promise<void>;
  of(cameraId: string, fromMs: number, toMs: number): Promise<CameraTimes>;
}

interface CameraTimes {
  /** Start of the oldest footage; undefined without any. */
  readonly keptFromMs: number | undefined;
  /** On the disk; oldest first, not cut to the interval. */
  readonly footage: readonly Interval[];
  readonly report: GapReport;
}
