// One camera's live stream: samples in, WebSocket messages out to any number of viewers. Recording never waits for it.

import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { EndReason, Run, SampleSink } from '../camera/sink.ts';
import { initSegment } from '../mp4/init.ts';
import { timescaleOf, VIDEO_TIMESCALE } from '../mp4/sample.ts';
import type { Sample } from '../mp4/sample.ts';
import { GopCache } from './gop-cache.ts';
import type { CachedSample } from './gop-cache.ts';
import type { LiveLimits } from './limits.ts';
import { MessageWriter } from './message.ts';
import { TrackTime } from './track-time.ts';
import { CLOSE, Viewer } from './viewer.ts';
import type { StreamStart, ViewerOptions, ViewerSocket } from './viewer.ts';

export interface LiveHubOptions {
  readonly cameraId: string;
  readonly limits: LiveLimits;
  readonly clock: Clock;
  readonly log: Log;
}

/** Counted since the start, for metrics. */
export interface LiveStats {
  readonly viewers: number;
  readonly sentBytes: number;
  /** Video frames that viewers missed because their connection was too slow, or because they waited for a key frame. */
  readonly droppedFrames: number;
  readonly cachedBytes: number;
}

/** What the viewers of the present run decode with. */
interface Stream {
  readonly all: StreamStart;
  /** For viewers that do not want audio. */
  readonly videoOnly: StreamStart;
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
    this.#gop = new GopCache(options.limits.maxGopBytes, options.limits.cacheBudget);
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
   * Takes a viewer; the picture starts at once when there is one. Call `remove` when its connection has closed. Undefined
   * when it was turned away, with a close code.
   */
  add(socket: ViewerSocket, options: ViewerOptions = { audio: true }): Viewer | undefined {
    const { limits } = this.#options;
    if (this.#closed) {
      socket.close(CLOSE.offline, 'the camera is stopped');
      return undefined;
    }
    if (this.#viewers.size >= limits.maxViewersPerCamera || !limits.takeViewer()) {
      socket.close(CLOSE.tooManyViewers, 'too many viewers');
      return undefined;
    }
    const viewer = new Viewer(socket, options, limits.maxViewerBytes);
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
    this.#options.limits.giveBackViewer();
    if (this.#viewers.size === 0) this.#cancelOfflineTimer();
  }

  /** The newest key frame as a movie of one picture; undefined while none is at hand. */
  keyFrame(): Buffer | undefined {
    const [first] = this.#gop.samples;
    if (!this.#stream || !first) return undefined;
    const message = first.message ?? (first.data && this.#writer.write(first, first.data));
    return message && Buffer.concat([this.#stream.videoOnly.init, message]);
  }

  begin(run: Run): void {
    // One timeline over all runs, so that players go on where they were: it never goes back, and keeps up with the clock.
    const elapsedSeconds = (this.#options.clock.monotonicMs() - this.#startedMs) / 1000;
    const endSeconds = Math.max(this.#video.endSeconds, this.#audio?.endSeconds ?? 0);
    this.#baseSeconds = Math.max(elapsedSeconds, endSeconds) + COMMON_GAP_SECONDS;
    this.#video = new TrackTime(VIDEO_TIMESCALE, this.#baseSeconds);
    this.#audio = run.audio && new TrackTime(timescaleOf(run.audio), this.#baseSeconds);
    this.#setStream(run);
  }

  change(run: Run): void {
    const audio = run.audio;
    if (!audio) this.#audio = undefined;
    else if (this.#audio?.timescale !== timescaleOf(audio)) {
      this.#audio = new TrackTime(timescaleOf(audio), this.#baseSeconds);
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
      for (const viewer of this.#viewers) viewer.push(message, video, sync, nowMs);
    }
    this.#gop.add(live);
  }

  end(_reason: EndReason): void {
    this.#stream = undefined;
    this.#gop.clear();
    if (this.#viewers.size > 0) this.#awaitStream();
  }

  /** Turns all viewers away: the camera is not wanted any more, or the recorder stops. */
  close(code: number = CLOSE.goingAway, reason = 'the recorder stops'): void {
    this.#closed = true;
    this.#stream = undefined;
    this.#gop.clear();
    this.#closeViewers(code, reason);
  }

  #setStream(run: Run): void {
    this.#gop.clear();
    this.#cancelOfflineTimer();
    try {
      const videoOnly = { init: initSegment([run.video]), tracks: run.video.codec };
      this.#stream = {
        videoOnly,
        all: run.audio
          ? { init: initSegment([run.video, run.audio]), tracks: `${run.video.codec}, ${run.audio.codec}` }
          : videoOnly,
      };
    } catch (err) {
      const { log, cameraId } = this.#options;
      log.warn({ err, camera: cameraId }, 'live stream cannot be described');
      this.#stream = undefined;
      this.#awaitStream();
      return;
    }
    for (const viewer of this.#viewers) viewer.start(viewer.audio ? this.#stream.all : this.#stream.videoOnly);
  }

  /** The initialization segment, then everything since the last key frame. */
  #start(viewer: Viewer, stream: Stream): void {
    viewer.start(viewer.audio ? stream.all : stream.videoOnly);
    const nowMs = this.#options.clock.monotonicMs();
    for (const cached of this.#gop.samples) {
      let { message } = cached;
      if (!message && cached.data) {
        message = this.#writer.write(cached, cached.data);
        this.#gop.replace(cached, message);
      }
      if (message) viewer.push(message, cached.kind === 'video', cached.sync, nowMs);
    }
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
