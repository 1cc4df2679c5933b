// Weighs what a camera says about time against each other and against the arrival of its packets (docs/design/time.md): the timestamps
// of its pictures, the two clocks of its sender reports (RFC 3550 §6.4.1), their packet counts, and RTP-Info (RFC 2326 §12.33). Says
// what is believed, since when and why. A witness is rejected only by a second one. No I/O.

import type { Witness, Rejected } from '../contract/camera-status.ts';
import type { Clock } from '../../base/clock.ts';
import { HOUR_MS } from '../../base/units.ts';
import { MAX_DISTANCES, PAUSE_MS, RtpClock } from './rtp-clock.ts';
import type { WallLine } from './wall-line.ts';

/** What lasts this long, or comes three times within it, is no accident; and clocks that are compared after it may have drifted. */
const LONG_MS = 60_000;
/** What passes within this time is a burst: a process that was frozen gets all of its pictures at once. No report comes later. */
const PASSING_MS = 2_000;
/** How often at most that is looked at which changes slowly, and takes longer than a comparison. */
export const LOOK_MS = 250;
/** Timestamps are right if the times that they give are this close to the arrival. */
const RIGHT_MS = 1_000;
/** The delay that camera and sockets can cause by buffering. Pictures dated further before their arrival have wrong timestamps... */
export const MAX_DELAY_MS = 12_000;
/** ...and useless ones, if that took long to develop, or occurred twice within this time. */
const AGAIN_MS = 300_000;
/** How long it is remembered that a camera varies its rate, which two long distances in a row show. */
const SLOW_VALID_MS = HOUR_MS;
/** This many timestamps in a row that do not advance, or that are closer than pictures are, are useless if the arrival denies them. */
const IDLE_PICTURES = 8;
const MIN_DISTANCE_MS = 5;
/** Clocks advance alike within this, and as far as clocks differ. */
const INEXACT_MS = 100;
const INEXACT_RATE = 0.021;
/** After this time without a report that can be believed, what earlier ones said is not believed any more. */
const WRONG_FOR_MS = 30_000;
/** What a camera says for the first time must agree with the arrival to this; what its reports prove, may differ by more. */
const UNPROVEN_MS = 300;
const PROVEN_MS = 5_000;
/** After this time the clocks of the two streams may have drifted apart by some milliseconds since RTP-Info. */
const START_VALID_MS = 10_000;
/** Reports at least this far apart show the rate of the timestamps. */
const MIN_COMPARED_MS = 15_000;

type Kind = 'video' | 'audio';

/** What the connections of a camera have taught about its clock. Kept by the caller, modified in place. */
export interface JudgeMemory {
  /** Its timestamps tell no time: pictures are dated by arrival. */
  rejected?: Rejected | undefined;
  /** Monotonic time at which its timestamps and the arrival last contradicted each other. */
  wrongAtMs?: number;
}

interface JudgeOptions {
  readonly clock: Clock;
  readonly videoClockRate: number;
  readonly audioClockRate: number;
  readonly memory: JudgeMemory;
  /** The timestamps of the pictures are not believed from now on. */
  readonly stampsRejected: (nowMs: number) => void;
}

/** The camera's clock (any epoch) at a media time, the media time of the last packet then, and when that arrived. */
interface Report {
  readonly cameraMs: number;
  readonly mediaMs: number;
  readonly packetMs: number;
  readonly atMs: number;
}

interface Heard extends Report {
  /** How its two clocks advanced since the report before it. */
  readonly verdict: 'first' | 'proven' | 'contradicted';
}

export class Judge {
  readonly #options: JudgeOptions;
  readonly clocks: { readonly video: RtpClock; audio: RtpClock };
  /** Whether the last picture shows a new clock: the run has to end at the next key frame. */
  isNewClock = false;
  /** Whether there was no picture before the last one for so long that the one before it cannot stand for that time. */
  stoodStill = false;
  /** The largest difference between a picture's wall time and its arrival in this run, or what its timestamp called for. */
  clockErrorMs = 0;

  /** The distance of the last two pictures; the first one is compared with none. */
  #distanceMs = Infinity;
  #slowMs = 0;
  #slowAtMs = 0;
  #idle: { readonly sinceMs: number; pictures: number } | undefined;
  /** When the clock of the pictures made its last two steps. */
  #steppedMs: readonly [number, number] = [-Infinity, -Infinity];
  /** Since when rejected timestamps have kept a constant (arrival - media time). */
  #probation: { readonly offsetMs: number; readonly sinceMs: number } | undefined;
  /** When timestamps and arrival last agreed, and for how long this process had stood still about then. */
  #rightAtMs = 0;
  #stoodAtMs = -Infinity;
  #stoodMs = 0;
  #contradictedSinceMs: number | undefined;

  readonly #heard: { [K in Kind]?: Heard | undefined } = {};
  readonly #rejected = new Map<Witness, Rejected>();
  /** Where RTP-Info says that the streams start, and when it said so. */
  readonly #starts: { [K in Kind]?: { readonly mediaMs: number; readonly atMs: number } | undefined } = {};
  /** The camera's clock in reports of the audio minus that in reports of the video, both at their arrival. */
  #apart: { readonly trustedMs: number; readonly steadyMs: number; readonly sinceMs: number } | undefined;
  #isOneClock = true;
  #believedAtMs = 0;
  /** The last difference between what the camera proved about picture and sound, and the arrival. */
  #biasMs = 0;
  /** The first report of the video since its last clock step or comparison, and whether that comparison found a wrong rate. */
  #compared: Report | undefined;
  #hadWrongRate = false;
  /** The packet count of the last report of the video, what had arrived then, and when that was in time in which this process ran. */
  #counted = { sent: 0, arrived: 0, ranMs: -Infinity };
  /** Whether that count has advanced as packets arrive. */
  #areCounted = false;
  #ahead: { readonly ms: number; readonly atMs: number } | undefined;

  constructor(options: JudgeOptions) {
    this.#options = options;
    const { videoClockRate, audioClockRate } = options;
    this.clocks = { video: new RtpClock(videoClockRate), audio: new RtpClock(audioClockRate || 8000) };
  }

  get isByArrival(): boolean {
    return this.#options.memory.rejected !== undefined;
  }

  get rejected(): readonly Rejected[] {
    const { rejected } = this.#options.memory;
    // What does not fit timestamps that are not believed may be right.
    return rejected ? [rejected] : [...this.#rejected.values()];
  }

  /** The camera's clock minus ours in milliseconds, too small by the delay of its reports. Undefined: it has not sent any. */
  get aheadMs(): number | undefined {
    return this.#ahead?.ms;
  }

  /** Takes the timestamp of a picture; the arguments are those of `RtpClock.push`. */
  picture(timestamp: number, arrivalMs: number, slackMs: number, mayReorder: boolean, isBehindLoss: boolean): void {
    const clock = this.clocks.video;
    clock.push(timestamp, arrivalMs, slackMs, mayReorder, isBehindLoss);
    this.isNewClock = clock.verdict === 'new-clock' && !this.isByArrival;
    if (clock.verdict === 'new-clock') this.#stepped(arrivalMs);
    this.#noteIdle(arrivalMs);
    if (this.isByArrival) this.#probe(arrivalMs);
    this.stoodStill = this.#standsStill(arrivalMs, isBehindLoss);
  }

  /** Takes the timestamp of an audio frame; whether it shows a new clock. */
  sound(timestamp: number, arrivalMs: number, slackMs: number): boolean {
    const clock = this.clocks.audio;
    clock.push(timestamp, arrivalMs, slackMs, false);
    if (clock.verdict === 'new-clock') this.#forget('audio');
    return clock.verdict === 'new-clock';
  }

  /** The timestamps of the audio count at another rate than the camera states. */
  countSoundAt(clockRate: number): void {
    this.clocks.audio = new RtpClock(clockRate);
    this.#forget('audio');
  }

  /** A run begins with a picture that arrived at `arrivalMs`. */
  begin(arrivalMs: number): void {
    this.clockErrorMs = 0;
    this.#agree(arrivalMs);
  }

  /**
   * Whether timestamps and arrival have contradicted each other for longer than `passingMs`: the map of the run has to begin at arrival
   * again. If the error developed slowly, or occurred before recently, the timestamps are rejected.
   */
  areContradicted(
    delayMs: number,
    { pushedMs, isTooSteep }: WallLine,
    arrivalMs: number,
    passingMs = PASSING_MS,
  ): boolean {
    const errorMs = Math.max(delayMs, pushedMs);
    this.clockErrorMs = Math.max(this.clockErrorMs, errorMs);
    if (errorMs < RIGHT_MS) this.#agree(arrivalMs);
    // What waited while this process stood still is late because of that.
    if (delayMs <= MAX_DELAY_MS || delayMs <= MAX_DELAY_MS + this.#standstillMs - this.#stoodMs)
      this.#contradictedSinceMs = undefined;
    else this.#contradictedSinceMs ??= arrivalMs;
    const lasts = arrivalMs - (this.#contradictedSinceMs ?? Infinity) >= passingMs;
    if (!lasts && pushedMs <= MAX_DELAY_MS && !isTooSteep) return false;
    const { memory } = this.#options;
    const again = arrivalMs - (memory.wrongAtMs ?? -Infinity) < AGAIN_MS;
    const message = 'the timestamps of the pictures and their arrival drift apart';
    if (again || isTooSteep || arrivalMs - this.#rightAtMs >= LONG_MS)
      memory.rejected ??= this.#rejectedAs('timestamps', message);
    memory.wrongAtMs = arrivalMs;
    this.#agree(arrivalMs);
    return true;
  }

  /** Takes an RTCP sender report: the camera's clock in milliseconds (any epoch) at an RTP timestamp of a stream. */
  report(kind: Kind, cameraMs: number, timestamp: number, atMs: number): void {
    if (cameraMs === 0) return;
    this.#noteAhead(cameraMs, atMs);
    const clock = this.clocks[kind];
    const report = { cameraMs, mediaMs: clock.mediaMsOf(timestamp), packetMs: clock.mediaMs, atMs };
    const before = this.#heard[kind];
    const message = before && contradiction(between(before, report), clock.usualMs);
    this.#heard[kind] = { ...report, verdict: message ? 'contradicted' : before ? 'proven' : 'first' };
    this.#compareStreams(atMs);
    this.#judgeWitness(`${kind}-reports`, message);
    if (this.#isBelievable) this.#believedAtMs = atMs;
    else if (atMs - this.#believedAtMs > WRONG_FOR_MS) {
      this.#biasMs = 0;
      if (this.#apart) this.#apart = { ...this.#apart, trustedMs: NaN };
    }
    if (kind === 'video' && this.#hasWrongRate(report))
      this.#rejectStamps(
        'the timestamps of the pictures have another rate than the clock in sender reports and the arrival',
        atMs,
      );
  }

  /** Takes the packet count of a report of the video, and how many of its packets have arrived on this connection. */
  counted(sent: number, arrived: number): void {
    const more = arrived - this.#counted.arrived;
    const isEqual = sent - this.#counted.sent === more;
    if (more > 0 || !isEqual) this.#areCounted = isEqual;
    this.#counted = { sent, arrived, ranMs: this.#options.clock.ranMs() };
  }

  /**
   * Whether the camera makes its pictures so rarely that none is missing after this time: its reports go on and say that all that it
   * sent has arrived; and it has made one picture only, or few of them. An encoder that hangs made more before.
   */
  isQuiet(silentMs: number): boolean {
    const { video } = this.clocks;
    const isTold = this.#areCounted && this.#options.clock.ranMs() - this.#counted.ranMs < WRONG_FOR_MS;
    return isTold && silentMs < MAX_DISTANCES * (video.hasUsual ? Math.max(video.usualMs, this.#slowMs) : LONG_MS);
  }

  /** Takes the `rtptime` of RTP-Info: the position at which the stream starts to play. */
  startsAt(kind: Kind, timestamp: number, atMs: number): void {
    this.#starts[kind] = { mediaMs: this.clocks[kind].mediaMsOf(timestamp), atMs };
  }

  /**
   * What to add to the media time of the audio to get that of the video. `byArrivalMs`: what the arrival shows, which is right but
   * for what one stream is delayed more than the other.
   */
  soundShift(byArrivalMs: number, nowMs: number): number {
    const said = this.#saidShift(nowMs);
    if (!said) return byArrivalMs + this.#biasMs;
    const { ms, witness, withinMs } = said;
    const message =
      witness === 'reports' && !this.#isOneClock
        ? 'the clocks in the sender reports of picture and sound drift apart'
        : Math.abs(ms - byArrivalMs) > withinMs
          ? `the sound does not arrive where ${witness === 'reports' ? 'sender reports place' : 'RTP-Info places'} it`
          : undefined;
    this.#judgeWitness(witness, message);
    if (message !== undefined) return byArrivalMs + this.#biasMs;
    if (withinMs === PROVEN_MS || witness === 'rtp-info') this.#biasMs = ms - byArrivalMs;
    return ms;
  }

  /** What the camera says last, and within what of the arrival it can be believed. */
  #saidShift(nowMs: number): { ms: number; withinMs: number; witness: 'reports' | 'rtp-info' } | undefined {
    const { video, audio } = this.#heard;
    if (video && audio && Math.abs(video.atMs - audio.atMs) <= LONG_MS) {
      if (video.verdict === 'contradicted' || audio.verdict === 'contradicted') return undefined;
      const ms = audio.cameraMs - audio.mediaMs - (video.cameraMs - video.mediaMs);
      const isProven = video.verdict === 'proven' && audio.verdict === 'proven';
      return { ms, withinMs: isProven ? PROVEN_MS : UNPROVEN_MS, witness: 'reports' };
    }
    const { video: picture, audio: sound } = this.#starts;
    if (!picture || !sound || nowMs - picture.atMs > START_VALID_MS) return undefined;
    return { ms: picture.mediaMs - sound.mediaMs, withinMs: UNPROVEN_MS, witness: 'rtp-info' };
  }

  get #standstillMs(): number {
    return this.#options.clock.monotonicMs() - this.#options.clock.ranMs();
  }

  #agree(arrivalMs: number): void {
    this.#rightAtMs = arrivalMs;
    this.#contradictedSinceMs = undefined;
    // Two clocks are read only now and then.
    if (arrivalMs - this.#stoodAtMs < LOOK_MS) return;
    this.#stoodAtMs = arrivalMs;
    this.#stoodMs = this.#standstillMs;
  }

  /** `message`: what contradicts the witness; undefined if nothing does. */
  #judgeWitness(witness: Witness, message: string | undefined): void {
    const before = this.#rejected.get(witness);
    if (message === undefined) this.#rejected.delete(witness);
    else if (message !== before?.message)
      this.#rejected.set(witness, {
        ...this.#rejectedAs(witness, message),
        ...(before && { sinceMs: before.sinceMs }),
      });
  }

  #rejectStamps(message: string, nowMs: number): void {
    const { memory, stampsRejected } = this.#options;
    if (memory.rejected) return;
    memory.rejected = this.#rejectedAs('timestamps', message);
    stampsRejected(nowMs);
  }

  #rejectedAs(witness: Witness, message: string): Rejected {
    return { witness, message, sinceMs: this.#options.clock.wallMs() };
  }

  /** The clock of a stream has made a step: what was said about it before does not count. */
  #forget(kind: Kind): void {
    this.#heard[kind] = undefined;
    this.#starts[kind] = undefined;
    this.#compared = undefined;
    this.#hadWrongRate = false;
  }

  /** Clocks are set now and then. One that is set all the time tells none, and would end a file each time. */
  #stepped(arrivalMs: number): void {
    this.#forget('video');
    const [before, last] = this.#steppedMs;
    this.#steppedMs = [last, arrivalMs];
    if (arrivalMs - before < LONG_MS)
      this.#rejectStamps('the clock of the timestamps of the pictures is set all the time', arrivalMs);
  }

  #noteIdle(arrivalMs: number): void {
    const { isIdle, usualMs } = this.clocks.video;
    if (!isIdle && usualMs >= MIN_DISTANCE_MS) this.#idle = undefined;
    else {
      this.#idle ??= { sinceMs: arrivalMs, pictures: 0 };
      const { sinceMs, pictures } = this.#idle;
      this.#idle.pictures++;
      if (pictures >= IDLE_PICTURES && arrivalMs - sinceMs >= pictures * MIN_DISTANCE_MS)
        this.#rejectStamps('the timestamps of the pictures do not advance while pictures arrive', arrivalMs);
    }
  }

  /** Whether rejected timestamps have become plausible again. */
  #probe(arrivalMs: number): void {
    const { mediaMs, verdict } = this.clocks.video;
    const offsetMs = arrivalMs - mediaMs;
    const since = this.#probation;
    const isIdle = (this.#idle?.pictures ?? 0) > IDLE_PICTURES;
    if (!since || isIdle || verdict !== 'ok' || Math.abs(offsetMs - since.offsetMs) > RIGHT_MS) {
      this.#probation = { offsetMs, sinceMs: arrivalMs };
    } else if (arrivalMs - since.sinceMs >= LONG_MS) {
      this.#options.memory.rejected = undefined;
      this.#probation = undefined;
      this.isNewClock = true;
    }
  }

  #standsStill(arrivalMs: number, isBehindLoss: boolean): boolean {
    const { advanceMs, usualMs } = this.clocks.video;
    if (advanceMs === 0) return false;
    const limitMs = Math.max(PAUSE_MS, MAX_DISTANCES * Math.max(usualMs, this.#slowMs));
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
    return advanceMs > limitMs && twoMs * MAX_DISTANCES < advanceMs;
  }

  get #isBelievable(): boolean {
    const { video, audio } = this.#heard;
    return video?.verdict !== 'contradicted' && audio?.verdict !== 'contradicted' && this.#isOneClock;
  }

  /** Both streams of a camera have one clock: reports of which one gains on the other do not tell it. */
  #compareStreams(nowMs: number): void {
    const { video, audio } = this.#heard;
    if (video?.verdict !== 'proven' || audio?.verdict !== 'proven') return;
    const ms = audio.cameraMs - audio.atMs - (video.cameraMs - video.atMs);
    const before = this.#apart ?? { trustedMs: ms, steadyMs: ms, sinceMs: nowMs };
    const isSteady = Math.abs(ms - before.steadyMs) <= INEXACT_MS;
    const sinceMs = isSteady ? before.sinceMs : nowMs;
    const steadyMs = isSteady ? before.steadyMs : ms;
    const trustedMs = nowMs - sinceMs >= LONG_MS ? steadyMs : before.trustedMs;
    this.#apart = { trustedMs, steadyMs, sinceMs };
    // The first of them count until they are refuted for long.
    this.#isOneClock = Math.abs(ms - trustedMs) <= INEXACT_MS;
  }

  /**
   * Whether the camera's own clock and the arrival agree, and both contradict the timestamps of the packets. They must do so twice in a
   * row, because many cameras report the timestamp of a picture that has waited together with the time at which it is sent.
   */
  #hasWrongRate(report: Report): boolean {
    const passed = between((this.#compared ??= report), report);
    if (passed.atMs < MIN_COMPARED_MS) return false;
    this.#compared = report;
    const hadWrongRate = this.#hadWrongRate;
    const { usualMs } = this.clocks.video;
    const differ = (change: Partial<Report>): string | undefined => contradiction({ ...passed, ...change }, usualMs);
    this.#hadWrongRate =
      differ({}) === NOT_OF_CLOCK &&
      differ({ cameraMs: passed.atMs }) === NOT_OF_CLOCK &&
      differ({ mediaMs: passed.atMs }) === undefined;
    return hadWrongRate && this.#hadWrongRate;
  }

  /** A report can arrive only late, so the one that shows the camera furthest ahead is the most exact. */
  #noteAhead(cameraMs: number, atMs: number): void {
    const ms = cameraMs - this.#options.clock.wallMs();
    const best = this.#ahead;
    const isWorse = best !== undefined && ms < best.ms && ms >= best.ms - PASSING_MS;
    if (!isWorse || atMs - best.atMs > LONG_MS) this.#ahead = { ms, atMs };
  }
}

function between(a: Report, b: Report): Report {
  return {
    cameraMs: b.cameraMs - a.cameraMs,
    mediaMs: b.mediaMs - a.mediaMs,
    packetMs: b.packetMs - a.packetMs,
    atMs: b.atMs - a.atMs,
  };
}

const NOT_OF_CLOCK = 'the clock in sender reports does not run as the timestamps of the packets';
const NOT_OF_PACKETS = 'the timestamps in sender reports are not those of the packets';

/**
 * What two reports in a row contradict. A clock that is set and one that stands still both show in two reports, whatever the network
 * does.
 */
function contradiction({ cameraMs, mediaMs, packetMs, atMs }: Report, usualMs: number): string | undefined {
  const inexactMs = INEXACT_MS + usualMs + INEXACT_RATE * Math.abs(atMs);
  if (Math.abs(mediaMs - cameraMs) <= inexactMs) return undefined;
  return Math.abs(mediaMs - packetMs) <= Math.abs(cameraMs - packetMs) ? NOT_OF_CLOCK : NOT_OF_PACKETS;
}
