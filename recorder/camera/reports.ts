// Weighs what a camera says about the clocks of its streams, in sender reports (RFC 3550 §6.4.1) and RTP-Info (RFC 2326 §12.33),
// against its packets and against our clock (docs/design/time.md). Pure arithmetic.

import type { RtpClock } from './rtp-clock.ts';

/** Reports further apart than this cannot be compared with each other. */
const VALID_MS = 60_000;
/** A report this far from the packets refers to another clock (Tapo C320WS: to another SSRC). */
const MAX_DISTANCE_MS = 30_000;
/** The two clocks of a report may advance differently by this, by one distance of frames, and by as much as clocks differ. */
const INEXACT_MS = 100;
const INEXACT_RATE = 0.021;
/** The reports of both streams tell the same clock if their difference stays this constant, or has for this long. */
const SAME_CLOCK_MS = 100;
const STEADY_MS = 50;
const STEADY_FOR_MS = 60_000;
/** After this time without a report that can be believed, what earlier ones said is not believed any more. */
const WRONG_FOR_MS = 30_000;
/** What a camera says for the first time must agree with the arrival to this; what its reports prove, may differ by more. */
const UNPROVEN_MS = 300;
const PROVEN_MS = 5_000;
/** After this time the clocks of the two streams may have drifted apart by some milliseconds. */
const START_VALID_MS = 10_000;
/** Reports at least this far apart show the rate of the timestamps, if they and arrival agree to the second, and it is off by the third. */
const MIN_COMPARED_MS = 15_000;
const MAX_RATE_ERROR = 0.01;
const WRONG_RATE = 0.03;

type Kind = 'video' | 'audio';

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

/** What to add to the media time of the audio to get that of the video. */
export interface StatedShift {
  readonly ms: number;
  /** It is believed if it differs by no more than this from what the arrival shows. */
  readonly withinMs: number;
  /** It counts on when the camera says nothing more. */
  readonly lasts: boolean;
}

export class Reports {
  readonly #clocks: { readonly [K in Kind]: RtpClock };
  readonly #heard: { [K in Kind]?: Heard | undefined } = {};
  /** Where RTP-Info says that the streams start, and when it said so. */
  readonly #starts: { [K in Kind]?: { readonly mediaMs: number; readonly atMs: number } | undefined } = {};
  /** The camera's clock in reports of the audio minus that in reports of the video, both at their arrival. */
  #apart:
    | { readonly trustedMs: number; readonly steadyMs: number; readonly sinceMs: number; readonly isSame: boolean }
    | undefined;
  #believedAtMs = 0;
  /** The first report of the video since its last clock step, and the rate that the last comparison with it found wrong. */
  #compared: Report | undefined;
  #wrongRate = NaN;

  constructor(clocks: { readonly [K in Kind]: RtpClock }) {
    this.#clocks = clocks;
  }

  /** The clock of a stream has made a step. */
  forget(kind: Kind): void {
    this.#heard[kind] = undefined;
    this.#starts[kind] = undefined;
    this.#compared = undefined;
    this.#wrongRate = NaN;
  }

  startsAt(kind: Kind, timestamp: number, atMs: number): void {
    this.#starts[kind] = { mediaMs: this.#clocks[kind].mediaMsOf(timestamp), atMs };
  }

  /** Takes a sender report. Whether the timestamps of the video have a wrong rate. */
  note(kind: Kind, cameraMs: number, timestamp: number, atMs: number): boolean {
    const clock = this.#clocks[kind];
    const report = { cameraMs, mediaMs: clock.mediaMsOf(timestamp), packetMs: clock.mediaMs, atMs };
    if (clock.isStarted && Math.abs(report.mediaMs - report.packetMs) > MAX_DISTANCE_MS) return false;
    this.#heard[kind] = { ...report, verdict: verdictOn(report, this.#heard[kind], clock.usualMs) };
    this.#compareStreams(atMs);
    if (this.#isBelievable) this.#believedAtMs = atMs;
    else if (atMs - this.#believedAtMs > WRONG_FOR_MS && this.#apart) this.#apart = { ...this.#apart, trustedMs: NaN };
    return kind === 'video' && this.#hasWrongRate(report);
  }

  /** Undefined if the camera says nothing that can be believed; `wrong` if that has lasted while it does say something. */
  shift(nowMs: number): StatedShift | 'wrong' | undefined {
    const { video, audio } = this.#heard;
    if (video && audio && Math.abs(video.atMs - audio.atMs) <= VALID_MS) {
      if (!this.#isBelievable) return nowMs - this.#believedAtMs > WRONG_FOR_MS ? 'wrong' : undefined;
      const isProven = video.verdict === 'proven' && audio.verdict === 'proven';
      const ms = audio.cameraMs - audio.mediaMs - (video.cameraMs - video.mediaMs);
      return { ms, withinMs: isProven ? PROVEN_MS : UNPROVEN_MS, lasts: isProven };
    }
    const starts = this.#starts;
    if (!starts.video || !starts.audio || nowMs - starts.video.atMs > START_VALID_MS) return undefined;
    return { ms: starts.video.mediaMs - starts.audio.mediaMs, withinMs: UNPROVEN_MS, lasts: true };
  }

  get #isBelievable(): boolean {
    const { video, audio } = this.#heard;
    return video?.verdict !== 'contradicted' && audio?.verdict !== 'contradicted' && this.#apart?.isSame !== false;
  }

  /** Both streams of a camera have one clock: reports of which one gains on the other do not tell it. */
  #compareStreams(nowMs: number): void {
    const { video, audio } = this.#heard;
    if (video?.verdict !== 'proven' || audio?.verdict !== 'proven') return;
    const ms = audio.cameraMs - audio.atMs - (video.cameraMs - video.atMs);
    const before = this.#apart ?? { trustedMs: ms, steadyMs: ms, sinceMs: nowMs };
    const isSteady = Math.abs(ms - before.steadyMs) <= STEADY_MS;
    const sinceMs = isSteady ? before.sinceMs : nowMs;
    const steadyMs = isSteady ? before.steadyMs : ms;
    const trustedMs = nowMs - sinceMs >= STEADY_FOR_MS ? steadyMs : before.trustedMs;
    this.#apart = { trustedMs, steadyMs, sinceMs, isSame: Math.abs(ms - trustedMs) <= SAME_CLOCK_MS };
  }

  /**
   * Whether the camera's own clock and the arrival both show that the timestamps have a wrong rate, and the packets have it as the
   * reports do. The result must be the same twice in a row, because many cameras report the timestamp of a picture that has
   * waited together with the time at which it is sent.
   */
  #hasWrongRate(report: Report): boolean {
    const first = (this.#compared ??= report);
    const passed = between(first, report);
    if (passed.atMs < MIN_COMPARED_MS) return false;
    this.#compared = report;
    const rate = passed.mediaMs / passed.cameraMs;
    const isTrueClock = Math.abs(passed.cameraMs / passed.atMs - 1) < MAX_RATE_ERROR;
    const isOfPackets = Math.abs(passed.packetMs - passed.mediaMs) < Math.abs(passed.mediaMs - passed.cameraMs) / 2;
    const isWrong = isTrueClock && isOfPackets && Math.abs(rate - 1) > WRONG_RATE;
    const isAgain = isWrong && Math.abs(rate - this.#wrongRate) < MAX_RATE_ERROR;
    this.#wrongRate = isWrong ? rate : NaN;
    return isAgain;
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

/** A clock that is set and one that stands still both show in two reports, whatever the network does. */
function verdictOn(report: Report, before: Report | undefined, usualMs: number): Heard['verdict'] {
  if (!before) return 'first';
  const passed = between(before, report);
  const inexactMs = INEXACT_MS + usualMs + INEXACT_RATE * Math.abs(passed.atMs);
  return Math.abs(passed.mediaMs - passed.cameraMs) <= inexactMs ? 'proven' : 'contradicted';
}
