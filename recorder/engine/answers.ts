// What an engine answers its front: the only way to its parts from there.

import type { ClusterMember } from './member.ts';
import type { CameraSet } from '../cameras/camera-set.ts';
import type { CameraSwitch } from '../contract/camera-switch.ts';
import type { LiveFeed } from '../contract/live-feed.ts';
import type { FrontOfEngine } from '../contract/news.ts';
import { STOPPED } from '../live/close.ts';
import type { Engine, EngineArchive, EngineCameras } from '../model/engine.ts';
import type { Archive } from '../archive/archive.ts';
import type { OpenedEngine } from './engine.ts';
import { footageTimes, gapReporter } from './footage-times.ts';

interface Beside {
  readonly front: Pick<FrontOfEngine, 'live'>;
  /** Undefined outside of a cluster. */
  readonly member: ClusterMember | undefined;
  /** Cameras that other lists have and that cannot be recorded. */
  readonly refused: Engine['refusedCameras'];
}

export function answersOf(opened: OpenedEngine, { front, member, refused }: Beside): Engine {
  const { cameras, archive, gaps, wanted, cameraSwitch, examiner, errands, license } = opened;
  const times = footageTimes(archive, gaps);
  return {
    cameras: camerasOf(cameras, front),
    archive: archiveOf(archive),
    gaps: gapReporter(archive, gaps, times),
    times,
    cameraSwitch: switchOf(cameraSwitch, opened, member),
    examiner,
    errands,
    license,
    member,
    applyCameras: () => wanted.apply(),
    forgetCamera: (id) => cameraSwitch.forget(id),
    warnings: () => opened.warnings(),
    refusedCameras: () => [...wanted.list().refused, ...refused()],
  };
}

function camerasOf(cameras: CameraSet, front: Pick<FrontOfEngine, 'live'>): EngineCameras {
  const watched = new Map<number, LiveFeed>();
  return {
    list: () => cameras.list(),
    get: (cameraId) => cameras.get(cameraId),
    keyFrame: async (cameraId) => cameras.keyFrame(cameraId),
    watch(watch, cameraId, quality) {
      const feed = watched.get(watch) ?? cameras.feed(cameraId, quality);
      if (!feed) return front.live(watch, { kind: 'closed', ...STOPPED });
      watched.set(watch, feed);
      return feed.watch((news) => {
        if (news.kind === 'closed') watched.delete(watch);
        front.live(watch, news);
      });
    },
    unwatch(watch) {
      watched.get(watch)?.unwatch();
      watched.delete(watch);
    },
  };
}

function archiveOf(archive: Archive): EngineArchive {
  const { catalogue, keeping, protections } = archive;
  const holds = new Map<number, () => void>();
  return {
    keeping,
    protections: protections && {
      list: async (cameraId) => protections.list(cameraId),
      add: (window, nowMs) => protections.add(window, nowMs),
      remove: (id) => protections.remove(id),
    },
    keptFromMs: async (cameraId) =>
      archive.fault || catalogue.problem !== undefined ? -Infinity : catalogue.oldestStartMs(cameraId),
    list: (cameraId, query) => archive.list(cameraId, query),
    openEntries: async (cameraId) => archive.openEntries(cameraId),
    current: (cameraId) => archive.current(cameraId),
    countSegments: async (cameraId, fromMs, toMs) => archive.countSegments(cameraId, fromMs, toMs),
    extents: () => archive.extents(),
    newestFiles: (cameraId, count) => archive.newestFiles(cameraId, count),
    rootOf: (path) => archive.rootOf(path),
    holdForReading: (hold, path) => void holds.set(hold, archive.holdForReading(path)),
    holdWindow: (hold, cameraId, fromMs, toMs) => void holds.set(hold, archive.holdWindow(cameraId, fromMs, toMs)),
    release(hold) {
      holds.get(hold)?.();
      holds.delete(hold);
    },
    checkWritable: () => archive.checkWritable(),
    // An error is not sent as what it is.
    disks: async () =>
      archive.disks().map(({ path, isLeaving, fault }) => ({
        path,
        isLeaving,
        fault: fault && { code: fault.code, message: fault.message },
      })),
    stateRoot: archive.stateRoot,
    checkDisk: () => archive.checkDisk(),
  };
}

/** Cameras of files are switched on the node, others in the cluster. */
function switchOf(own: CameraSwitch, { wanted }: OpenedEngine, member: ClusterMember | undefined): CameraSwitch {
  const keeper = (id: string): CameraSwitch =>
    !member || wanted.files.some((camera) => camera.id === id) ? own : member.cameraSwitch;
  return { start: (id, by) => keeper(id).start(id, by), stop: (id, by) => keeper(id).stop(id, by) };
}
