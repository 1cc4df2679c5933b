// The gaps that the journal of another node tells of, when that node is gone: what it had written until it was last alive.

import type { Interval } from '../../../base/interval.ts';
import type { Gap } from '../../contract/gap-report.ts';
import { CameraLedger } from './camera-ledger.ts';
import { parseJournal } from './record.ts';

/** `files`: footage that is known from files. */
export function gapsIn(
  journal: string,
  untilMs: number,
  { fromMs, toMs }: Interval,
  files: readonly Interval[],
): readonly Gap[] {
  const ledger = new CameraLedger();
  for (const record of parseJournal(journal)) ledger.apply(record);
  // Later time is that of the nodes which recorded the camera then.
  return ledger.report(Math.floor(fromMs), Math.round(toMs), untilMs, files).gaps;
}
