// Access units of one connection in, samples on the timeline of a run out (docs/design/time.md).
//
// A run lies on the video's RTP clock. Its wall clock is the monotonic clock, anchored to the least-delayed frame and
// slewed by at most 500 ppm. Audio lies on its own clock, placed against the video by sender reports where they make
// sense and by arrival otherwise; a drift is corrected by a gap or a dropped frame, never by resampling.

import type { Clock } from '../../base/clock.ts';
import type { AccessUnit, AudioParameters, VideoParameters } from '../codec/access-unit.ts';
import { VIDEO_TIMESCALE } from '../mp4/sample.ts';
import { DecodeOrder } from './decode-order.ts';
import { OffsetFilter } from './offset-filter.ts';
import { RateEstimator } from './rate-estimator.ts';
import { RtpClock } from './rtp-clock.ts';
import type { EndReason, SampleSink } from './sink.ts';

/** A run's first frames wait this long, so that its start and the place of its audio rest on more than one arrival. */
const SETTLE_MS = 500;
/** Frames that wait are bounded, whatever a camera sends in half a second. */
const MAX_SETTLING_UNITS = 1_000;
/** The wall clock of a run follows the host's by at most this much (500 ppm). */
const MAX_SLEW = 500e-6;
/** An error against the wall clock that lasts is a new run (a stepped host clock at once). */
const MAX_ERROR_MS = 2_000;
const ERROR_LASTS_MS = 10_000;
/** Missing pictures of more than this are a gap, not a long picture. */
const MAX_LOSS_MS = 1_000;
/** Audio further than this from its place is moved there. */
const AUDIO_TOLERANCE_MS = 30;
/** Sender reports that place audio further than this from where its arrival does are not believed. */
const MAX_REPORT_DISAGREEMENT_MS = 300;
const REPORT_VALID_MS = 60_000;
/** Run time at which the first picture of a run is shown, so that decoding times and early audio are not negative. */
const RUN_START_MS = 10_000;
const TICKS_PER_MS = VIDEO_TIMESCALE / 1000;
const ASSUMED_FRAME_TICKS = VIDEO_TIMESCALE / 25;

export interface TimelineOptions {
  readonly clock: Clock;
  readonly sink: SampleSink;
  readonly newRunId: () => string;
  /** Clock rates of the RTP streams; audio 0 when there is none. */
  readonly videoClockRate: number;
  readonly audioClockRate: number;
  /** What earlier connections of this camera taught; kept by the caller. */
  readonly memory: TimelineMemory;
  /** Takes the count of frames that were dropped rather than stored. */
  readonly discarded: (kind: 'video' | 'audio', frames: number) => void;
}

/** Survives reconnects: what the camera's parameter sets do not say. */
export interface TimelineMemory {
  reorderDepth: number;
}

interface Unit {
  readonly unit: AccessUnit;
  readonly kind: 'video' | 'audio';
  readonly parameters: VideoParameters | AudioParameters;
  /** Milliseconds on the track's own clock since its first frame in this run; video already at its true rate. */
  readonly mediaMs: number;
}

type State = 'waiting' | 'settling' | 'running';

export class Timeline {
  readonly #o: TimelineOptions;
  #state: State = 'waiting';
  /** Why the run ends at the next key frame. */
  #restart: EndReason | undefined;
  #runId = '';

  // Video
  #videoClock: RtpClock;
  #videoOffset = new OffsetFilter();
  #rate = new RateEstimator();
  #order = new DecodeOrder(0);
  #parameters: VideoParameters | undefined;
  /** Camera milliseconds at which the present factor began, and run milliseconds there. */
  #rateFromMs = 0;
  #rateToMs = 0;
  #factor = 1;
  #lastVideoMs = 0;

  // Audio
  #audioClock: RtpClock;
  #audioOffset = new OffsetFilter();
  #audioParameters: AudioParameters | undefined;
  #audioStarted = false;
  /** Milliseconds to add to the audio's media time to come to run time. */
  #audioShiftMs = 0;
  #nextAudioDts: number | undefined;

  // Wall clock: wall = run time + this
  #wallOffsetMs = 0;
  #hostOffsetMs = 0;
  #slewedAtMs = 0;
  #errorSinceMs: number | undefined;

  // Sender reports: camera clock minus media time, in milliseconds
  #videoReport: { offsetMs: number; atMs: number } | undefined;
  #audioReport: { offsetMs: number; atMs: number } | undefined;
  #videoReference: { timestamp: number; mediaMs: number } | undefined;
  #audioReference: { timestamp: number; mediaMs: number } | undefined;

  #settling: Unit[] = [];
  #settleFromMs = 0;

  constructor(options: TimelineOptions) {
    this.#o = options;
    this.#videoClock = new RtpClock(options.videoClockRate, (options.videoClockRate / 25) | 0);
    this.#audioClock = new RtpClock(options.audioClockRate || 8000, 1);
  }

  /** True when a run has begun and its samples flow. */
  get running(): boolean {
    return this.#state === 'running';
  }

  /** Takes a video access unit that arrived at `arrivalMs` (monotonic). The caller keeps its own hold on the data. */
  video(unit: AccessUnit, parameters: VideoParameters, arrivalMs: number): void {
    if (this.#state !== 'waiting' && unit.randomAccess) this.#restartIfDue(parameters);
    if (this.#state === 'waiting') {
      if (!unit.randomAccess) return this.#o.discarded('video', 1);
      this.#beginSettling(parameters, arrivalMs);
    }
    const depthUnknown = parameters.reorderDepth === undefined;
    const mayReorder = this.#order.depth > 0 || (depthUnknown && unit.bidirectional);
    this.#videoClock.push(unit.timestamp, arrivalMs, mayReorder);
    if (this.#videoClock.verdict === 'rebased') {
      this.#restart = 'clock';
      this.#videoOffset.reset();
      this.#videoReport = undefined;
    }
    const cameraMs = (this.#videoClock.ticks * 1000) / this.#o.videoClockRate;
    const mediaMs = this.#trueRate(cameraMs, arrivalMs);
    this.#videoOffset.push(arrivalMs - mediaMs, arrivalMs);
    if (this.#videoClock.verdict === 'ok') this.#videoReference = { timestamp: unit.timestamp, mediaMs };
    const missingMs = mediaMs - this.#lastVideoMs;
    if (
      this.#state === 'running' &&
      unit.lostPackets > 0 &&
      missingMs > MAX_LOSS_MS &&
      missingMs > 3 * this.#usualMs()
    ) {
      this.#endRun('gap');
      if (!unit.randomAccess) return this.#o.discarded('video', 1);
      return this.video(unit, parameters, arrivalMs);
    }
    // Leading pictures of an open GOP (H.264 §3.1, H.265 RASL) refer to pictures before the run: no decoder shows them.
    if (mediaMs < 0) return this.#o.discarded('video', 1);
    if (mediaMs > this.#lastVideoMs) this.#lastVideoMs = mediaMs;
    this.#take({ unit, kind: 'video', parameters, mediaMs }, arrivalMs);
  }

  /** Takes an audio access unit. Audio before the run's first picture is dropped. */
  audio(unit: AccessUnit, parameters: AudioParameters, arrivalMs: number): void {
    if (this.#state === 'waiting') return;
    this.#audioClock.push(unit.timestamp, arrivalMs, false);
    if (this.#audioClock.verdict === 'rebased') {
      this.#audioOffset.reset();
      this.#audioReport = undefined;
    }
    const mediaMs = (this.#audioClock.ticks * 1000) / this.#o.audioClockRate;
    // A frame's timestamp is that of its first sample, and it can leave only when its last one has been captured.
    const durationMs = (unit.durationTicks * 1000) / parameters.sampleRate;
    this.#audioOffset.push(arrivalMs - durationMs - mediaMs, arrivalMs);
    if (this.#audioClock.verdict === 'ok') this.#audioReference = { timestamp: unit.timestamp, mediaMs };
    this.#take({ unit, kind: 'audio', parameters, mediaMs }, arrivalMs);
  }

  /** Takes an RTCP sender report: the camera's clock in milliseconds (any epoch) at an RTP timestamp of a track. */
  senderReport(kind: 'video' | 'audio', cameraClockMs: number, timestamp: number, arrivalMs: number): void {
    const reference = kind === 'video' ? this.#videoReference : this.#audioReference;
    if (!reference || cameraClockMs === 0) return;
    const rate = kind === 'video' ? this.#o.videoClockRate : this.#o.audioClockRate;
    const aheadMs = (((timestamp - reference.timestamp) | 0) * 1000) / rate;
    // A report about some other clock than that of the packets (Tapo C320WS: another SSRC altogether).
    if (Math.abs(aheadMs) > 30_000) return;
    const report = { offsetMs: cameraClockMs - (reference.mediaMs + aheadMs), atMs: arrivalMs };
    if (kind === 'video') this.#videoReport = report;
    else this.#audioReport = report;
  }

  /** The owner calls this now and then, so that a run settles although nothing follows. */
  tick(nowMs: number): void {
    if (this.#state === 'settling' && nowMs - this.#settleFromMs >= SETTLE_MS) this.#settle(nowMs);
  }

  /** Ends the run, if one has begun. The timeline can begin another. */
  end(reason: EndReason): void {
    if (this.#state !== 'waiting') this.#endRun(reason);
  }

  /** A key frame is the place for what could not be done before one. */
  #restartIfDue(parameters: VideoParameters): void {
    if (this.#depthOf(parameters) !== this.#order.depth) this.#restart ??= 'parameters';
    if (this.#restart) this.#endRun(this.#restart);
  }

  /** A camera whose parameter sets do not say how far it reorders is watched, and believed from the next key frame on. */
  #depthOf(parameters: VideoParameters): number {
    return parameters.reorderDepth ?? this.#o.memory.reorderDepth;
  }

  #usualMs(): number {
    return (this.#videoClock.usualTicks * 1000 * this.#factor) / this.#o.videoClockRate;
  }

  #beginSettling(parameters: VideoParameters, arrivalMs: number): void {
    const { videoClockRate, audioClockRate } = this.#o;
    this.#state = 'settling';
    this.#settleFromMs = arrivalMs;
    this.#restart = undefined;
    this.#videoClock = new RtpClock(videoClockRate, (videoClockRate / 25) | 0);
    this.#audioClock = new RtpClock(audioClockRate || 8000, 1);
    this.#videoOffset.reset();
    this.#audioOffset.reset();
    this.#rateFromMs = 0;
    this.#rateToMs = 0;
    this.#lastVideoMs = 0;
    this.#rate = new RateEstimator();
    this.#factor = 1;
    this.#order = new DecodeOrder(this.#depthOf(parameters));
    this.#audioStarted = false;
    this.#nextAudioDts = undefined;
    this.#videoReport = undefined;
    this.#audioReport = undefined;
    this.#videoReference = undefined;
    this.#audioReference = undefined;
    this.#audioParameters = undefined;
  }

  #take(entry: Unit, arrivalMs: number): void {
    if (this.#state === 'running') {
      if (entry.kind === 'video') this.#slew(arrivalMs);
      this.#emit(entry);
      return;
    }
    entry.unit.data.slab.retain();
    this.#settling.push(entry);
    if (arrivalMs - this.#settleFromMs >= SETTLE_MS || this.#settling.length >= MAX_SETTLING_UNITS)
      this.#settle(arrivalMs);
  }

  /** Decides where the run lies and lets the waiting frames go. */
  #settle(nowMs: number): void {
    const units = this.#settling;
    this.#settling = [];
    this.#state = 'running';
    const { clock, sink, newRunId } = this.#o;
    this.#hostOffsetMs = clock.wallMs() - clock.monotonicMs();
    this.#wallOffsetMs = this.#hostOffsetMs + (this.#videoOffset.value ?? nowMs) - RUN_START_MS;
    this.#slewedAtMs = nowMs;
    this.#errorSinceMs = undefined;
    this.#placeAudio();
    const video = units.find((entry) => entry.kind === 'video')?.parameters as VideoParameters;
    const audio = units.find((entry) => entry.kind === 'audio')?.parameters as AudioParameters | undefined;
    this.#parameters = video;
    this.#audioParameters = audio;
    this.#runId = newRunId();
    sink.begin({ runId: this.#runId, video, audio });
    for (const entry of units) {
      this.#emit(entry);
      entry.unit.data.slab.release();
    }
  }

  #endRun(reason: EndReason): void {
    if (this.#state === 'settling') this.#settle(this.#o.clock.monotonicMs());
    this.#state = 'waiting';
    this.#restart = undefined;
    this.#o.sink.end(reason);
  }

  #emit(entry: Unit): void {
    if (entry.kind === 'video') this.#emitVideo(entry, entry.parameters as VideoParameters);
    else this.#emitAudio(entry, entry.parameters as AudioParameters);
  }

  #emitVideo({ unit, mediaMs }: Unit, parameters: VideoParameters): void {
    if (parameters !== this.#parameters && unit.randomAccess) this.#changeTo(parameters);
    const pts = Math.round((RUN_START_MS + mediaMs) * TICKS_PER_MS);
    const usualDuration = Math.max(1, Math.round(this.#usualMs() * TICKS_PER_MS)) || ASSUMED_FRAME_TICKS;
    const dts = this.#order.push(pts, usualDuration);
    if (parameters.reorderDepth === undefined && this.#order.observedDepth > this.#o.memory.reorderDepth) {
      this.#o.memory.reorderDepth = this.#order.observedDepth;
    }
    this.#o.sink.sample({
      kind: 'video',
      dts,
      compositionOffset: pts - dts,
      usualDuration,
      sync: unit.randomAccess,
      data: unit.data,
      wallMs: this.#wallOffsetMs + RUN_START_MS + mediaMs,
      lostPackets: unit.lostPackets,
    });
  }

  #emitAudio({ unit, mediaMs }: Unit, parameters: AudioParameters): void {
    if (parameters !== this.#audioParameters) {
      // Tracks are fixed for a run: audio that starts late or changes waits for the next key frame's.
      this.#restart ??= 'parameters';
      return this.#o.discarded('audio', 1);
    }
    this.#placeAudio();
    const { sampleRate } = parameters;
    const runMs = mediaMs + this.#audioShiftMs;
    const wanted = Math.round((runMs * sampleRate) / 1000);
    const tolerance = (AUDIO_TOLERANCE_MS * sampleRate) / 1000;
    let dts = this.#nextAudioDts ?? wanted;
    if (wanted - dts > tolerance) dts = wanted;
    else if (dts - wanted > tolerance) return this.#o.discarded('audio', 1);
    if (!this.#audioStarted && runMs < RUN_START_MS) return;
    this.#audioStarted = true;
    this.#nextAudioDts = dts + unit.durationTicks;
    this.#o.sink.sample({
      kind: 'audio',
      dts,
      compositionOffset: 0,
      usualDuration: unit.durationTicks,
      sync: true,
      data: unit.data,
      wallMs: this.#wallOffsetMs + runMs,
      lostPackets: unit.lostPackets,
    });
  }

  #changeTo(parameters: VideoParameters): void {
    this.#parameters = parameters;
    this.#o.sink.change({ runId: this.#runId, video: parameters, audio: this.#audioParameters });
  }

  /** Camera time to run time: the same, unless the camera's timestamps lie about its rate. */
  #trueRate(cameraMs: number, arrivalMs: number): number {
    this.#rate.push(arrivalMs, cameraMs);
    const mediaMs = this.#rateToMs + (cameraMs - this.#rateFromMs) * this.#factor;
    if (!this.#rate.lying && this.#factor === 1) return mediaMs;
    const expectedMs = arrivalMs + this.#hostOffsetMs - this.#wallOffsetMs - RUN_START_MS;
    this.#rateFromMs = cameraMs;
    this.#rateToMs = mediaMs;
    this.#factor = this.#rate.factor(expectedMs - mediaMs);
    return mediaMs;
  }

  /** Moves the run's wall clock towards the host's, and asks for a new run where that does not help. */
  #slew(nowMs: number): void {
    const { clock } = this.#o;
    const hostOffsetMs = clock.wallMs() - clock.monotonicMs();
    const elapsedMs = nowMs - this.#slewedAtMs;
    this.#slewedAtMs = nowMs;
    if (Math.abs(hostOffsetMs - this.#hostOffsetMs) > MAX_ERROR_MS) this.#restart ??= 'clock';
    const offsetMs = this.#videoOffset.value;
    if (offsetMs === undefined) return;
    const errorMs = hostOffsetMs + offsetMs - RUN_START_MS - this.#wallOffsetMs;
    const stepMs = Math.max(0, elapsedMs) * MAX_SLEW;
    this.#wallOffsetMs += Math.max(-stepMs, Math.min(stepMs, errorMs));
    if (Math.abs(errorMs) <= MAX_ERROR_MS || this.#rate.lying) this.#errorSinceMs = undefined;
    else if (nowMs - (this.#errorSinceMs ??= nowMs) >= ERROR_LASTS_MS) this.#restart ??= 'clock';
  }

  /** Where audio belongs against video, by arrival, or by the camera's own clock when its reports make sense. */
  #wantedAudioShift(): number | undefined {
    const videoMs = this.#videoOffset.value;
    const audioMs = this.#audioOffset.value;
    if (videoMs === undefined || audioMs === undefined) return undefined;
    const byArrivalMs = audioMs - videoMs;
    const video = this.#videoReport;
    const audio = this.#audioReport;
    if (!video || !audio || Math.abs(video.atMs - audio.atMs) > REPORT_VALID_MS) return RUN_START_MS + byArrivalMs;
    const byReportMs = audio.offsetMs - video.offsetMs;
    const believed = Math.abs(byReportMs - byArrivalMs) <= MAX_REPORT_DISAGREEMENT_MS;
    return RUN_START_MS + (believed ? byReportMs : byArrivalMs);
  }

  #placeAudio(): void {
    const shiftMs = this.#wantedAudioShift();
    if (shiftMs !== undefined) this.#audioShiftMs = shiftMs;
  }
}
