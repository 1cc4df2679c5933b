// Access units of one connection in, samples of its runs out (docs/design/time.md). Here is what outlives a run: the two
// streams' clocks, what the camera says of how they belong together, and when a run begins and ends.

import type { Clock } from '../../base/clock.ts';
import { HOUR_MS } from '../../base/units.ts';
import type { AccessUnit, AudioParameters, VideoParameters } from '../codec/access-unit.ts';
import { RtpClock } from './rtp-clock.ts';
import { Run, type TimelineMemory } from './run.ts';
import type { EndReason, SampleSink } from './sink.ts';

/** No picture for longer than this, and than so many usual distances, is a gap, not a long picture. */
const MAX_PICTURE_MS = 1_000;
const MAX_PICTURE_DISTANCES = 5;
/** What two long distances in a row teach of a camera that varies its rate holds for so long. */
const SLOW_VALID_MS = HOUR_MS;
/** Sender reports further apart than this say nothing about each other. */
const REPORT_VALID_MS = 60_000;
/** Reports at least so far apart are compared with the stamps. */
const MIN_COMPARED_MS = 15_000;
/** Reports and arrival agree to this, and stamps that are off by more than the next have the wrong rate. */
const MAX_RATE_ERROR = 0.01;
const WRONG_RATE = 0.03;
/** By then the clocks of the two streams may have drifted apart by some milliseconds. */
const START_VALID_MS = 10_000;
/** A report so far from the packets is about some other clock (Tapo C320WS: another SSRC altogether). */
const MAX_REPORT_DISTANCE_MS = 30_000;
/** Stamps that told no time are believed again when they keep so close to arrival for so long. */
const PROBATION_MS = 60_000;
const PROBATION_ERROR_MS = 1_000;

type Kind = 'video' | 'audio';

export interface TimelineOptions {
  readonly clock: Clock;
  readonly sink: SampleSink;
  readonly newRunId: () => string;
  /**
   * Clock rates of the RTP streams; audio 0 when there is none. Where the camera offers only sound, it takes the place of
   * the video: every frame of it is a key frame.
   */
  readonly videoClockRate: number;
  readonly audioClockRate: number;
  /** What earlier connections of this camera taught; kept by the caller. */
  readonly memory: TimelineMemory;
  /** Takes the count of frames that were dropped rather than stored. */
  readonly discarded: (kind: Kind, frames: number) => void;
  /** Told of stamps that cannot be right: how far they are off, and whether pictures are stamped by arrival from now on. */
  readonly clockWrong: (errorMs: number, isUseless: boolean) => void;
}

interface Report {
  /** The camera's clock, of whatever epoch, less the stream's media time. */
  readonly offsetMs: number;
  readonly atMs: number;
}

export class Timeline {
  readonly #o: TimelineOptions;
  readonly #clocks: { readonly [K in Kind]: RtpClock };
  /** By the camera's own word: sender reports, and where RTP-Info began. */
  readonly #reports: { [K in Kind]?: Report | undefined } = {};
  readonly #starts: { [K in Kind]?: Report | undefined } = {};
  readonly #soundBias = { ms: 0 };
  /** Of the video's, since its stamps last made a step: with it the next are compared; what the last comparison gave. */
  #firstReport: { readonly cameraMs: number; readonly mediaMs: number; readonly atMs: number } | undefined;
  #wrongRate = NaN;
  #run: Run | undefined;
  /** Of the last two pictures; the first distance is compared with none. */
  #distanceMs = Infinity;
  #slowMs = 0;
  #slowAtMs = 0;
  #arrivalMs = 0;
  /** Since when useless stamps have kept within bounds of (arrival - media time). */
  #probation: { readonly offsetMs: number; readonly sinceMs: number } | undefined;

  constructor(options: TimelineOptions) {
    this.#o = options;
    const { videoClockRate, audioClockRate } = options;
    this.#clocks = { video: new RtpClock(videoClockRate), audio: new RtpClock(audioClockRate || 8000) };
  }

  /** True when a run has begun and its samples flow. */
  get running(): boolean {
    return this.#run?.flowing ?? false;
  }

  /** Worst distance of a picture's wall time and its arrival in the present run, milliseconds. */
  get clockErrorMs(): number | undefined {
    return this.#run?.clockErrorMs;
  }

  /**
   * Takes an access unit of the video, or of sound that is alone, that arrived at `arrivalMs` (monotonic). The caller keeps
   * its own hold on the data.
   */
  lead(unit: AccessUnit, parameters: VideoParameters | AudioParameters, arrivalMs: number): void {
    const stated = parameters.kind === 'video' ? parameters.reorderDepth : 0;
    const depth = stated ?? this.#o.memory.reorderDepth;
    const mayReorder = depth > 0 || (stated === undefined && unit.bidirectional);
    const isBehindLoss = unit.lostPackets > 0;
    this.#pushVideo(unit.timestamp, arrivalMs, mayReorder, isBehindLoss);
    const run = this.#run;
    if (this.#stoodStill(arrivalMs, isBehindLoss) && run && !run.byArrival) this.end(isBehindLoss ? 'gap' : 'stalled');
    else if (run && unit.randomAccess) {
      // A key frame is the place for what could not be done before one.
      if (depth !== run.depth) run.endsAs ??= 'parameters';
      if (run.endsAs) this.end(run.endsAs);
    }
    if (!this.#run && !unit.randomAccess) return this.#o.discarded('video', 1);
    this.#run ??= this.#begin(depth, arrivalMs);
    this.#run.lead(unit, parameters, arrivalMs);
  }

  /** Takes an audio access unit. Audio before the run's first picture is dropped. */
  audio(unit: AccessUnit, parameters: AudioParameters, arrivalMs: number): void {
    const clock = this.#clocks.audio;
    clock.push(unit.timestamp, arrivalMs, this.#run?.roomMs(arrivalMs) ?? Infinity, false);
    if (clock.verdict === 'new-clock') {
      this.#forget('audio');
      this.#run?.audioStepped();
    }
    this.#run?.audio(unit, parameters, clock.mediaMs, arrivalMs);
  }

  /** Takes an RTCP sender report: the camera's clock in milliseconds (any epoch) at an RTP timestamp of a stream. */
  senderReport(kind: Kind, cameraClockMs: number, timestamp: number, arrivalMs: number): void {
    if (cameraClockMs === 0) return;
    const clock = this.#clocks[kind];
    const mediaMs = clock.mediaMsOf(timestamp);
    if (clock.isStarted && Math.abs(mediaMs - clock.mediaMs) > MAX_REPORT_DISTANCE_MS) return;
    this.#reports[kind] = { offsetMs: cameraClockMs - mediaMs, atMs: arrivalMs };
    if (kind === 'video') this.#compare({ cameraMs: cameraClockMs, mediaMs, atMs: arrivalMs });
  }

  /**
   * Whether the camera's own clock, and arrival with it, says that the stamps have the wrong rate. Twice in a row the
   * same: many cameras report the stamp of a picture that has waited with the time at which it leaves.
   */
  #compare(report: { readonly cameraMs: number; readonly mediaMs: number; readonly atMs: number }): void {
    const first = (this.#firstReport ??= report);
    const elapsedMs = report.atMs - first.atMs;
    if (elapsedMs < MIN_COMPARED_MS) return;
    this.#firstReport = report;
    const cameraMs = report.cameraMs - first.cameraMs;
    const rate = (report.mediaMs - first.mediaMs) / cameraMs;
    const isWrong = Math.abs(cameraMs / elapsedMs - 1) < MAX_RATE_ERROR && Math.abs(rate - 1) > WRONG_RATE;
    if (isWrong && Math.abs(rate - this.#wrongRate) < MAX_RATE_ERROR) this.#giveUpStamps(report.atMs);
    this.#wrongRate = isWrong ? rate : NaN;
  }

  /** Takes the `rtptime` of RTP-Info (RFC 2326 §12.33): where the stream is when it begins to play. */
  startsAt(kind: Kind, timestamp: number, arrivalMs: number): void {
    this.#starts[kind] = { offsetMs: -this.#clocks[kind].mediaMsOf(timestamp), atMs: arrivalMs };
  }

  /** The owner calls this now and then, so that a run settles although nothing follows. */
  tick(nowMs: number): void {
    this.#run?.tick(nowMs);
  }

  /** Ends the run, if one has begun. The timeline can begin another. */
  end(reason: EndReason): void {
    this.#run?.end(reason);
    this.#run = undefined;
  }

  #begin(depth: number, arrivalMs: number): Run {
    const { clock, sink, memory, discarded, clockWrong, newRunId } = this.#o;
    const options = {
      clock,
      sink,
      memory,
      discarded,
      runId: newRunId(),
      clockWrong: (errorMs: number) => clockWrong(errorMs, memory.useless ?? false),
      soundShiftMs: (nowMs: number) => this.#soundShiftMs(nowMs),
      soundBias: this.#soundBias,
    };
    return new Run(options, this.#clocks.video, depth, arrivalMs);
  }

  #pushVideo(timestamp: number, arrivalMs: number, mayReorder: boolean, isBehindLoss: boolean): void {
    const clock = this.#clocks.video;
    const { memory } = this.#o;
    const roomMs = this.#run?.roomMs(arrivalMs) ?? arrivalMs - this.#arrivalMs;
    clock.push(timestamp, arrivalMs, roomMs, mayReorder, isBehindLoss);
    this.#arrivalMs = arrivalMs;
    if (clock.verdict === 'new-clock') {
      this.#forget('video');
      if (this.#run) this.#run.endsAs ??= 'clock';
    }
    if (clock.verdict === 'useless') this.#giveUpStamps(arrivalMs);
    if (memory.useless) this.#probe(arrivalMs);
  }

  #giveUpStamps(nowMs: number): void {
    const { memory, clockWrong } = this.#o;
    if (memory.useless) return;
    memory.useless = true;
    this.#run?.stampByArrival(nowMs);
    clockWrong(this.#run?.clockErrorMs ?? 0, true);
  }

  /** Whether stamps that told no time do so now. */
  #probe(arrivalMs: number): void {
    const { mediaMs, verdict } = this.#clocks.video;
    const offsetMs = arrivalMs - mediaMs;
    const since = this.#probation;
    if (!since || verdict !== 'ok' || Math.abs(offsetMs - since.offsetMs) > PROBATION_ERROR_MS) {
      this.#probation = { offsetMs, sinceMs: arrivalMs };
    } else if (arrivalMs - since.sinceMs >= PROBATION_MS) {
      this.#o.memory.useless = false;
      this.#probation = undefined;
      if (this.#run) this.#run.endsAs ??= 'clock';
    }
  }

  /** Whether no picture was there for so long that the last one cannot stand for the time. */
  #stoodStill(arrivalMs: number, isBehindLoss: boolean): boolean {
    const { advanceMs, usualMs } = this.#clocks.video;
    if (advanceMs === 0) return false;
    const limitMs = Math.max(MAX_PICTURE_MS, MAX_PICTURE_DISTANCES * Math.max(usualMs, this.#slowMs));
    // What is missing says nothing of how the camera varies its rate.
    if (isBehindLoss) return advanceMs > limitMs;
    const twoMs = Math.min(advanceMs, this.#distanceMs);
    const isFirst = this.#distanceMs === Infinity;
    this.#distanceMs = advanceMs;
    if (isFirst) return false;
    if (twoMs >= this.#slowMs || arrivalMs - this.#slowAtMs > SLOW_VALID_MS) {
      this.#slowMs = twoMs;
      this.#slowAtMs = arrivalMs;
    }
    return advanceMs > limitMs && twoMs * MAX_PICTURE_DISTANCES < advanceMs;
  }

  #forget(kind: Kind): void {
    this.#reports[kind] = undefined;
    this.#starts[kind] = undefined;
    this.#firstReport = undefined;
    this.#wrongRate = NaN;
  }

  /** Media time of the video less that of the audio, at one moment of the camera's clock. */
  #soundShiftMs(nowMs: number): number | undefined {
    const { video, audio } = this.#reports;
    if (video && audio && Math.abs(video.atMs - audio.atMs) <= REPORT_VALID_MS) return audio.offsetMs - video.offsetMs;
    const starts = this.#starts;
    if (!starts.video || !starts.audio || nowMs - starts.video.atMs > START_VALID_MS) return undefined;
    return starts.audio.offsetMs - starts.video.offsetMs;
  }
}
