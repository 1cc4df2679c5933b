// The footage of an engine: the archive, and the ledger of what is missing in it.

import { withoutTrailingSlash } from '../../base/paths.ts';
import { Archive } from '../archive/archive.ts';
import { allOf, type SegmentObserver } from '../archive/catalogue/observer.ts';
import { nodeFileSystem } from '../archive/disk/file-system.ts';
import { ArchiveIdentity } from '../archive/disk/identity.ts';
import { newestState } from '../archive/disk/state-copies.ts';
import { AliveFile, readBootId } from '../archive/gaps/alive.ts';
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
  const { workDir, recordPath, archive: settings } = current.value;
  const root = withoutTrailingSlash(recordPath);
  // With one disk, there is nothing to choose.
  const first = new ArchiveIdentity({ root, workDir, ...owner, fs: nodeFileSystem, log });
  const others = settings.disks.map(
    ({ path }) =>
      new ArchiveIdentity({ root: withoutTrailingSlash(path), workDir, ...owner, first, fs: nodeFileSystem, log }),
  );
  const signs = async (path: string): Promise<number | undefined> => {
    const file = new AliveFile(nodeFileSystem, path);
    return (await file.read()) && file.count;
  };
  const stateRoot =
    others.length === 0 ? undefined : await newestState({ fs: nodeFileSystem, clock, signs }, [first, ...others]);
  if (stateRoot !== undefined && stateRoot !== first.root)
    log.info({ path: stateRoot }, 'the newest state of the archive is on this disk');
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
    stateRoot,
    limits: () => wanted.limits,
    epochOf: (cameraId) => wanted.epochOf(cameraId),
    unsynced: forUnsynced(memory),
    memory: forWriting(memory),
  });
  const gaps = new GapLedger({
    root: archive.stateRoot,
    clock,
    log,
    bootId: await readBootId(),
    registry,
    observerOf: (cameraId) => gapNews(front, cameraId, current.value.cluster.mode === 'none'),
    checkDisk: () => archive.checkDisk(),
  });
  observers.push(gaps, ...(rows ? [rows] : []), ...(copies ? [copies] : []));
  return { archive, gaps };
}
