// The cameras for which this node is the standby: each with a connection and its last seconds in memory (docs/design/standby.md).
// When the cluster assigns one of them to this node, `CameraSet` takes it over from here with its connection.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { CameraArchive } from '../archive/segments/camera-archive.ts';
import type { MemoryAccount } from '../../base/memory-budget.ts';
import type { Reason } from '../../base/reason.ts';
import { Camera } from '../camera/camera.ts';
import type { ReadPacer } from '../camera/read-pacer.ts';
import { StandbyRetry } from '../camera/standby-retry.ts';
import { StandbyRing } from '../camera/standby-ring.ts';
import type { SlabPool } from '../codec/slab.ts';
import { diffCameras } from '../config/changes.ts';
import type { CameraConfig } from '../config/schema.ts';
import type { Reach } from '../reach/reach.ts';

interface StandbySetDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly pool: SlabPool;
  readonly pacer: ReadPacer;
  readonly reach: Reach;
  readonly receiveBuffer: Buffer;
  /** Opens the account of all rings; `shed` makes space in it. */
  readonly memory: (shed: (bytes: number) => void) => MemoryAccount;
  /** Opens the archive for the footage of a bridge: what the node that records the camera has missed. */
  readonly recordingOf?: (config: CameraConfig) => CameraArchive;
}

export interface Standby {
  readonly config: CameraConfig;
  readonly camera: Camera;
  readonly ring: StandbyRing;
  changed: ((camera: Camera) => void) | undefined;
  bridging: (() => void) | undefined;
  recording: CameraArchive | undefined;
}

interface StandbyReport {
  readonly state: 'Connecting' | 'Holding' | 'Failed';
  readonly reason?: Reason | undefined;
}

/** For this long after pictures were dropped because memory was short, the state is `NoMemory`. */
const SHORT_MS = 60_000;
/** By then a restarted recorder has connected to its cameras and received a key frame. */
const BRIDGE_MS = 10_000;

export class StandbySet {
  readonly #deps: StandbySetDeps;
  readonly #memory: MemoryAccount;
  readonly #standbys = new Map<string, Standby>();
  /** When pictures of a camera were last dropped because memory was short, and how often that happened. */
  readonly #short = new Map<string, { readonly drops: number; readonly atMs: number }>();
  #holdMs = 0;

  constructor(deps: StandbySetDeps) {
    this.#deps = deps;
    this.#memory = deps.memory((bytes) => this.#shed(bytes));
  }

  get size(): number {
    return this.#standbys.size;
  }

  /** Wall time of the oldest held picture of the camera; undefined without one. */
  heldSinceMs(cameraId: string): number | undefined {
    return this.#standbys.get(cameraId)?.ring.sinceMs;
  }

  /** Holds these cameras and no others. `holdMs`: how much of each, if memory suffices. Resolves when the other cameras are disconnected. */
  async apply(wanted: readonly CameraConfig[], holdMs: number): Promise<void> {
    this.#holdMs = holdMs;
    const before = Array.from(this.#standbys.values(), ({ config }) => config);
    const { added, removed, changed } = diffCameras(before, wanted);
    if (added.length + removed.length + changed.length === 0) return;
    await Promise.all([...removed, ...changed].map(({ id }) => this.#stop(id)));
    const { log } = this.#deps;
    for (const config of [...added, ...changed]) {
      try {
        this.#start(config);
      } catch (err) {
        // The other cameras are held nevertheless. The next change tries this one again.
        log.error({ camera: config.id, err }, 'a camera could not be held');
        this.#standbys.delete(config.id);
      }
    }
    const ids = (list: readonly CameraConfig[]) => list.map(({ id }) => id);
    log.info({ added: ids(added), changed: ids(changed), removed: ids(removed) }, 'cameras are held');
  }

  /** Hands the camera and its connection over to the caller, which records it. Undefined if it is not held with these settings. */
  take(config: CameraConfig): Standby | undefined {
    const standby = this.#standbys.get(config.id);
    if (!standby || diffCameras([standby.config], [config]).changed.length > 0) return undefined;
    standby.bridging?.();
    this.#standbys.delete(config.id);
    this.#short.delete(config.id);
    return standby;
  }

  /**
   * Bridges a restart of the camera's recorder: writes the pictures held since `fromMs` (wall time) and those of the next seconds,
   * until it records again.
   */
  bridge(cameraId: string, fromMs: number): void {
    const standby = this.#standbys.get(cameraId);
    const { recordingOf, clock, log } = this.#deps;
    if (!standby || standby.bridging || standby.ring.sinceMs === undefined || !recordingOf) return;
    const { ring, config } = standby;
    const recording = recordingOf(config);
    const copy = ring.copy();
    log.info({ camera: cameraId }, 'the recorder of the camera was restarted: what it missed is written here');
    const hasSpace = (): boolean => recording.hasTimeForMore();
    copy.promote({ fromMs, recording, hasSpace, notBeforeMs: recording.endMs, onlyWhole: true });
    standby.recording = recording;
    const timer = clock.after(BRIDGE_MS, () => standby.bridging?.());
    standby.bridging = () => {
      standby.bridging = undefined;
      timer.cancel();
      standby.recording = undefined;
      ring.leave(copy);
      copy.flush();
      void recording.close();
    };
  }

  reports(): ReadonlyMap<string, StandbyReport> {
    return new Map(Array.from(this.#standbys, ([id, standby]) => [id, this.#reportOf(id, standby)]));
  }

  /** Call it a few times a second. */
  tick(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const [id, { camera, ring, recording }] of this.#standbys) {
      camera.tick(nowMs);
      recording?.tick();
      ring.tick();
      const drops = ring.dropsForSpace;
      if (drops > (this.#short.get(id)?.drops ?? 0)) this.#short.set(id, { drops, atMs: nowMs });
    }
  }

  /** Disconnects all cameras. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#standbys.keys(), (id) => this.#stop(id)));
  }

  #start(config: CameraConfig): void {
    const { memory: _, ...deps } = this.#deps;
    const ring = new StandbyRing({ clock: deps.clock, memory: this.#memory, holdMs: () => this.#holdMs });
    const changed = (camera: Camera): void => standby.changed?.(camera);
    const camera = new Camera(config, { ...deps, sinks: [ring], retry: new StandbyRetry(), changed });
    const standby: Standby = { config, camera, ring, changed: undefined, bridging: undefined, recording: undefined };
    this.#standbys.set(config.id, standby);
    camera.start();
  }

  async #stop(id: string): Promise<void> {
    const standby = this.#standbys.get(id);
    if (!standby) return;
    this.#standbys.delete(id);
    this.#short.delete(id);
    standby.bridging?.();
    await standby.camera.stop();
    standby.ring.close();
  }

  /** The oldest pictures of all cameras are dropped first. */
  #shed(bytes: number): void {
    const leastBytes = this.#memory.usedBytes - bytes;
    while (this.#memory.usedBytes > leastBytes) {
      let oldest: StandbyRing | undefined;
      for (const { ring } of this.#standbys.values()) if (ring.heldMs > (oldest?.heldMs ?? 0)) oldest = ring;
      if (!oldest) return;
      oldest.shed();
    }
  }

  #reportOf(id: string, { camera, ring }: Standby): StandbyReport {
    const { state, reason } = camera.condition();
    if (state !== 'recording') return { state: state === 'retrying' ? 'Failed' : 'Connecting', reason };
    const shortMs = this.#deps.clock.monotonicMs() - (this.#short.get(id)?.atMs ?? -Infinity);
    if (shortMs >= SHORT_MS) return { state: ring.heldMs > 0 ? 'Holding' : 'Connecting' };
    const message = `the memory of the recorder does not suffice for ${Math.round(this.#holdMs / 1_000)} s of the camera`;
    return { state: 'Failed', reason: { code: 'no-memory', message } };
  }
}
