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
import { stoppedStatus, type Reason } from './camera/status.ts';
import type { SlabPool } from './codec/slab.ts';
import { diffCameras } from './config/changes.ts';
import type { CameraConfig } from './config/schema.ts';
import { LiveHub } from './live/hub.ts';
import type { LiveLimits } from './live/limits.ts';
import { CLOSE } from './live/viewer.ts';

/** A camera as it is wanted now: `enabled` says whether it is to be recorded. */
export interface WantedCamera extends CameraConfig {
  /** Why it is not enabled, and since when, as far as that is known. */
  readonly halted?: {
    readonly reason: Reason;
    readonly sinceMs?: number;
    /** Of the gap in its footage; `stopped` unless it says otherwise. */
    readonly cause?: 'unlicensed';
  };
}

export interface CameraSetDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly archive: Archive;
  readonly gaps: GapLedger;
  readonly pool: SlabPool;
  readonly pacer: ReadPacer;
  readonly receiveBuffer: Buffer;
  readonly liveLimits: LiveLimits;
  /** Why cameras that are wanted may not be recorded, by id; those that are in `running` go on. */
  readonly refusals?: (wanted: readonly CameraConfig[], running: ReadonlySet<string>) => ReadonlyMap<string, Reason>;
}

/** A camera that is recorded. */
interface Active {
  readonly camera: Camera;
  readonly recording: CameraArchive;
  readonly live: LiveHub;
}

/** What else can be told apart from a camera at all: it was configured but is not wanted now. */
type Entry = { readonly config: WantedCamera; readonly active: Active | undefined; readonly sinceMs: number };

/** What live viewers are told. */
const CAMERA_REMOVED = [CLOSE.unknownCamera, 'the camera was removed'] as const;
const CAMERA_STOPPED = [CLOSE.offline, 'the camera was stopped'] as const;
const RECORDER_STOPS = [CLOSE.goingAway, 'the recorder stops'] as const;

export class CameraSet implements CameraDirectory {
  readonly #deps: CameraSetDeps;
  #entries = new Map<string, Entry>();
  /** Changes are carried out one after the other: a camera is closed before it is opened anew. */
  #work: Promise<void> = Promise.resolve();
  /** What `apply` was given last. */
  #wanted: readonly WantedCamera[] = [];

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

  /** What is configured of a camera. `source`, `snapshot` and `onvif` may hold a password. */
  config(cameraId: string): CameraConfig | undefined {
    return this.#entries.get(cameraId)?.config;
  }

  /** Those that are recorded, or tried to. */
  running(): ReadonlySet<string> {
    return new Set([...this.#entries].flatMap(([id, { active }]) => (active ? [id] : [])));
  }

  /**
   * Makes the set what `cameras` says. Resolves when every camera that had to stop has closed its files. What is said
   * while a change waits for one before it replaces it: a camera that goes and comes back meanwhile is never stopped.
   */
  apply(cameras: readonly WantedCamera[]): Promise<void> {
    this.#wanted = cameras;
    this.#work = this.#work.then(() => this.#apply(this.#wanted));
    return this.#work;
  }

  /**
   * Stops every camera and closes its files, for the end of the recorder. The cameras stay known: viewers that come back
   * meanwhile are told to try again, not that there is no such camera.
   */
  close(): Promise<void> {
    this.#work = this.#work.then(async () => {
      this.#deps.gaps.stopping();
      await Promise.all(Array.from(this.#entries.keys(), (cameraId) => this.#stop(cameraId, RECORDER_STOPS)));
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

  async #apply(wanted: readonly WantedCamera[]): Promise<void> {
    const { log, clock, gaps } = this.#deps;
    const cameras = this.#permitted(wanted);
    // First: what is missing while cameras are stopped is not the cameras' fault.
    gaps.configure(cameras.map(({ id, enabled, halted }) => ({ id, enabled, cause: halted?.cause })));
    const before = Array.from(this.#entries.values(), (entry) => entry.config);
    const { added, removed, changed } = diffCameras(before, cameras);
    const starting = new Set([...added, ...changed].map((camera) => camera.id));
    await Promise.all([
      ...removed.map(({ id }) => this.#stop(id, CAMERA_REMOVED)),
      ...changed.map(({ id, enabled }) => this.#stop(id, enabled ? RECORDER_STOPS : CAMERA_STOPPED)),
    ]);
    const entries = new Map<string, Entry>();
    for (const config of cameras) {
      const old = this.#entries.get(config.id);
      if (old && !starting.has(config.id)) entries.set(config.id, { ...old, config });
      else {
        const sinceMs = config.halted?.sinceMs ?? clock.wallMs();
        entries.set(config.id, { config, active: this.#start(config), sinceMs });
      }
    }
    this.#entries = entries;
    const ids = (list: readonly CameraConfig[]) => list.map((camera) => camera.id);
    if (starting.size + removed.length > 0) {
      log.info({ added: ids(added), changed: ids(changed), removed: ids(removed) }, 'cameras configured');
    }
  }

  /** Those that may not be recorded stand still, with the reason. */
  #permitted(wanted: readonly WantedCamera[]): readonly WantedCamera[] {
    const enabled = wanted.filter((camera) => camera.enabled);
    const refusals = this.#deps.refusals?.(enabled, this.running());
    if (!refusals || refusals.size === 0) return wanted;
    return wanted.map((camera) => {
      const reason = camera.enabled ? refusals.get(camera.id) : undefined;
      return reason ? { ...camera, enabled: false, halted: { reason, cause: 'unlicensed' } } : camera;
    });
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

  async #stop(cameraId: string, [code, reason]: readonly [code: number, reason: string]): Promise<void> {
    const active = this.#entries.get(cameraId)?.active;
    if (!active) return;
    await active.camera.stop();
    active.live.close(code, reason);
    await active.recording.close();
  }

  #view({ config, active, sinceMs }: Entry): CameraView {
    if (!active) {
      return { status: stoppedStatus(config, sinceMs, config.halted?.reason), archive: undefined, live: undefined };
    }
    const { camera, recording, live } = active;
    const silence = this.#deps.gaps.silenceOf(config.id);
    return { status: camera.status(), archive: recording.status(), live, ...(silence ? { silence } : {}) };
  }
}
