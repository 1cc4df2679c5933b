// When each camera has footage on the disk of this node, and why there is none at other times: for timeline and calendar.

import type { FootageTimes } from '../api/deps.ts';
import { keptFootage } from '../archive/catalogue/kept-footage.ts';
import type { EngineArchive, EngineGaps } from '../model/engine.ts';

export function footageTimes({ catalogue }: EngineArchive, gaps: EngineGaps): FootageTimes {
  return {
    refresh: (fromMs, toMs) => catalogue.refresh(fromMs, toMs),
    async of(cameraId, fromMs, toMs) {
      const footage = await keptFootage(catalogue.columns(cameraId, fromMs, toMs), {
        written: await gaps.written(cameraId, fromMs, toMs),
        endOf: (segment, nextStartMs) => catalogue.endOf({ segment, nextStartMs }),
      });
      const report = await gaps.report(cameraId, fromMs, toMs, footage);
      return { keptFromMs: catalogue.oldestStartMs(cameraId), footage, report };
    },
  };
}
