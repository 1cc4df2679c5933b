// One run: converts the frames of a connection without a clock step to samples on one timeline (docs/design/time.md).

import type { Clock } from '../../base/clock.ts';
import type { AccessUnit, AudioParameters } from '../codec/access-unit.ts';
import { TICKS_PER_MS, type TrackParameters } from '../mp4/sample.ts';
import { ArrivalClock } from './arrival-clock.ts';
import { DecodeOrder } from './decode-order.ts';
import { LOOK_MS, MAX_DELAY_MS, type Judge, type JudgeMemory } from './judge.ts';
import type { RtpClock } from './rtp-clock.ts';
import type { EndReason, SampleSink } from '../contract/sink.ts';
import { SoundPlace } from './sound-place.ts';
import { WallLine } from './wall-line.ts';

/**
 * A run's first frames are held back until this much media has taken at least this long to arrive without less delay, so that its
 * start and the position of its audio do not rest on frames that waited somewhere...
 */
const SETTLE_MS = 500;
/** ...but no longer than this, also while a pre-event buffer or a backlog still drains. */
const MAX_SETTLE_MS = 8_000;
const LESS_DELAY_MS = 100;
/** Frames that waited together arrive within this time. */
const BURST_MS = 100;
/** If the host clock steps by more, the run ends; a smaller step is followed at this rate. */
const MAX_HOST_STEP_MS = 1_000;
const MAX_HOST_SLEW = 0.02;
/** Run time at which the first picture of a run is shown, so that decoding times and early audio are not negative. */
const RUN_START_MS = 10_000;
const ASSUMED_DISTANCE_MS = 40;

/** What was learnt from a camera's connections beyond its parameter sets and timestamps; kept across connections. */
export interface TimelineMemory extends JudgeMemory {
  reorderDepth: number;
  /** The deviation of the camera's clock: wall milliseconds per media millisecond, minus one. */
  slope?: number;
  /** The last key frames, oldest first: timestamp, size, and the last bytes. */
  keyPictures?: string[];
}

/** Receives the outcome of the frames of a connection. */
export interface TimelineOwner {
  /** A picture is passed to the sink next, or an audio frame if there is no video. */
  leadPassed(): void;
  /** Pictures were passed on before: the camera sends them again. */
  repeated(pictures: number): void;
  /** Frames are dropped instead of passed on. */
  discarded(kind: 'video' | 'audio', frames: number): void;
  /** Timestamps cannot be right: by how much they are wrong, and whether pictures are dated by arrival from now on. */
  clockWrong(errorMs: number, isUseless: boolean): void;
}

export interface TimelineOptions {
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

interface Unit {
  readonly unit: AccessUnit;
  /** Whether the unit belongs to the leading track. */
  readonly leads: boolean;
  readonly parameters: TrackParameters;
  mediaMs: number;
  readonly arrivalMs: number;
}

export class Run {
  readonly #options: TimelineOptions;
  readonly #judge: Judge;
  readonly #runId: string;
  /** Clock of the leading stream. */
  readonly #clock: RtpClock;
  /** What is held back until the place of the run is known; undefined from then on. */
  #held: Unit[] | undefined = [];
  readonly #fromMs: number;
  /** The frame with which the delay last fell by much. */
  #least: { readonly mediaMs: number; readonly arrivalMs: number } = { mediaMs: 0, arrivalMs: Infinity };
  /** When a frame first showed that the delay falls no more: silence does not. */
  #shownAtMs = Infinity;
  /** What the sink knows of the tracks; undefined while all is held back. */
  #lead: TrackParameters | undefined;
  #audio: AudioParameters | undefined;
  /** Why the run ends at the next key frame. */
  endsAs: EndReason | undefined;
  /** Media time of the first picture. */
  readonly #originMs: number;
  #mediaMs: number;
  readonly #order: DecodeOrder;
  #arrivals: ArrivalClock | undefined;
  #videoLine: WallLine;
  #audioLine = new WallLine(0);
  readonly #sound = new SoundPlace();
  /** When the place of the audio was looked at. */
  #soundAtMs = -Infinity;
  #hostOffsetMs: number;
  #hostReadMs: number;
  /** The delay of the last picture: from its wall time to its arrival. */
  #delayMs = 0;

  /** Starts with the key frame that the judge has just taken; it must still be passed to `lead`. */
  constructor(options: TimelineOptions, judge: Judge, depth: number, arrivalMs: number) {
    const clock = judge.clocks.video;
    this.#options = options;
    this.#judge = judge;
    this.#runId = options.newRunId();
    this.#clock = clock;
    judge.begin(arrivalMs);
    this.#fromMs = arrivalMs;
    this.#originMs = clock.mediaMs;
    this.#mediaMs = clock.mediaMs;
    this.#order = new DecodeOrder(depth);
    this.#videoLine = new WallLine(options.memory.slope ?? 0);
    this.#hostOffsetMs = this.#readHost();
    this.#hostReadMs = arrivalMs;
    if (judge.isByArrival) this.#arrivals = this.#newArrivals(arrivalMs);
  }

  get depth(): number {
    return this.#order.depth;
  }

  /** By how much the capture of a picture that arrives now can be later than that of the last one. */
  slackMs(arrivalMs: number): number {
    // While the run settles it is unknown what was buffered.
    return this.#videoLine.hasPlaced ? arrivalMs - this.#videoLine.placedWall : MAX_DELAY_MS;
  }

  /** Takes the access unit whose timestamp the clock has just taken: a picture, or an audio frame if there is no video. */
  lead(unit: AccessUnit, parameters: TrackParameters, arrivalMs: number): void {
    const clock = this.#clock;
    if (!this.#held && this.#areContradicted(this.#delayMs, arrivalMs)) this.#startOver(arrivalMs);
    const mediaMs = this.#arrivals?.push(clock.mediaMs, clock.usualMs, arrivalMs) ?? clock.mediaMs;
    // Leading pictures of an open GOP (H.264 §3.1, H.265 RASL) refer to pictures before the run and cannot be decoded.
    if (mediaMs < this.#originMs) return this.#options.owner.discarded(parameters.kind, 1);
    this.#mediaMs = Math.max(this.#mediaMs, mediaMs);
    this.#videoLine.observe(mediaMs, arrivalMs);
    if (this.#held) {
      this.#noteDelay(mediaMs, arrivalMs);
      return this.#wait(this.#held, { unit, leads: true, parameters, mediaMs, arrivalMs });
    }
    this.#followHost(arrivalMs);
    this.#emitLead(unit, parameters, mediaMs, arrivalMs);
    this.#delayMs = arrivalMs - this.#videoLine.placedWall;
  }

  /** Takes an audio access unit at its own media time. */
  audio(unit: AccessUnit, parameters: AudioParameters, mediaMs: number, arrivalMs: number): void {
    // A frame has the timestamp of its first sample but can be sent only when its last one has been captured.
    this.#audioLine.observe(mediaMs, arrivalMs - (unit.durationTicks * 1000) / parameters.sampleRate);
    if (this.#held) this.#wait(this.#held, { unit, leads: false, parameters, mediaMs, arrivalMs });
    else this.#emitAudio(unit, parameters, mediaMs, arrivalMs);
  }

  /** The clock of the audio has made a step. */
  audioStepped(): void {
    this.#audioLine = new WallLine(0);
    this.#soundAtMs = -Infinity;
  }

  tick(nowMs: number): void {
    if (!this.#held) return;
    const isSettled = nowMs - this.#fromMs >= MAX_SETTLE_MS || nowMs - this.#shownAtMs >= BURST_MS;
    if (isSettled || this.#held.at(-1)?.unit.data.slab.isScarce) this.#flow(this.#held);
  }

  end(reason: EndReason): void {
    if (this.#held) this.#flow(this.#held);
    if (!this.#arrivals) this.#options.memory.slope = this.#videoLine.knownSlope;
    this.#options.sink.end(reason);
  }

  /** The timestamps are useless: from here on pictures are dated by arrival, and the run ends when it can. */
  stampByArrival(arrivalMs: number): void {
    this.endsAs ??= 'clock';
    this.#videoLine = new WallLine(0);
    this.audioStepped();
    if (this.#arrivals) return;
    // What is held back is dated again.
    const held = (this.#held ?? []).filter(({ leads }) => leads);
    const [first] = held;
    this.#arrivals = first
      ? new ArrivalClock(first.mediaMs, first.mediaMs, ASSUMED_DISTANCE_MS, first.arrivalMs)
      : this.#newArrivals(arrivalMs);
    for (const entry of held) {
      this.#mediaMs = entry.mediaMs = this.#arrivals.push(entry.mediaMs, this.#clock.usualMs, entry.arrivalMs);
      this.#videoLine.observe(entry.mediaMs, entry.arrivalMs);
    }
  }

  #newArrivals(arrivalMs: number): ArrivalClock {
    return new ArrivalClock(this.#mediaMs, this.#clock.mediaMs, ASSUMED_DISTANCE_MS, arrivalMs);
  }

  /** The delay may fall by little from frame to frame: it is compared with that of the frame with which it last fell by much. */
  #noteDelay(mediaMs: number, arrivalMs: number): void {
    const mediaPassedMs = mediaMs - this.#least.mediaMs;
    const passedMs = arrivalMs - this.#least.arrivalMs;
    if (passedMs < mediaPassedMs - LESS_DELAY_MS) {
      this.#least = { mediaMs, arrivalMs };
      this.#shownAtMs = Infinity;
    } else if (Math.min(passedMs, mediaPassedMs) >= SETTLE_MS) this.#shownAtMs = Math.min(this.#shownAtMs, arrivalMs);
  }

  #wait(held: Unit[], entry: Unit): void {
    entry.unit.data.slab.retain();
    held.push(entry);
    this.tick(entry.arrivalMs);
  }

  /** What it holds back was captured before the connection began: it came at least twice as fast as a camera makes it. */
  get isBurst(): boolean {
    const last = this.#held?.findLast(({ leads }) => leads);
    return last !== undefined && last.mediaMs - this.#originMs > 2 * (last.arrivalMs - this.#fromMs);
  }

  /** Drops what is held back; the run is over without having begun. Returns the number of pictures. */
  discard(): number {
    const units = this.#held ?? [];
    for (const { unit } of units) unit.data.slab.release();
    return units.filter(({ leads }) => leads).length;
  }

  /** The position of the run is known: releases the frames held back. */
  #flow(units: readonly Unit[]): void {
    // The host's clock may have been set since the run began.
    this.#hostOffsetMs = this.#readHost();
    const first = units.find(({ leads }) => leads) as Unit;
    // More than can be buffered: the timestamps are ahead from the start.
    const delayMs = first.arrivalMs - this.#videoLine.at(first.mediaMs);
    if (delayMs > MAX_DELAY_MS && this.#areContradicted(delayMs, first.arrivalMs, 0)) this.#startOver(first.arrivalMs);
    const lead = (this.#lead = first.parameters);
    const audio = (this.#audio = units.find(({ leads }) => !leads)?.parameters as AudioParameters | undefined);
    this.#held = undefined;
    this.#options.sink.begin({ runId: this.#runId, lead, audio });
    for (const { unit, leads, parameters, mediaMs, arrivalMs } of units) {
      if (leads) this.#emitLead(unit, parameters, mediaMs, arrivalMs);
      else this.#emitAudio(unit, parameters as AudioParameters, mediaMs, arrivalMs);
      unit.data.slab.release();
    }
  }

  #emitLead(unit: AccessUnit, parameters: TrackParameters, mediaMs: number, arrivalMs: number): void {
    const { sink, owner, memory } = this.#options;
    if (parameters !== this.#lead && unit.randomAccess) {
      this.#lead = parameters;
      sink.change({ runId: this.#runId, lead: parameters, audio: this.#audio });
    }
    const pts = Math.round((RUN_START_MS + mediaMs - this.#originMs) * TICKS_PER_MS);
    const usualDuration = Math.max(1, Math.round((this.#arrivals ?? this.#clock).usualMs * TICKS_PER_MS));
    const dts = this.#order.push(pts, usualDuration);
    if (parameters.kind === 'video' && parameters.reorderDepth === undefined)
      memory.reorderDepth = Math.max(memory.reorderDepth, this.#order.observedDepth);
    owner.leadPassed();
    sink.sample({
      kind: 'video',
      dts,
      compositionOffset: pts - dts,
      usualDuration,
      sync: unit.randomAccess,
      data: unit.data,
      wallMs: this.#hostOffsetMs + this.#videoLine.place(mediaMs, arrivalMs),
      lostPackets: unit.lostPackets,
    });
  }

  #emitAudio(unit: AccessUnit, parameters: AudioParameters, mediaMs: number, arrivalMs: number): void {
    if (parameters !== this.#audio) {
      // The tracks of a run are fixed: audio that starts late or changes has to wait for a run that starts at the next key frame.
      this.endsAs ??= 'parameters';
      return this.#options.owner.discarded('audio', 1);
    }
    const { sampleRate } = parameters;
    const { durationTicks } = unit;
    const frameMs = (durationTicks * 1000) / sampleRate;
    const shiftMs = this.#sound.shift(this.#soundShift(mediaMs, arrivalMs), arrivalMs, frameMs);
    const videoMs = mediaMs + shiftMs;
    if (videoMs < this.#originMs) return;
    const dts = this.#sound.place(RUN_START_MS + videoMs - this.#originMs, durationTicks, sampleRate);
    if (dts === undefined) return this.#options.owner.discarded('audio', 1);
    this.#options.sink.sample({
      kind: 'audio',
      dts,
      compositionOffset: 0,
      usualDuration: durationTicks,
      sync: true,
      data: unit.data,
      wallMs: this.#hostOffsetMs + Math.min(arrivalMs, this.#videoLine.at(videoMs)),
      lostPackets: unit.lostPackets,
    });
  }

  /** What to add to the media time of an audio frame to get that of the video; undefined if it is as before, or not known now. */
  #soundShift(mediaMs: number, arrivalMs: number): number | undefined {
    const video = this.#videoLine;
    if (video.isEmpty || arrivalMs - this.#soundAtMs < LOOK_MS) return undefined;
    this.#soundAtMs = arrivalMs;
    const byArrivalMs = video.mediaAt(this.#audioLine.at(mediaMs)) - mediaMs;
    return this.#judge.soundShift(byArrivalMs, arrivalMs);
  }

  #areContradicted(delayMs: number, arrivalMs: number, passingMs?: number): boolean {
    return this.#judge.areContradicted(delayMs, this.#videoLine, arrivalMs, passingMs);
  }

  /** Restarts the mapping from the arrival. */
  #startOver(arrivalMs: number): void {
    this.stampByArrival(arrivalMs);
    this.#options.owner.clockWrong(this.#judge.clockErrorMs, this.#judge.isByArrival);
    this.#delayMs = 0;
  }

  #readHost(): number {
    return this.#options.clock.wallMs() - this.#options.clock.monotonicMs();
  }

  #followHost(nowMs: number): void {
    const elapsedMs = nowMs - this.#hostReadMs;
    if (elapsedMs < LOOK_MS) return;
    this.#hostReadMs = nowMs;
    const errorMs = this.#readHost() - this.#hostOffsetMs;
    if (Math.abs(errorMs) > MAX_HOST_STEP_MS) this.endsAs ??= 'clock';
    const most = elapsedMs * MAX_HOST_SLEW;
    this.#hostOffsetMs += Math.max(-most, Math.min(most, errorMs));
  }
}
