// One camera's live stream where it is recorded: keeps the current group of pictures, and sends fragments while somebody watches.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { LiveFeed, LiveStart, TellLive } from '../contract/live-feed.ts';
import type { EndReason, Run, SampleSink } from '../contract/sink.ts';
import { initSegment } from '../mp4/init.ts';
import { VIDEO_TIMESCALE, type Sample } from '../mp4/sample.ts';
import { CLOSE, STOPPED } from './close.ts';
import { GopCache, type CachedSample } from './gop-cache.ts';
import { MessageWriter } from './message.ts';
import type { SourceLimits } from './source-limits.ts';
import { TrackTime } from './track-time.ts';

interface LiveSourceOptions {
  readonly cameraId: string;
  readonly limits: SourceLimits;
  readonly clock: Clock;
  readonly log: Log;
}

const COMMON_GAP_SECONDS = 0.1;

export class LiveSource implements SampleSink, LiveFeed {
  readonly #options: LiveSourceOptions;
  readonly #startedMs: number;
  readonly #writer = new MessageWriter();
  readonly #gop: GopCache;
  #tell: TellLive | undefined;
  #stream: (LiveStart & { readonly lead: 'video' | 'audio' }) | undefined;
  #baseSeconds = 0;
  #video = new TrackTime(VIDEO_TIMESCALE, 0);
  #audio: TrackTime | undefined;
  #isClosed = false;

  constructor(options: LiveSourceOptions) {
    this.#options = options;
    this.#startedMs = options.clock.monotonicMs();
    const { limits } = options;
    this.#gop = new GopCache(limits.maxGopBytes, limits.cacheMemory);
    limits.addCache(this.#gop);
  }

  get cachedBytes(): number {
    return this.#gop.sizeBytes;
  }

  get isWatched(): boolean {
    return this.#tell !== undefined;
  }

  watch(tell: TellLive): void {
    if (this.#isClosed) return tell({ kind: 'closed', ...STOPPED });
    this.#tell = tell;
    if (this.#stream) this.#answer(tell, this.#stream);
  }

  unwatch(): void {
    this.#tell = undefined;
  }

  /** The newest key frame as a movie of one picture; undefined if there is none. */
  keyFrame(): Buffer | undefined {
    const [first] = this.#gop.samples;
    if (this.#stream?.lead !== 'video' || !first) return undefined;
    const part = first.message ?? (first.data && this.#writer.write(first, first.data));
    return part && Buffer.concat([this.#stream.leadOnly.init, part.bytes]);
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
    if (this.#tell) {
      const part = this.#writer.write(live, data);
      live.data = undefined;
      live.message = part;
      this.#tell({ ...part, isCached: false });
    }
    this.#gop.add(live);
  }

  end(_reason: EndReason): void {
    this.#stream = undefined;
    this.#gop.clear();
    this.#tell?.({ kind: 'end' });
  }

  /** Ends the stream for good: the camera is no longer wanted, or the recorder stops. */
  close(code: number = CLOSE.goingAway, reason = 'the recorder is stopping'): void {
    this.#isClosed = true;
    this.#stream = undefined;
    this.#gop.clear();
    this.#options.limits.removeCache(this.#gop);
    this.dismiss(code, reason);
  }

  /** Disconnects the present viewers; others may come. */
  dismiss(code: number, reason: string): void {
    const tell = this.#tell;
    this.#tell = undefined;
    tell?.({ kind: 'closed', code, reason });
  }

  #setStream(run: Run): void {
    this.#gop.clear();
    try {
      const leadOnly = { init: initSegment([run.lead]), tracks: run.lead.codec };
      this.#stream = {
        lead: run.lead.kind,
        leadOnly,
        all: run.audio
          ? { init: initSegment([run.lead, run.audio]), tracks: `${run.lead.codec}, ${run.audio.codec}` }
          : leadOnly,
      };
    } catch (err) {
      const { log, cameraId } = this.#options;
      log.warn({ err, camera: cameraId }, 'the live stream of a camera cannot be started');
      this.#stream = undefined;
      return this.#tell?.({ kind: 'end' });
    }
    const { all, leadOnly } = this.#stream;
    return this.#tell?.({ kind: 'start', isAnswer: false, cachedBytes: 0, all, leadOnly });
  }

  /** Sends the initialization segment, then everything since the last key frame, even if that is dropped meanwhile to make space. */
  #answer(tell: TellLive, { all, leadOnly }: LiveStart): void {
    const parts = this.#gop.samples.flatMap((cached) => {
      const { data, message } = cached;
      if (!message && data) this.#gop.replace(cached, this.#writer.write(cached, data));
      return cached.message ?? [];
    });
    tell({ kind: 'start', isAnswer: true, cachedBytes: this.#gop.sizeBytes, all, leadOnly });
    for (const part of parts) tell({ ...part, isCached: true });
  }
}
