// Keeps one camera recording: connection after connection, with a pause between them, until it is stopped.

import type { Clock } from '../../base/clock.ts';
import { Backoff } from '../../base/backoff.ts';
import type { Log } from '../../base/log.ts';
import type { SlabPool } from '../codec/slab.ts';
import type { Sample } from '../mp4/sample.ts';
import { CameraError } from './error.ts';
import { FanOut } from './fan-out.ts';
import { Pipeline } from './pipeline.ts';
import type { ReadPacer } from './read-pacer.ts';
import { runSession, type SessionMemory, type TransportChoice, type TransportKind } from './session.ts';
import type { SampleSink } from './sink.ts';
import { newCounters } from './status.ts';
import type { CameraCounters, CameraState, CameraStatus, Reason } from './status.ts';
import type { TimelineMemory } from './timeline.ts';

const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;
const BITRATE_WINDOW_MS = 10_000;

/** What the corridor needs to know of a camera. `source` may hold user and password. */
export interface CameraSource {
  readonly id: string;
  readonly name: string;
  readonly source: string;
  readonly transport: TransportChoice;
  readonly tls?: { readonly verify: boolean };
}

export interface CameraDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly pool: SlabPool;
  /** Where sockets are read into; one for all cameras of a process. */
  readonly receiveBuffer: Buffer;
  /** Told of each read of a camera's socket; one for all cameras of a process. */
  readonly pacer?: ReadPacer;
  /** Receive every sample: archive and live. */
  readonly sinks: readonly SampleSink[];
}

export class Camera {
  readonly #source: CameraSource;
  readonly #deps: CameraDeps;
  readonly #log: Log;
  readonly #backoff = new Backoff({ firstMs: FIRST_RETRY_MS, maxMs: MAX_RETRY_MS });
  readonly #pipeline: Pipeline;
  readonly #memory: SessionMemory & TimelineMemory = { reorderDepth: 0 };
  readonly #stop = new AbortController();
  #session: AbortController | undefined;
  #sessionError: CameraError | undefined;
  #running: Promise<void> | undefined;
  #state: CameraState = 'stopped';
  #stateSinceMs: number;
  #reason: Reason | undefined;
  #transport: TransportKind | undefined;
  #bitrate: { atMs: number; bytes: number }[] = [];
  #lastFrameMs: number | undefined;
  readonly #counters: CameraCounters = newCounters();

  constructor(source: CameraSource, deps: CameraDeps) {
    this.#source = source;
    this.#deps = deps;
    this.#log = deps.log.child({ camera: source.id });
    this.#stateSinceMs = deps.clock.wallMs();
    const fanOut = new FanOut(deps.sinks, this.#log);
    this.#pipeline = new Pipeline({
      clock: deps.clock,
      pool: deps.pool,
      counters: this.#counters,
      memory: this.#memory,
      fail: (error) => this.reconnect(error),
      sink: {
        begin: (run) => fanOut.begin(run),
        change: (run) => fanOut.change(run),
        end: (reason) => fanOut.end(reason),
        sample: (sample) => {
          this.#count(sample);
          fanOut.sample(sample);
        },
      },
    });
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Tears the session down; resolves when its samples have ended. */
  async stop(): Promise<void> {
    this.#stop.abort();
    // At once: what ends is not to be taken for a recording while it says goodbye to the camera.
    this.#become('stopped', undefined);
    await this.#running;
  }

  /** Ends the present connection, as a failure of the camera: the next follows after a pause. */
  reconnect(error: CameraError): void {
    this.#sessionError = error;
    this.#session?.abort();
  }

  /** The owner calls this a few times a second. */
  tick(nowMs: number): void {
    this.#pipeline.tick(nowMs);
    const last = this.#bitrate.at(-1);
    if (last && nowMs - last.atMs < 1_000) return;
    this.#bitrate.push({ atMs: nowMs, bytes: this.#counters.bytesReceived });
    if (nowMs - (this.#bitrate[0]?.atMs ?? nowMs) > BITRATE_WINDOW_MS) this.#bitrate.shift();
  }

  status(): CameraStatus {
    const first = this.#bitrate[0];
    const last = this.#bitrate.at(-1);
    const elapsedMs = first && last ? last.atMs - first.atMs : 0;
    return {
      id: this.#source.id,
      name: this.#source.name,
      state: this.#state,
      reason: this.#reason,
      stateSinceMs: this.#stateSinceMs,
      transport: this.#transport,
      video: this.#pipeline.video,
      audio: this.#pipeline.audio,
      audioDropped: this.#pipeline.audioDropped,
      bitrate: elapsedMs > 0 && first && last ? Math.round(((last.bytes - first.bytes) * 8000) / elapsedMs) : 0,
      lastFrameMs: this.#lastFrameMs,
      counters: this.#counters,
    };
  }

  async #run(): Promise<void> {
    const { clock } = this.#deps;
    const stop = this.#stop.signal;
    while (!stop.aborted) {
      this.#become('connecting', this.#reason);
      const error = await this.#connectOnce();
      if (stop.aborted) break;
      const retryMs = this.#backoff.next();
      this.#counters.reconnects.set(error.code, (this.#counters.reconnects.get(error.code) ?? 0) + 1);
      this.#logFailure(error, retryMs);
      this.#become('retrying', { code: error.code, message: error.message });
      await clock.sleep(retryMs, stop);
    }
    this.#become('stopped', undefined);
  }

  /** One connection, until it fails or is stopped. */
  async #connectOnce(): Promise<CameraError> {
    const { clock, receiveBuffer, pacer } = this.#deps;
    this.#session = new AbortController();
    this.#sessionError = undefined;
    const pipeline = this.#pipeline;
    let error: CameraError | undefined;
    try {
      await runSession(
        {
          source: this.#source.source,
          transport: this.#source.transport,
          ...(this.#source.tls ? { tls: this.#source.tls } : {}),
          deps: { clock, log: this.#log, receiveBuffer, pacer },
          memory: this.#memory,
          handler: {
            select: (presentation) => pipeline.select(presentation),
            playing: (playing) => {
              this.#transport = playing.transport;
              pipeline.playing(playing);
            },
            rtp: (stream, buffer, start, end) => pipeline.rtp(stream, buffer, start, end),
            rtcp: (stream, buffer, start, end) => pipeline.rtcp(stream, buffer, start, end),
            receptionReport: (stream, nowMs) => pipeline.receptionReport(stream, nowMs),
          },
        },
        AbortSignal.any([this.#stop.signal, this.#session.signal]),
      );
      error = this.#sessionError;
    } catch (err) {
      if (err instanceof CameraError) error = err;
      else {
        // Our own bug: it must not end the process, and the next connection may not meet it.
        this.#log.error({ err }, 'a camera session failed unexpectedly');
        error = new CameraError('protocol', 'internal error', { cause: err });
      }
    }
    const failure = error ?? new CameraError('closed-by-camera', 'the session ended');
    pipeline.close(
      this.#stop.signal.aborted ? 'stopped' : failure.code === 'no-key-frame' ? 'no-key-frame' : 'camera-lost',
    );
    this.#transport = undefined;
    return failure;
  }

  #count(sample: Sample): void {
    if (sample.kind === 'audio') {
      this.#counters.audioFrames++;
      return;
    }
    this.#counters.videoFrames++;
    this.#lastFrameMs = this.#deps.clock.wallMs();
    if (this.#state === 'recording' || !sample.sync || this.#stop.signal.aborted) return;
    this.#backoff.reset();
    this.#log.info({ codec: this.#pipeline.video?.codecString, transport: this.#transport }, 'camera is recording');
    this.#become('recording', undefined);
  }

  /** A camera that fails for a day says so at the first failure and at each new reason, not at each try. */
  #logFailure(error: CameraError, retryMs: number): void {
    const repeated = this.#reason?.code === error.code;
    const fields = { reason: error.code, detail: error.message, retryMs };
    if (repeated) this.#log.debug(fields, 'camera still fails');
    else this.#log.warn(fields, 'camera failed');
  }

  #become(state: CameraState, reason: Reason | undefined): void {
    this.#reason = reason;
    if (state === this.#state) return;
    this.#state = state;
    this.#stateSinceMs = this.#deps.clock.wallMs();
  }
}
