// What belongs to one connection of a camera: its pipeline, its messages and its times. The next connection has its own.

import type { Clock } from '../../base/clock.ts';
import type { Reason } from '../../base/reason.ts';
import type { ReceptionReport } from '../rtp/rtcp.ts';
import type { Presentation } from '../rtsp/sdp.ts';
import type { CameraError } from './error.ts';
import { notRecorded } from './not-recorded.ts';
import { Transcript, type CameraObserver, type DialogueMessage } from './observer.ts';
import { Pipeline, type PipelineOptions } from './pipeline.ts';
import type { Playing, SessionHandler } from './session-options.ts';
import type { TransportKind } from '../rtsp/stream-setups.ts';
import type { EndReason } from '../contract/sink.ts';
import type { NotRecorded } from '../contract/camera-status.ts';

/** A camera without a written picture for this long is not recording, whatever else it does. */
const STALLED_MS = 15_000;
/** A connection that has played this long without a picture reports what it waits for. */
const SAYS_WHY_MS = 5_000;

/** What a camera offered besides the streams that are recorded. */
export interface OfferedStreams {
  readonly audioDropped: Reason | undefined;
  readonly notRecorded: readonly NotRecorded[];
}

/** Times are those in which this process ran. */
interface Connected {
  readonly sinceMs: number;
  readonly playing?: { readonly sinceMs: number; readonly transport: TransportKind };
}

interface CameraSessionOptions {
  readonly clock: Clock;
  readonly pipeline: PipelineOptions;
  /** What the camera offered at its last connection, which counts until this one knows better. */
  readonly offered: OfferedStreams;
  /** The camera accepted the connection. */
  readonly connected: () => void;
}

export class CameraSession implements SessionHandler {
  readonly #options: CameraSessionOptions;
  readonly #transcript = new Transcript();
  #observers: readonly CameraObserver[] = [];
  #offered: OfferedStreams;
  #selected: { readonly presentation: Presentation; readonly chosen: readonly number[] } | undefined;
  #pipeline: Pipeline | undefined;
  #connected: Connected | undefined;
  readonly #failed = new AbortController();

  constructor(options: CameraSessionOptions) {
    this.#options = options;
    this.#offered = options.offered;
  }

  /** Undefined until the streams are chosen, and once the connection is over. */
  get pictures(): Pipeline | undefined {
    return this.#pipeline;
  }

  get offered(): OfferedStreams {
    return this.#pipeline ? { ...this.#offered, audioDropped: this.#pipeline.audioDropped } : this.#offered;
  }

  get transport(): TransportKind | undefined {
    return this.#connected?.playing?.transport;
  }

  /** Ends the connection with this error, which is the signal's reason. */
  fail(error: CameraError): void {
    this.#failed.abort(error);
  }

  get failed(): AbortSignal {
    return this.#failed.signal;
  }

  /** Reports the connection to these from now on. An observer that was not among the last ones first gets the messages so far. */
  observe(observers: readonly CameraObserver[]): void {
    for (const observer of observers) {
      if (this.#observers.includes(observer)) continue;
      for (const message of this.#transcript.messages) observer.said(message);
      if (this.#selected) observer.selected(this.#selected.presentation, this.#selected.chosen);
    }
    this.#observers = observers;
  }

  /** What the connection delivers instead of pictures; undefined while it works or is just starting. */
  stalled(isRecording: boolean): Reason | undefined {
    const connected = this.#connected;
    if (!connected) return undefined;
    const { playing } = connected;
    const pipeline = this.#pipeline;
    const sinceMs = pipeline?.lastPictureMs ?? playing?.sinceMs ?? connected.sinceMs;
    const silentMs = this.#options.clock.ranMs() - sinceMs;
    if (silentMs < (isRecording ? STALLED_MS : SAYS_WHY_MS) || this.isQuiet) return undefined;
    if (!playing || !pipeline) {
      const seconds = Math.round(silentMs / 1000);
      return { code: 'no-answer', message: `the camera is connected and has not agreed to play for ${seconds} s` };
    }
    const { code, message } = pipeline.explainSilence(silentMs).after(pipeline.lastPacket);
    return { code, message };
  }

  /** Whether the camera makes its pictures so rarely that none is missing now. */
  get isQuiet(): boolean {
    const lastMs = this.#pipeline?.lastPictureMs;
    return lastMs !== undefined && this.#pipeline?.isQuiet(this.#options.clock.ranMs() - lastMs) === true;
  }

  connected(): void {
    this.#connected = { sinceMs: this.#options.clock.ranMs() };
    this.#options.connected();
  }

  said(message: DialogueMessage): void {
    this.#transcript.add(message);
    for (const observer of this.#observers) observer.said(message);
  }

  select(presentation: Presentation): readonly number[] {
    this.#endPipeline('camera-lost');
    // Also of a camera of which nothing can be recorded.
    this.#offered = { ...this.#offered, notRecorded: notRecorded(presentation, []) };
    const pipeline = new Pipeline(presentation, this.#options.pipeline);
    const { chosen } = pipeline;
    this.#pipeline = pipeline;
    this.#offered = { ...this.#offered, notRecorded: notRecorded(presentation, chosen) };
    this.#selected = { presentation, chosen };
    for (const observer of this.#observers) observer.selected(presentation, chosen);
    return chosen;
  }

  playing(playing: Playing): void {
    const nowMs = this.#options.clock.ranMs();
    this.#connected = { sinceMs: nowMs, ...this.#connected, playing: { sinceMs: nowMs, transport: playing.transport } };
    this.#pipeline?.playing(playing);
  }

  rtp(stream: number, buffer: Buffer, start: number, end: number, arrivalMs: number): void {
    for (const observer of this.#observers) observer.rtp(stream, buffer, start, end);
    this.#pipeline?.rtp(stream, buffer, start, end, arrivalMs);
  }

  rtcp(stream: number, buffer: Buffer, start: number, end: number): void {
    for (const observer of this.#observers) observer.rtcp(stream, buffer, start, end);
    this.#pipeline?.rtcp(stream, buffer, start, end);
  }

  skipped(bytes: number): void {
    this.#options.pipeline.counters.bytesSkipped += bytes;
  }

  receptionReport(stream: number, nowMs: number): ReceptionReport | undefined {
    return this.#pipeline?.receptionReport(stream, nowMs);
  }

  /** The connection is over; ends its run. */
  close(reason: EndReason): void {
    this.#endPipeline(reason);
    this.#connected = undefined;
  }

  #endPipeline(reason: EndReason): void {
    this.#offered = this.offered;
    this.#pipeline?.close(reason);
    this.#pipeline = undefined;
  }
}
