// Connects what looks at footage with the archive and the cameras of this node.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { LookStore } from '../activity/store.ts';
import { Watch } from '../activity/watch.ts';
import type { Archive } from '../archive/archive.ts';
import { nodeFileSystem } from '../archive/disk/file-system.ts';
import type { CameraSet } from '../cameras/camera-set.ts';
import { ArchiveFiles } from '../footage/archive-file.ts';

interface ActivityDeps {
  readonly archive: Archive;
  readonly cameras: Pick<CameraSet, 'config'>;
  /** Since when what belongs to footage of a camera is kept. */
  readonly keptFromMs: (cameraId: string) => Promise<number>;
  readonly ffmpegPath: string;
  readonly clock: Clock;
  readonly log: Log;
}

export function openActivity({ archive, cameras, keptFromMs, ffmpegPath, clock, log }: ActivityDeps): {
  readonly store: LookStore;
  readonly watch: Watch;
} {
  const store = new LookStore(archive.stateRoot, nodeFileSystem);
  const watch = new Watch({
    store,
    archive: {
      days: () => archive.catalogue.days(),
      openPaths: () => new Set(archive.openEntries().map(({ path }) => path)),
      isBehind: () => archive.isBehind,
      checkDisk: () => archive.checkDisk(),
      keptFromMs,
    },
    files: new ArchiveFiles((path) => archive.rootOf(path)),
    isOn: (cameraId) => cameras.config(cameraId)?.activity === true,
    ffmpegPath,
    clock,
    log,
  });
  return { store, watch };
}
