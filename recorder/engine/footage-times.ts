// The footage of an interval, from the catalogue where it knows the files and from the ledger where it does not.

import type { Archive } from '../archive/archive.ts';
import { keptFootage } from '../archive/catalogue/kept-footage.ts';
import { withDiskAway } from '../archive/gaps/disk-away.ts';
import type { GapLedger } from '../archive/gaps/ledger.ts';
import type { FootageTimes } from '../contract/footage-times.ts';
import type { GapReporter } from '../contract/gap-report.ts';

type Times = Pick<Archive, 'catalogue' | 'lackingFromMs'>;

export function footageTimes(archive: Times, gaps: Pick<GapLedger, 'written' | 'report'>): FootageTimes {
  const { catalogue } = archive;
  return {
    refresh: (fromMs, toMs) => catalogue.refresh(fromMs, toMs),
    async of(cameraId, fromMs, toMs) {
      const footage = await keptFootage(catalogue.columns(cameraId, fromMs, toMs), {
        written: gaps.written(cameraId, fromMs, toMs),
        endOf: (segment, nextStartMs) => catalogue.endOf({ segment, nextStartMs }),
      });
      const report = gaps.report(cameraId, fromMs, toMs, footage);
      const lackingMs = archive.lackingFromMs(cameraId);
      return {
        keptFromMs: catalogue.oldestStartMs(cameraId),
        footage,
        report: lackingMs === undefined ? report : withDiskAway(report, footage, lackingMs),
      };
    },
  };
}

/** The ledger alone, but for footage that was recorded to a disk that is away. */
export const gapReporter = (
  archive: Pick<Archive, 'lackingFromMs'>,
  gaps: Pick<GapLedger, 'report'>,
  times: FootageTimes,
): GapReporter => ({
  report: async (cameraId, fromMs, toMs, files) =>
    archive.lackingFromMs(cameraId) === undefined
      ? gaps.report(cameraId, fromMs, toMs, files)
      : (await times.of(cameraId, fromMs, toMs)).report,
});
