// Converts the access units of one connection to the samples of its runs (docs/design/time.md). This file has what outlives a
// run: the clocks of the two streams, the camera's statements about their relation, and the decisions when a run starts and ends.

import type { Clock } from '../../base/clock.ts';
import { HOUR_MS } from '../../base/units.ts';
import type { AccessUnit, AudioParameters, VideoParameters } from '../codec/access-unit.ts';
import { Reports } from './reports.ts';
import { RtpClock } from './rtp-clock.ts';
import { Run, type TimelineMemory, type TimelineOwner } from './run.ts';
import type { EndReason, SampleSink } from './sink.ts';

/** More than this, and than this many usual distances, without a picture is a gap and not a long picture. */
const MAX_PICTURE_MS = 1_000;
const MAX_PICTURE_DISTANCES = 5;
/** How long it is remembered that a camera varies its rate, which two long distances in a row show. */
const SLOW_VALID_MS = HOUR_MS;
/** A third step within this time shows useless timestamps. */
const STEPPING_MS = 60_000;
/** Useless timestamps are trusted again once they have stayed this close to the arrival for this long. */
const PROBATION_MS = 60_000;
const PROBATION_ERROR_MS = 1_000;

type Kind = 'video' | 'audio';

interface TimelineOptions {
  readonly clock: Clock;
  readonly sink: SampleSink;
  readonly newRunId: () => string;
  /**
   * Clock rates of the RTP streams in Hz; `audioClockRate` is 0 if there is no audio. If the camera offers only audio, it takes
   * the place of the video, and every frame is a key frame.
   */
  readonly videoClockRate: number;
  readonly audioClockRate: number;
  /** What was learnt from earlier connections of this camera; kept by the caller. */
  readonly memory: TimelineMemory;
  readonly owner: TimelineOwner;
}

export class Timeline {
  readonly #options: TimelineOptions;
  readonly #clocks: { readonly [K in Kind]: RtpClock };
  readonly #reports: Reports;
  readonly #soundBias = { ms: 0 };
  /** When the clock of the video made its last two steps. */
  #steppedMs: readonly [number, number] = [-Infinity, -Infinity];
  #run: Run | undefined;
  /** Distances of the last two pictures; the first one is compared with none. */
  #distanceMs = Infinity;
  #slowMs = 0;
  #slowAtMs = 0;
  #arrivalMs = 0;
  /** Since when useless timestamps have kept a constant (arrival - media time). */
  #probation: { readonly offsetMs: number; readonly sinceMs: number } | undefined;

  constructor(options: TimelineOptions) {
    this.#options = options;
    const { videoClockRate, audioClockRate } = options;
    this.#clocks = { video: new RtpClock(videoClockRate), audio: new RtpClock(audioClockRate || 8000) };
    this.#reports = new Reports(this.#clocks);
  }

  /** The largest difference between a picture's wall time and its arrival in the current run, in milliseconds. */
  get clockErrorMs(): number | undefined {
    return this.#run?.clockErrorMs;
  }

  /**
   * Takes an access unit of the video, or of audio without video, that arrived at `arrivalMs` (monotonic). The caller still has
   * to release its own hold on the data.
   */
  lead(unit: AccessUnit, parameters: VideoParameters | AudioParameters, arrivalMs: number): void {
    const stated = parameters.kind === 'video' ? parameters.reorderDepth : 0;
    const depth = stated ?? this.#options.memory.reorderDepth;
    const mayReorder = depth > 0 || (stated === undefined && unit.bidirectional);
    const isBehindLoss = unit.lostPackets > 0;
    this.#pushVideo(unit.timestamp, arrivalMs, mayReorder, isBehindLoss);
    const run = this.#run;
    if (this.#stoodStill(arrivalMs, isBehindLoss) && run && !run.byArrival) this.end(isBehindLoss ? 'gap' : 'stalled');
    else if (run && unit.randomAccess) {
      // Changes that have to wait for a key frame are made now.
      if (depth !== run.depth) run.endsAs ??= 'parameters';
      if (run.endsAs) this.end(run.endsAs);
    }
    if (!this.#run && !unit.randomAccess) return this.#options.owner.discarded('video', 1);
    this.#run ??= this.#begin(depth, arrivalMs);
    this.#run.lead(unit, parameters, arrivalMs);
  }

  /** Takes an audio access unit. Audio before the run's first picture is dropped. */
  audio(unit: AccessUnit, parameters: AudioParameters, arrivalMs: number): void {
    const clock = this.#clocks.audio;
    clock.push(unit.timestamp, arrivalMs, this.#run?.slackMs(arrivalMs) ?? Infinity, false);
    if (clock.verdict === 'new-clock') {
      this.#reports.forget('audio');
      this.#run?.audioStepped();
    }
    this.#run?.audio(unit, parameters, clock.mediaMs, arrivalMs);
  }

  /** Takes an RTCP sender report: the camera's clock in milliseconds (any epoch) at an RTP timestamp of a stream. */
  senderReport(kind: Kind, cameraClockMs: number, timestamp: number, arrivalMs: number): void {
    if (cameraClockMs === 0) return;
    if (this.#reports.note(kind, cameraClockMs, timestamp, arrivalMs)) this.#giveUpStamps(arrivalMs);
  }

  /** Takes the `rtptime` of RTP-Info (RFC 2326 §12.33): the position at which the stream starts to play. */
  startsAt(kind: Kind, timestamp: number, arrivalMs: number): void {
    this.#reports.startsAt(kind, timestamp, arrivalMs);
  }

  /** Call regularly, so that a run settles even if nothing follows. */
  tick(nowMs: number): void {
    this.#run?.tick(nowMs);
  }

  /** Ends the run if one has started. The timeline can start another one. */
  end(reason: EndReason): void {
    this.#run?.end(reason);
    this.#run = undefined;
  }

  #begin(depth: number, arrivalMs: number): Run {
    const { clock, sink, memory, owner, newRunId } = this.#options;
    const options = {
      clock,
      sink,
      memory,
      owner,
      runId: newRunId(),
      statedShift: (nowMs: number) => this.#reports.shift(nowMs),
      soundBias: this.#soundBias,
    };
    return new Run(options, this.#clocks.video, depth, arrivalMs);
  }

  #pushVideo(timestamp: number, arrivalMs: number, mayReorder: boolean, isBehindLoss: boolean): void {
    const clock = this.#clocks.video;
    const { memory } = this.#options;
    const slackMs = this.#run?.slackMs(arrivalMs) ?? arrivalMs - this.#arrivalMs;
    clock.push(timestamp, arrivalMs, slackMs, mayReorder, isBehindLoss);
    this.#arrivalMs = arrivalMs;
    if (clock.verdict === 'new-clock') {
      this.#reports.forget('video');
      if (this.#run && !memory.useless) this.#run.endsAs ??= 'clock';
      // Clocks are set now and then. One that is set all the time tells none, and would end a file each time.
      const [before, last] = this.#steppedMs;
      this.#steppedMs = [last, arrivalMs];
      if (arrivalMs - before < STEPPING_MS) this.#giveUpStamps(arrivalMs);
    }
    if (clock.verdict === 'useless') this.#giveUpStamps(arrivalMs);
    if (memory.useless) this.#probe(arrivalMs);
  }

  #giveUpStamps(nowMs: number): void {
    const { memory, owner } = this.#options;
    if (memory.useless) return;
    memory.useless = true;
    this.#run?.stampByArrival(nowMs);
    owner.clockWrong(this.#run?.clockErrorMs ?? 0, true);
  }

  /** Whether useless timestamps have become plausible again. */
  #probe(arrivalMs: number): void {
    const { mediaMs, verdict } = this.#clocks.video;
    const offsetMs = arrivalMs - mediaMs;
    const since = this.#probation;
    if (!since || verdict !== 'ok' || Math.abs(offsetMs - since.offsetMs) > PROBATION_ERROR_MS) {
      this.#probation = { offsetMs, sinceMs: arrivalMs };
    } else if (arrivalMs - since.sinceMs >= PROBATION_MS) {
      this.#options.memory.useless = false;
      this.#probation = undefined;
      if (this.#run) this.#run.endsAs ??= 'clock';
    }
  }

  /** Whether there was no picture for so long that the last one cannot stand for that time. */
  #stoodStill(arrivalMs: number, isBehindLoss: boolean): boolean {
    const { advanceMs, usualMs } = this.#clocks.video;
    if (advanceMs === 0) return false;
    const limitMs = Math.max(MAX_PICTURE_MS, MAX_PICTURE_DISTANCES * Math.max(usualMs, this.#slowMs));
    // Lost pictures do not show how the camera varies its rate.
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
}
