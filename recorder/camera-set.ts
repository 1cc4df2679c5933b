// The cameras that a recorder runs: each with its place in the archive and its live stream, started, stopped and
// replaced one by one. A change of configuration touches only the cameras that it changes.

import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { CameraDirectory, CameraView } from './api/deps.ts';
import type { Archive } from './archive/archive.ts';
import type { CameraArchive } from './archive/camera-archive.ts';
import type { GapLedger } from './archive/gaps/ledger.ts';
import { Camera } from './camera/camera.ts';
import { CameraError } from './camera/error.ts';
import type { ReadPacer } from './camera/read-pacer.ts';
import { stoppedStatus } from './camera/status.ts';
import type { SlabPool } from './codec/slab.ts';
import { diffCameras } from './config/changes.ts';
import type { CameraConfig } from './config/schema.ts';
import { LiveHub } from './live/hub.ts';
import type { LiveLimits } from './live/limits.ts';
import { CLOSE } from './live/viewer.ts';

export interface CameraSetDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly archive: Archive;
  readonly gaps: GapLedger;
  readonly pool: SlabPool;
  readonly pacer: ReadPacer;
  readonly receiveBuffer: Buffer;
  readonly liveLimits: LiveLimits;
}

/** A camera that is recorded. */
interface Active {
  readonly camera: Camera;
  readonly recording: CameraArchive;
  readonly live: LiveHub;
}

/** What else can be told apart from a camera at all: it was configured but is not wanted now. */
type Entry = { readonly config: CameraConfig; readonly active: Active | undefined; readonly sinceMs: number };

export class CameraSet implements CameraDirectory {
  readonly #deps: CameraSetDeps;
  #entries = new Map<string, Entry>();
  /** Changes are carried out one after the other: a camera is closed before it is opened anew. */
  #work: Promise<void> = Promise.resolve();

  constructor(deps: CameraSetDeps) {
    this.#deps = deps;
  }

  list(): readonly CameraView[] {
    return Array.from(this.#entries.values(), (entry) => this.#view(entry));
  }

  get(cameraId: string): CameraView | undefined {
    const entry = this.#entries.get(cameraId);
    return entry && this.#view(entry);
  }

  /** Makes the set what `cameras` says. Resolves when every camera that had to stop has closed its files. */
  apply(cameras: readonly CameraConfig[]): Promise<void> {
    this.#work = this.#work.then(() => this.#apply(cameras));
    return this.#work;
  }

  /**
   * Stops every camera and closes its files, for the end of the recorder. The cameras stay known: viewers that come back
   * meanwhile are told to try again, not that there is no such camera.
   */
  close(): Promise<void> {
    this.#work = this.#work.then(async () => {
      this.#deps.gaps.stopping();
      await Promise.all(Array.from(this.#entries.keys(), (cameraId) => this.#stop(cameraId, false)));
    });
    return this.#work;
  }

  /** A few times a second. */
  tick(): void {
    const { clock, gaps } = this.#deps;
    const nowMs = clock.monotonicMs();
    for (const [cameraId, { active }] of this.#entries) {
      if (!active) continue;
      const { camera, recording } = active;
      camera.tick(nowMs);
      recording.tick();
      gaps.observe(cameraId, { camera: camera.status(), archive: recording.status(), written: recording.written() });
    }
    gaps.tick();
  }

  async #apply(cameras: readonly CameraConfig[]): Promise<void> {
    const { log, clock, gaps } = this.#deps;
    // First: what is missing while cameras are stopped is not the cameras' fault.
    gaps.configure(cameras);
    const before = Array.from(this.#entries.values(), (entry) => entry.config);
    const { added, removed, changed } = diffCameras(before, cameras);
    const starting = new Set([...added, ...changed].map((camera) => camera.id));
    await Promise.all([...removed, ...changed].map((camera) => this.#stop(camera.id, removed.includes(camera))));
    const entries = new Map<string, Entry>();
    for (const config of cameras) {
      const old = this.#entries.get(config.id);
      if (old && !starting.has(config.id)) entries.set(config.id, old);
      else entries.set(config.id, { config, active: this.#start(config), sinceMs: clock.wallMs() });
    }
    this.#entries = entries;
    const ids = (list: readonly CameraConfig[]) => list.map((camera) => camera.id);
    if (starting.size + removed.length > 0) {
      log.info({ added: ids(added), changed: ids(changed), removed: ids(removed) }, 'cameras configured');
    }
  }

  #start(config: CameraConfig): Active | undefined {
    if (!config.enabled) return undefined;
    const { archive, gaps, liveLimits, clock, log, pool, pacer, receiveBuffer } = this.#deps;
    const live = new LiveHub({ cameraId: config.id, limits: liveLimits, clock, log });
    const recording = archive.sinkFor(
      { cameraId: config.id, name: config.name, ...config.record },
      {
        needKeyFrame: () =>
          camera.reconnect(new CameraError('no-key-frame', 'the camera has sent no key frame for too long')),
      },
    );
    const sinks = [recording.sink, live, gaps.sinkFor(config.id)];
    const camera = new Camera(config, { clock, log, pool, pacer, receiveBuffer, sinks });
    camera.start();
    return { camera, recording, live };
  }

  async #stop(cameraId: string, forever: boolean): Promise<void> {
    const active = this.#entries.get(cameraId)?.active;
    if (!active) return;
    await active.camera.stop();
    if (forever) active.live.close(CLOSE.unknownCamera, 'the camera was removed');
    else active.live.close();
    await active.recording.close();
  }

  #view({ config, active, sinceMs }: Entry): CameraView {
    if (!active) return { status: stoppedStatus(config, sinceMs), archive: undefined, live: undefined };
    const { camera, recording, live } = active;
    const silence = this.#deps.gaps.silenceOf(config.id);
    return { status: camera.status(), archive: recording.status(), live, ...(silence ? { silence } : {}) };
  }
}
