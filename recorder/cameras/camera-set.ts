// The cameras that a recorder runs, each with its archive sink and its live stream. They are started, stopped and replaced
// one by one; a change of the configuration affects only the cameras that it changes.

import { isDeepStrictEqual } from 'node:util';
import { previewId } from '../../base/camera-id.ts';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { MemoryAccount } from '../../base/memory-budget.ts';
import type { Reason } from '../../base/reason.ts';
import { Turns } from '../../base/turns.ts';
import type { CameraRecords, RecordedCamera } from '../model/camera-view.ts';
import type { Archive } from '../archive/archive.ts';
import type { CameraArchive } from '../archive/segments/camera-archive.ts';
import type { GapLedger } from '../archive/gaps/ledger.ts';
import { Camera } from '../camera/camera.ts';
import { CameraError } from '../camera/error.ts';
import { previewSource } from '../camera/preview-source.ts';
import type { ReadPacer } from '../camera/read-pacer.ts';
import type { LiveFeed, LiveQuality } from '../contract/live-feed.ts';
import type { SampleSink } from '../contract/sink.ts';
import { stoppedStatus, type CameraCondition } from '../contract/camera-status.ts';
import type { SlabPool } from '../codec/slab.ts';
import { diffCameras } from '../config/changes.ts';
import type { CameraConfig } from '../config/schema.ts';
import { CLOSE } from '../live/close.ts';
import { PreviewStream } from './preview.ts';
import type { Reach } from '../reach/reach.ts';
import { LiveSource } from '../live/source.ts';
import type { SourceLimits } from '../live/source-limits.ts';
import type { StandbyRing } from '../camera/standby-ring.ts';
import { FanOut } from '../camera/fan-out.ts';
import type { Standby, StandbySet } from './standby-set.ts';

/** A camera as it is wanted now. `enabled`: whether it should be recorded. */
export interface WantedCamera extends CameraConfig {
  /** Why it is not enabled, and since when if that is known. */
  readonly halted?: {
    readonly reason: Reason;
    readonly sinceMs?: number;
    /** The cause of the gap in its footage; `stopped` by default. */
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
  readonly reach: Reach;
  readonly receiveBuffer: Buffer;
  readonly liveLimits: SourceLimits;
  readonly memory?: MemoryAccount;
  /** Called often with the current state of a camera, which may be unchanged; undefined for a camera that is gone. */
  readonly state?: (cameraId: string, condition: CameraCondition | undefined) => void;
  /** The cameras for which this node is the standby. A camera that this node gets is taken over from there. */
  readonly standbys?: StandbySet;
  /** Wall time from which the held pictures of a camera are to be written. */
  readonly wantedFromMs?: (cameraId: string) => number;
  /** Why wanted cameras may not be recorded, by id. Cameras in `running` continue. */
  readonly refusals?: (wanted: readonly CameraConfig[], running: ReadonlySet<string>) => ReadonlyMap<string, Reason>;
}

/** The picture and the fragment of a camera of 4 Mbit/s, in blocks of memory, and its tables. */
const CAMERA_BYTES = 1024 * 1024;

interface Active {
  readonly camera: Camera;
  readonly recording: CameraArchive;
  readonly live: LiveSource;
  /** Undefined for a camera without a preview. */
  readonly preview: Preview | undefined;
  /** Passes the held pictures to the archive after a takeover. */
  readonly ring: StandbyRing | undefined;
}

/** The preview of a camera that is recorded. */
interface Preview {
  readonly stream: PreviewStream;
  /** Undefined for a preview that is not recorded. */
  readonly recording: CameraArchive | undefined;
}

/** The cameras to record, and those to hold while another node records them. */
export interface HeldCameras {
  readonly cameras: readonly CameraConfig[];
  /** How much of each is held. */
  readonly holdMs: number;
}
const NONE_HELD: HeldCameras = { cameras: [], holdMs: 0 };

/** Also used for cameras that are configured but should not be recorded. */
type Entry = { readonly config: WantedCamera; readonly active: Active | undefined; readonly sinceMs: number };

/** What gets the samples of a camera, in this order. */
type Takers = { readonly recording: CameraArchive; readonly live: LiveSource; readonly gaps: SampleSink };

/** Close codes and reasons for live viewers. */
const CAMERA_REMOVED = [CLOSE.unknownCamera, 'the camera was removed'] as const;
const CAMERA_STOPPED = [CLOSE.offline, 'the camera was stopped'] as const;
const START_FAILED = {
  reason: { code: 'start-failed', message: 'the camera could not be started: see the log' },
} as const;
const noKeyFrame = (): CameraError => new CameraError('no-key-frame', 'the camera has sent no key frame for too long');
const PREVIEW_CHANGED = [CLOSE.goingAway, 'the settings of the camera changed'] as const;
const RECORDER_STOPS = [CLOSE.goingAway, 'the recorder is stopping'] as const;

export class CameraSet implements CameraRecords {
  readonly #deps: CameraSetDeps;
  #entries = new Map<string, Entry>();
  /** Changes are carried out one after the other: a camera is closed before it is opened again. */
  /** Changes follow one another, also after one that failed. */
  readonly #changes = new Turns(1);
  /** The last arguments of `apply`. */
  #wanted: readonly WantedCamera[] = [];
  #held = NONE_HELD;

  constructor(deps: CameraSetDeps) {
    this.#deps = deps;
  }

  list(): readonly RecordedCamera[] {
    return Array.from(this.#entries.values(), (entry) => this.#view(entry));
  }

  get(cameraId: string): RecordedCamera | undefined {
    const entry = this.#entries.get(cameraId);
    return entry && this.#view(entry);
  }

  /** A live stream of a camera; undefined for a camera that is not recorded, or has no preview. */
  feed(cameraId: string, quality: LiveQuality): LiveFeed | undefined {
    const active = this.#entries.get(cameraId)?.active;
    return quality === 'preview' ? active?.preview?.stream : active?.live;
  }

  keyFrame(cameraId: string): Buffer | undefined {
    return this.#entries.get(cameraId)?.active?.live.keyFrame();
  }

  /** The settings of a camera. `source`, `snapshot` and `onvif` may contain a password. */
  config(cameraId: string): CameraConfig | undefined {
    return this.#entries.get(cameraId)?.config;
  }

  /** For probes: the connection of a camera that should be recorded, and its source, which may contain a password. */
  observed(
    cameraId: string,
  ): { readonly camera: Pick<Camera, 'observe' | 'status'>; readonly source: string } | undefined {
    const entry = this.#entries.get(cameraId);
    return entry?.active && { camera: entry.active.camera, source: entry.config.source };
  }

  /** Cameras that should be recorded, with their settings. */
  *recorded(): Generator<{
    readonly config: CameraConfig;
    readonly camera: Pick<Camera, 'status'>;
    readonly recording: Pick<CameraArchive, 'status'>;
  }> {
    for (const { config, active } of this.#entries.values()) if (active) yield { config, ...active };
  }

  /** Cameras that are recorded, or are being connected. */
  running(): ReadonlySet<string> {
    return new Set([...this.#entries].flatMap(([id, { active }]) => (active ? [id] : [])));
  }

  /**
   * Applies a list of cameras. Resolves when every camera that had to stop has closed its files. A list that arrives during
   * a change replaces a list that is still waiting: a camera that is removed and added meanwhile is never stopped.
   */
  apply(cameras: readonly WantedCamera[], held = NONE_HELD): Promise<void> {
    this.#wanted = cameras;
    this.#held = held;
    return this.#changes.take(() => this.#apply(this.#wanted, this.#held));
  }

  /**
   * Stops every camera and closes its files at the end of the recorder. The cameras stay known: viewers that reconnect are
   * told to try again, not that the camera is unknown.
   */
  close(): Promise<void> {
    return this.#changes.take(async () => {
      this.#deps.gaps.stopping();
      await Promise.all([
        ...Array.from(this.#entries.keys(), (cameraId) => this.#stop(cameraId, RECORDER_STOPS)),
        this.#deps.standbys?.close(),
      ]);
    });
  }

  /** To be called a few times a second. */
  tick(): void {
    const { clock, gaps } = this.#deps;
    const nowMs = clock.monotonicMs();
    for (const [cameraId, { active }] of this.#entries) {
      if (!active) continue;
      const { camera, recording, preview } = active;
      camera.tick(nowMs);
      preview?.stream.tick(nowMs);
      recording.tick();
      const condition = camera.condition();
      this.#deps.state?.(cameraId, condition);
      gaps.observe(cameraId, { camera: condition, archive: recording.status(), written: recording.written() });
    }
    this.#deps.standbys?.tick();
    gaps.tick();
  }

  async #apply(wanted: readonly WantedCamera[], held: HeldCameras): Promise<void> {
    const { log, clock, gaps, standbys } = this.#deps;
    const cameras = this.#permitted(wanted);
    // Before the cameras are stopped: the gap ledger must not blame the cameras for the gap.
    const detailOf = ({ halted }: WantedCamera) =>
      halted?.reason.code === 'stopped-by-user' ? halted.reason.message : '';
    gaps.configure(
      cameras.map((one) => ({ id: one.id, enabled: one.enabled, cause: one.halted?.cause, detail: detailOf(one) })),
    );
    const before = Array.from(this.#entries.values(), (entry) => entry.config);
    const { added, removed, changed } = diffCameras(before, cameras);
    const starting = new Set([...added, ...changed].map((camera) => camera.id));
    await Promise.all([
      ...cameras.map((config) => this.#endPreview(this.#entries.get(config.id), config)),
      ...removed.map(({ id }) => this.#stop(id, CAMERA_REMOVED)),
      ...changed.map(({ id, enabled }) => this.#stop(id, enabled ? RECORDER_STOPS : CAMERA_STOPPED)),
    ]);
    const entries = new Map<string, Entry>();
    for (const config of cameras) {
      const old = this.#entries.get(config.id);
      if (old && !starting.has(config.id)) {
        old.active?.recording.configure(config.record);
        old.active?.camera.limit(config.maxBitrate);
        const { active } = old;
        const isNew = active && this.#hasOtherPreview(old, config);
        entries.set(config.id, {
          ...old,
          config,
          active: isNew ? { ...active, preview: this.#previewOf(config) } : active,
        });
        continue;
      }
      const sinceMs = config.halted?.sinceMs ?? clock.wallMs();
      try {
        entries.set(config.id, { config, active: this.#start(config), sinceMs });
      } catch (err) {
        // The other cameras are started anyway. The next change tries this one again, because it differs from what is
        // wanted.
        log.error({ camera: config.id, err }, 'a camera could not be started');
        entries.set(config.id, { config: { ...config, halted: START_FAILED }, active: undefined, sinceMs });
      }
    }
    this.#entries = entries;
    for (const { id } of removed) this.#deps.state?.(id, undefined);
    for (const [id, entry] of entries) if (!entry.active) this.#deps.state?.(id, this.#view(entry).status);
    // Only now: the cameras that this node records from now on had to be taken over first.
    await standbys?.apply(held.cameras, held.holdMs);
    const recorded = cameras.filter(({ enabled, preview }) => enabled && preview?.recorded).length;
    this.#deps.memory?.hold((this.running().size + (standbys?.size ?? 0) + recorded) * CAMERA_BYTES);
    const ids = (list: readonly CameraConfig[]) => list.map((camera) => camera.id);
    if (starting.size + removed.length > 0) {
      const level = removed.length > 0 ? 'warn' : 'info';
      log[level]({ added: ids(added), changed: ids(changed), removed: ids(removed) }, 'the cameras were configured');
    }
  }

  /** Disables the cameras that may not be recorded, with the reason. */
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
    // First, because it ends what is written of the camera while it is held.
    const held = this.#deps.standbys?.take(config);
    try {
      return this.#record(config, held);
    } catch (err) {
      void held?.camera.stop().then(() => held.ring.close());
      throw err;
    }
  }

  #record(config: CameraConfig, held: Standby | undefined): Active {
    const { archive, gaps, liveLimits, clock, log, pool, pacer, reach, receiveBuffer } = this.#deps;
    const connecting = { clock, log, pool, pacer, reach, receiveBuffer };
    const live = new LiveSource({ cameraId: config.id, limits: liveLimits, clock, log });
    const recording = archive.sinkFor(
      { cameraId: config.id, name: config.name, ...config.record },
      {
        needKeyFrame: () => camera.reconnect(noKeyFrame()),
      },
    );
    const changed = (camera: Camera): void => this.#deps.state?.(config.id, camera.condition());
    const sinks: Takers = { recording, live, gaps: gaps.sinkFor(config.id) };
    const camera = held?.camera ?? new Camera(config, { ...connecting, sinks: Object.values(sinks), changed });
    if (held) this.#takeOver(held, config, sinks, changed);
    camera.start();
    return { camera, recording, live, preview: this.#previewOf(config), ring: held?.ring };
  }

  #previewOf(config: CameraConfig): Preview | undefined {
    const { preview } = config;
    if (!preview) return undefined;
    const { archive, liveLimits: limits, clock, log: logOfNode, pool, pacer, reach, receiveBuffer } = this.#deps;
    const log = logOfNode.child({ stream: 'preview' });
    const recording = preview.recorded
      ? archive.sinkFor(
          { cameraId: previewId(config.id), name: config.name, ...config.record },
          { needKeyFrame: () => stream.reconnect(noKeyFrame()) },
        )
      : undefined;
    const stream = new PreviewStream({
      cameraId: config.id,
      limits,
      clock,
      log,
      recording,
      connection: (sinks, changed) => {
        const source = previewSource(config, preview.source);
        return new Camera(source, { clock, log, pool, pacer, reach, receiveBuffer, sinks, changed });
      },
    });
    return { stream, recording };
  }

  /** Whether a camera that continues needs another connection to its preview, or another file of it. */
  #hasOtherPreview({ config: before }: Entry, { preview, maxBitrate, record }: CameraConfig): boolean {
    const connectedBy = (one: CameraConfig['preview']) => one && { ...one, retention: undefined };
    if (!isDeepStrictEqual(connectedBy(before.preview), connectedBy(preview))) return true;
    if (!preview) return false;
    const isRecordedOtherwise =
      before.record.format !== record.format || before.record.segmentDurationMs !== record.segmentDurationMs;
    return before.maxBitrate !== maxBitrate || (preview.recorded && isRecordedOtherwise);
  }

  /** Ends the preview of a camera that continues with another one. */
  async #endPreview(entry: Entry | undefined, config: CameraConfig): Promise<void> {
    if (!entry?.active?.preview || !this.#hasOtherPreview(entry, config)) return;
    await entry.active.preview.stream.close(...PREVIEW_CHANGED).catch((err: unknown) => {
      this.#deps.log.error({ camera: config.id, err }, 'a preview was not closed cleanly');
    });
  }

  /** Takes a camera over from the standbys: its held pictures are written, and its connection stays open. */
  #takeOver(held: Standby, config: CameraConfig, to: Takers, changed: (camera: Camera) => void): void {
    const { camera, ring } = held;
    const log = this.#deps.log.child({ camera: config.id });
    log.info({ heldSeconds: Math.round(ring.heldMs / 1_000) }, 'the camera is recorded from what was held of it');
    held.changed = changed;
    camera.limit(config.maxBitrate);
    camera.recordFromNow();
    ring.promote({
      fromMs: this.#deps.wantedFromMs?.(config.id) ?? -Infinity,
      recording: new FanOut([to.recording, to.gaps], log),
      hasSpace: () => to.recording.hasTimeForMore(),
      live: new FanOut([to.live], log),
      notBeforeMs: to.recording.endMs,
    });
  }

  async #stop(cameraId: string, [code, reason]: readonly [code: number, reason: string]): Promise<void> {
    const active = this.#entries.get(cameraId)?.active;
    if (!active) return;
    // A failure of one step must not leave the others, or another camera, open.
    const steps = [
      () => active.camera.stop(),
      () => active.ring?.flush(),
      () => active.preview?.stream.close(code, reason),
      () => active.live.close(code, reason),
      () => active.recording.close(),
    ] as const;
    for (const step of steps) {
      try {
        await step();
      } catch (err) {
        this.#deps.log.error({ camera: cameraId, err }, 'a camera was not stopped cleanly');
      }
    }
  }

  #view(entry: Entry): RecordedCamera {
    const { config, active, sinceMs } = entry;
    const { group, ptz } = config;
    if (!active) {
      const status = stoppedStatus(config, sinceMs, config.halted?.reason);
      return { status, ptz, group, archive: undefined };
    }
    const { camera, recording, preview } = active;
    const silence = this.#deps.gaps.silenceOf(config.id);
    return {
      status: camera.status(),
      ptz,
      group,
      ...(preview && { preview: preview.stream.status() }),
      archive: recording.status(),
      ...(preview?.recording && { previewArchive: preview.recording.status() }),
      ...(silence ? { silence } : {}),
    };
  }
}
