// The footage of an engine: the archive, and the ledger of what is missing in it.

import { Archive } from '../archive/archive.ts';
import { allOf, type SegmentObserver } from '../archive/catalogue/observer.ts';
import { readBootId } from '../archive/gaps/alive.ts';
import { GapLedger } from '../archive/gaps/ledger.ts';
import type { WantedCameras } from '../cameras/wanted-cameras.ts';
import type { CurrentConfig } from '../config/current-config.ts';
import type { EngineDeps } from './deps.ts';
import { forUnsynced, forWriting } from './memory.ts';
import { gapNews } from './news.ts';

/** The archive is not touched until it is recovered. */
export async function openArchive(
  current: CurrentConfig,
  wanted: WantedCameras,
  { owner, registry, memory, front, rows, copies, clock, log }: EngineDeps,
): Promise<{ readonly archive: Archive; readonly gaps: GapLedger }> {
  const { workDir, recordPath: root, archive: settings } = current.value;
  const observers: SegmentObserver[] = [];
  const archive = new Archive({
    root,
    clock,
    log,
    syncIntervalMs: settings.syncIntervalMs,
    registry,
    observer: allOf(observers),
    workDir,
    ...owner,
    disks: () => current.value.archive.disks,
    limits: () => wanted.limits,
    epochOf: (cameraId) => wanted.epochOf(cameraId),
    unsynced: forUnsynced(memory),
    memory: forWriting(memory),
  });
  const gaps = new GapLedger({
    root,
    clock,
    log,
    bootId: await readBootId(),
    registry,
    observerOf: (cameraId) => gapNews(front, cameraId),
    checkDisk: () => archive.checkDisk(),
  });
  observers.push(gaps, ...(rows ? [rows] : []), ...(copies ? [copies] : []));
  return { archive, gaps };
}
