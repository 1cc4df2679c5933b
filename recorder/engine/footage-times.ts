// The footage of an interval, from the catalogue where it knows the files and from the ledger where it does not.

import type { Archive } from '../archive/archive.ts';
import { keptFootage } from '../archive/catalogue/kept-footage.ts';
import type { GapLedger } from '../archive/gaps/ledger.ts';
import type { FootageTimes } from '../contract/footage-times.ts';

export function footageTimes({ catalogue }: Pick<Archive, 'catalogue'>, gaps: GapLedger): FootageTimes {
  return {
    refresh: (fromMs, toMs) => catalogue.refresh(fromMs, toMs),
    async of(cameraId, fromMs, toMs) {
      const footage = await keptFootage(catalogue.columns(cameraId, fromMs, toMs), {
        written: gaps.written(cameraId, fromMs, toMs),
        endOf: (segment, nextStartMs) => catalogue.endOf({ segment, nextStartMs }),
      });
      const report = gaps.report(cameraId, fromMs, toMs, footage);
      return { keptFromMs: catalogue.oldestStartMs(cameraId), footage, report };
    },
  };
}
