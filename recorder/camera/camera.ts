// Keeps one camera recording: connects again and again, with pauses in between, until it is stopped.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Reason } from '../../base/reason.ts';
import type { SlabPool } from '../codec/slab.ts';
import type { Sample } from '../mp4/sample.ts';
import type { Reach } from '../reach/reach.ts';
import { CameraSession, type OfferedStreams } from './camera-session.ts';
import { CameraError, NoConnection } from './error.ts';
import { FanOut } from './fan-out.ts';
import type { CameraObserver } from './observer.ts';
import type { PipelineOptions } from './pipeline.ts';
import { ReadMeter } from './read-meter.ts';
import type { ReadPacer } from './read-pacer.ts';
import { RetryPolicy, type Retry } from './retry.ts';
import { runSession } from './session.ts';
import { Rates } from './rates.ts';
import type { CameraSource } from '../contract/camera-source.ts';
import type { SessionMemory } from './session-options.ts';
import type { SampleSink } from '../contract/sink.ts';
import {
  newCounters,
  type CameraCondition,
  type CameraCounters,
  type CameraState,
  type CameraStatus,
} from '../contract/camera-status.ts';

const CLOCK_UNUSABLE: Reason = {
  code: 'camera-clock-unusable',
  message: "the camera's time stamps tell no time: its pictures are recorded at the times at which they arrive",
};

/** The speed of most cameras' ports. */
const DEFAULT_MAX_BITRATE = 100_000_000;

interface CameraDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly pool: SlabPool;
  readonly reach: Reach;
  /** The buffer for all socket reads; one for all cameras of a process. */
  readonly receiveBuffer: Buffer;
  /** Notified of each read from a camera's socket; one for all cameras of a process. */
  readonly pacer?: ReadPacer;
  /** Called when the state, or the reason for it, has changed. */
  readonly changed?: (camera: Camera) => void;
  /** Get every sample: archive and live view. */
  readonly sinks: readonly SampleSink[];
  /** How long to wait after a failure; by default as for a camera that is recorded. */
  readonly retry?: Retry;
}

export class Camera {
  readonly #source: CameraSource;
  readonly #deps: CameraDeps;
  readonly #log: Log;
  #retry: Retry;
  /** Ends the pause before the next attempt. */
  #hurry = new AbortController();
  readonly #meter: ReadMeter;
  readonly #memory: SessionMemory & PipelineOptions['memory'] = { reorderDepth: 0 };
  readonly #stop = new AbortController();
  /** The current connection, or the last one. */
  #session: CameraSession;
  #running: Promise<void> | undefined;
  #state: CameraState = 'stopped';
  #stateSinceMs: number;
  #reason: Reason | undefined;
  readonly #rates = new Rates();
  #lastFrameMs: number | undefined;
  readonly #counters: CameraCounters = newCounters();
  readonly #fanOut: FanOut;
  #observers: readonly CameraObserver[] = [];

  constructor(source: CameraSource, deps: CameraDeps) {
    this.#source = source;
    this.#meter = new ReadMeter(source.maxBitrate ?? DEFAULT_MAX_BITRATE);
    this.#deps = deps;
    this.#retry = deps.retry ?? new RetryPolicy();
    this.#log = deps.log.child({ camera: source.id });
    this.#stateSinceMs = deps.clock.wallMs();
    this.#fanOut = new FanOut(deps.sinks, this.#log, (sample) => this.#count(sample));
    this.#session = this.#newSession({ audioDropped: undefined, notRecorded: [] });
  }

  #newSession(offered: OfferedStreams): CameraSession {
    const { clock, pool } = this.#deps;
    return new CameraSession({
      clock,
      pipeline: {
        clock,
        pool,
        counters: this.#counters,
        memory: this.#memory,
        clockWrong: (errorMs, isUseless) => this.#clockWrong(errorMs, isUseless),
        sink: this.#fanOut,
      },
      offered,
      connected: () => this.#become('connecting', this.#reason),
    });
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Ends the session; resolves when its samples have ended. */
  async stop(): Promise<void> {
    this.#stop.abort();
    // At once, so that a camera does not count as recording while the session is torn down.
    this.#become('stopped', undefined);
    await this.#running;
  }

  /** Ends the current connection like a failure of the camera; the next one follows after a pause. */
  reconnect(error: CameraError): void {
    this.#session.fail(error);
  }

  /** From now on attempts follow the rules for recorded cameras. The first one is made at once. */
  recordFromNow(): void {
    this.#retry = new RetryPolicy();
    this.#hurry.abort();
    this.#hurry = new AbortController();
  }

  /** Changes the limit without reconnecting. */
  limit(maxBitrate: number): void {
    this.#meter.maxBitrate = maxBitrate;
  }

  /** Reports the current connection and later ones to `observer`, until the returned function is called. */
  observe(observer: CameraObserver): () => void {
    this.#watch([...this.#observers, observer]);
    const leave = this.#fanOut.add(observer);
    return () => {
      leave();
      this.#watch(this.#observers.filter((one) => one !== observer));
    };
  }

  #watch(observers: readonly CameraObserver[]): void {
    this.#observers = observers;
    this.#session.observe(observers);
  }

  /** Call a few times a second. */
  tick(nowMs: number): void {
    this.#session.pictures?.tick(nowMs);
    this.#rates.tick(nowMs, this.#counters);
  }

  status(): CameraStatus {
    const { bitrate, frameRate, usualFrameRate } = this.#rates;
    const session = this.#session;
    const pipeline = session.pictures;
    this.#counters.heldMs = this.#meter.heldMs;
    this.#counters.longestHoldMs = this.#meter.longestMs(this.#deps.clock.monotonicMs());
    return {
      id: this.#source.id,
      name: this.#source.name,
      ...this.condition(),
      stateSinceMs: this.#stateSinceMs,
      transport: session.transport,
      receiveBufferBytes: pipeline?.receiveBufferBytes,
      video: pipeline?.video,
      videoRemark: pipeline?.videoRemark,
      audio: pipeline?.audio,
      ...session.offered,
      bitrate,
      frameRate,
      usualFrameRate,
      lastFrameMs: this.#lastFrameMs,
      notBelieved: pipeline?.rejected ?? [],
      clockErrorMs: pipeline?.clockErrorMs,
      clockAheadMs: pipeline?.clockAheadMs,
    };
  }

  /** The part of the status that is watched: it is asked for several times a second. */
  condition(): CameraCondition {
    const state = this.#state;
    const stalled = this.#stop.signal.aborted ? undefined : this.#session.stalled(state === 'recording');
    return {
      state: stalled ? 'connecting' : state,
      reason: stalled ?? this.#reason ?? (state === 'recording' && this.#memory.rejected ? CLOCK_UNUSABLE : undefined),
      isQuiet: state === 'recording' && this.#session.isQuiet,
      counters: this.#counters,
    };
  }

  async #run(): Promise<void> {
    const { clock } = this.#deps;
    const stop = this.#stop.signal;
    let isAway = false;
    while (!stop.aborted) {
      // A camera that is away is tried every second: it counts as `connecting` only once its port answers.
      if (!isAway) this.#become('connecting', this.#reason);
      const { error, recordedMs } = await this.#connectOnce();
      if (stop.aborted) break;
      const nowMs = clock.monotonicMs();
      const allowedMs = error.code === 'bitrate-exceeded' ? this.#meter.waitMs(nowMs) : 0;
      const retryMs = Math.max(this.#retry.next(error, recordedMs, nowMs), allowedMs);
      const wasAway = isAway;
      isAway = error instanceof NoConnection;
      if (!(isAway && wasAway)) {
        this.#counters.reconnects.set(error.code, (this.#counters.reconnects.get(error.code) ?? 0) + 1);
      }
      this.#logFailure(error, retryMs);
      this.#become('retrying', { code: error.code, message: error.message });
      await clock.sleep(retryMs, AbortSignal.any([stop, this.#hurry.signal]));
    }
    this.#become('stopped', undefined);
  }

  /** Runs one connection until it fails or is stopped. */
  async #connectOnce(): Promise<{ readonly error: CameraError; readonly recordedMs: number }> {
    const { clock, reach, receiveBuffer, pacer } = this.#deps;
    const session = this.#newSession(this.#session.offered);
    this.#session = session;
    session.observe(this.#observers);
    let error: CameraError | undefined;
    try {
      await runSession(
        {
          source: this.#source.source,
          transport: this.#source.transport,
          ...(this.#source.tls ? { tls: this.#source.tls } : {}),
          allowPlaintextLogin: this.#source.allowPlaintextLogin ?? false,
          deps: { clock, log: this.#log, reach, receiveBuffer, pacer, meter: this.#meter },
          memory: this.#memory,
          handler: session,
        },
        AbortSignal.any([this.#stop.signal, session.failed]),
      );
      error = session.failed.reason as CameraError | undefined;
    } catch (err) {
      if (err instanceof CameraError) error = err;
      else {
        // A bug of ours: it must not end the process, and may not occur on the next connection.
        this.#log.bug({ err }, 'a camera session failed unexpectedly');
        error = new CameraError('protocol', 'internal error', { cause: err });
      }
    }
    const pipeline = session.pictures;
    // A camera that says that it sends one thing may send another.
    if (error?.code === 'not-decodable' && this.#counters.leadFrames === 0)
      this.#memory.way = (this.#memory.way ?? 0) + 1;
    error = (error ?? new CameraError('closed-by-camera', 'the session ended')).after(pipeline?.lastPacket);
    session.close(
      this.#stop.signal.aborted ? 'stopped' : error.code === 'no-key-frame' ? 'no-key-frame' : 'camera-lost',
    );
    return { error, recordedMs: pipeline?.recordedMs ?? 0 };
  }

  #count(sample: Sample): void {
    const counters = this.#counters;
    if (sample.kind === 'audio') {
      counters.audioFrames++;
      return;
    }
    const pipeline = this.#session.pictures;
    if (pipeline?.awaited === 'sound') counters.audioFrames++;
    else counters.videoFrames++;
    counters.leadFrames++;
    this.#lastFrameMs = this.#deps.clock.wallMs();
    if (this.#state === 'recording' || !sample.sync || this.#stop.signal.aborted) return;
    const codec = (pipeline?.video ?? pipeline?.audio)?.codecString;
    this.#log.info({ codec, transport: this.#session.transport }, 'camera is recording');
    this.#become('recording', undefined);
  }

  /** Logs the first failure and each new reason, but not every attempt of a camera that fails all day. */
  #logFailure(error: CameraError, retryMs: number): void {
    const repeated = this.#reason?.code === error.code;
    const fields = { reason: error.code, detail: error.message, retryMs };
    if (repeated) this.#log.debug(fields, 'camera still fails');
    else this.#log.warn(fields, 'camera failed');
  }

  #clockWrong(errorMs: number, isUseless: boolean): void {
    const fields = { errorSeconds: Math.round(errorMs / 1000), stampedByArrival: isUseless };
    this.#log.warn(fields, "the camera's time stamps do not fit the times at which its pictures arrive");
  }

  #become(state: CameraState, reason: Reason | undefined): void {
    const isSame = state === this.#state;
    if (isSame && reason?.code === this.#reason?.code) {
      this.#reason = reason;
      return;
    }
    this.#reason = reason;
    this.#state = state;
    if (!isSame) this.#stateSinceMs = this.#deps.clock.wallMs();
    this.#deps.changed?.(this);
  }
}
