// One camera's live stream: sends its samples as WebSocket messages to any number of viewers. Recording never waits for it.

import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { EndReason, Run, SampleSink } from '../contract/sink.ts';
import { initSegment } from '../mp4/init.ts';
import { VIDEO_TIMESCALE, type Sample } from '../mp4/sample.ts';
import { GopCache, type CachedSample } from './gop-cache.ts';
import type { LiveLimits } from './limits.ts';
import { MessageWriter } from './message.ts';
import { TrackTime } from './track-time.ts';
import { CLOSE, Viewer, type StreamStart, type ViewerOptions, type ViewerSocket } from './viewer.ts';

interface LiveHubOptions {
  readonly cameraId: string;
  readonly limits: LiveLimits;
  readonly clock: Clock;
  readonly log: Log;
}

/** Counts since the start, for metrics. */
export interface LiveStats {
  readonly viewers: number;
  readonly sentBytes: number;
  /** Video frames that viewers missed because their connection was too slow or because they waited for a key frame. */
  readonly droppedFrames: number;
  readonly cachedBytes: number;
}

/** The start of the stream for the viewers of the current run. */
interface Stream {
  readonly kind: 'video' | 'audio';
  readonly all: StreamStart;
  /** For viewers that do not want audio. */
  readonly leadOnly: StreamStart;
}

const COMMON_GAP_SECONDS = 0.1;

export class LiveHub implements SampleSink {
  readonly #options: LiveHubOptions;
  readonly #startedMs: number;
  readonly #viewers = new Set<Viewer>();
  readonly #writer = new MessageWriter();
  readonly #gop: GopCache;
  #stream: Stream | undefined;
  #baseSeconds = 0;
  #video = new TrackTime(VIDEO_TIMESCALE, 0);
  #audio: TrackTime | undefined;
  #offlineTimer: Timer | undefined;
  #closed = false;
  #goneSentBytes = 0;
  #goneDroppedFrames = 0;

  constructor(options: LiveHubOptions) {
    this.#options = options;
    this.#startedMs = options.clock.monotonicMs();
    const { limits } = options;
    this.#gop = new GopCache(limits.maxGopBytes, limits.cacheMemory);
    limits.addCache(this.#gop);
  }

  get stats(): LiveStats {
    let sentBytes = this.#goneSentBytes;
    let droppedFrames = this.#goneDroppedFrames;
    for (const viewer of this.#viewers) {
      sentBytes += viewer.sentBytes;
      droppedFrames += viewer.droppedFrames;
    }
    return { viewers: this.#viewers.size, sentBytes, droppedFrames, cachedBytes: this.#gop.sizeBytes };
  }

  /**
   * Adds a viewer; it gets a picture at once if there is one. Call `remove` when its connection has closed. Undefined if it was
   * refused with a close code.
   */
  add(socket: ViewerSocket, options: ViewerOptions = { audio: true }): Viewer | undefined {
    const { limits } = this.#options;
    if (this.#closed) {
      socket.close(CLOSE.offline, 'the camera is stopped');
      return undefined;
    }
    const viewer = new Viewer(socket, options, limits.maxViewerBytes, limits.viewerMemory);
    const refusal = limits.addViewer(viewer, this.#viewers);
    if (refusal !== undefined) {
      socket.close(CLOSE.tooManyViewers, refusal);
      return undefined;
    }
    this.#viewers.add(viewer);
    if (this.#stream) this.#start(viewer, this.#stream);
    else this.#awaitStream();
    return viewer;
  }

  remove(viewer: Viewer): void {
    viewer.gone();
    if (!this.#viewers.delete(viewer)) return;
    this.#goneSentBytes += viewer.sentBytes;
    this.#goneDroppedFrames += viewer.droppedFrames;
    this.#options.limits.removeViewer(viewer);
    if (this.#viewers.size === 0) this.#cancelOfflineTimer();
  }

  /** The newest key frame as a movie of one picture; undefined if there is none. */
  keyFrame(): Buffer | undefined {
    const [first] = this.#gop.samples;
    if (this.#stream?.kind !== 'video' || !first) return undefined;
    const message = first.message ?? (first.data && this.#writer.write(first, first.data));
    return message && Buffer.concat([this.#stream.leadOnly.init, message.bytes]);
  }

  begin(run: Run): void {
    // One timeline for all runs, so that players can continue: it never goes back, and it keeps up with the clock.
    const elapsedSeconds = (this.#options.clock.monotonicMs() - this.#startedMs) / 1000;
    const endSeconds = Math.max(this.#video.endSeconds, this.#audio?.endSeconds ?? 0);
    this.#baseSeconds = Math.max(elapsedSeconds, endSeconds) + COMMON_GAP_SECONDS;
    this.#video = new TrackTime(VIDEO_TIMESCALE, this.#baseSeconds);
    this.#audio = run.audio && new TrackTime(run.audio.sampleRate, this.#baseSeconds);
    this.#setStream(run);
  }

  change(run: Run): void {
    const audio = run.audio;
    if (!audio) this.#audio = undefined;
    else if (this.#audio?.timescale !== audio.sampleRate) {
      this.#audio = new TrackTime(audio.sampleRate, this.#baseSeconds);
    }
    this.#setStream(run);
  }

  sample(sample: Sample): void {
    const video = sample.kind === 'video';
    const time = video ? this.#video : this.#audio;
    if (!this.#stream || !time?.place(sample)) return;
    const { decodeTime, compositionOffset, duration } = time;
    const { kind, sync, data } = sample;
    const live: CachedSample = { kind, sync, decodeTime, compositionOffset, duration, data, message: undefined };
    if (this.#viewers.size > 0) {
      const message = this.#writer.write(live, data);
      live.data = undefined;
      live.message = message;
      const nowMs = this.#options.clock.monotonicMs();
      for (const viewer of this.#viewers) viewer.push(message, nowMs);
    }
    this.#gop.add(live);
  }

  end(_reason: EndReason): void {
    this.#stream = undefined;
    this.#gop.clear();
    if (this.#viewers.size > 0) this.#awaitStream();
  }

  /** Disconnects all viewers: the camera is no longer wanted, or the recorder stops. */
  close(code: number = CLOSE.goingAway, reason = 'the recorder is stopping'): void {
    this.#closed = true;
    this.#stream = undefined;
    this.#gop.clear();
    this.#options.limits.removeCache(this.#gop);
    this.#closeViewers(code, reason);
  }

  /** Disconnects the present viewers; others may come. */
  dismiss(code: number, reason: string): void {
    this.#closeViewers(code, reason);
  }

  #setStream(run: Run): void {
    this.#gop.clear();
    this.#cancelOfflineTimer();
    try {
      const leadOnly = { init: initSegment([run.lead]), tracks: run.lead.codec };
      this.#stream = {
        kind: run.lead.kind,
        leadOnly,
        all: run.audio
          ? { init: initSegment([run.lead, run.audio]), tracks: `${run.lead.codec}, ${run.audio.codec}` }
          : leadOnly,
      };
    } catch (err) {
      const { log, cameraId } = this.#options;
      log.warn({ err, camera: cameraId }, 'the live stream of a camera cannot be started');
      this.#stream = undefined;
      this.#awaitStream();
      return;
    }
    for (const viewer of this.#viewers) viewer.start(viewer.audio ? this.#stream.all : this.#stream.leadOnly);
  }

  /** Sends the initialization segment, then everything since the last key frame. */
  #start(viewer: Viewer, stream: Stream): void {
    const start = viewer.audio ? stream.all : stream.leadOnly;
    viewer.start(start, this.#gop.sizeBytes);
    const nowMs = this.#options.clock.monotonicMs();
    const { samples } = this.#gop;
    for (const cached of samples) {
      // Making space for this viewer emptied the cache: it waits for the next key frame.
      if (this.#gop.samples !== samples) return viewer.start(start);
      let { message } = cached;
      if (!message && cached.data) {
        message = this.#writer.write(cached, cached.data);
        this.#gop.replace(cached, message);
      }
      if (message) viewer.push(message, nowMs);
    }
    return undefined;
  }

  #awaitStream(): void {
    if (this.#offlineTimer || this.#closed) return;
    this.#offlineTimer = this.#options.clock.after(this.#options.limits.offlineWaitMs, () => {
      this.#offlineTimer = undefined;
      this.#closeViewers(CLOSE.offline, 'the camera is offline');
    });
  }

  #cancelOfflineTimer(): void {
    this.#offlineTimer?.cancel();
    this.#offlineTimer = undefined;
  }

  #closeViewers(code: number, reason: string): void {
    this.#cancelOfflineTimer();
    for (const viewer of this.#viewers) viewer.close(code, reason);
  }
}
