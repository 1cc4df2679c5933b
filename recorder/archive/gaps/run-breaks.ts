// Finds missing pictures in the samples of one camera: between two runs of a connection, and within a run. The states of
// camera and disk do not show these, because the camera continues to send.

import type { EndReason, SampleSink } from '../../contract/sink.ts';
import { TICKS_PER_MS, type Sample } from '../../mp4/sample.ts';
import type { GapCause } from '../../contract/gap-cause.ts';

const LEAP_MS = 1_000;

/** A camera that reconnects between two observations has lost its connection too. */
const CAUSES: Readonly<Record<EndReason, GapCause | undefined>> = {
  gap: 'packets-lost',
  stalled: 'camera-stalled',
  clock: 'clock-step',
  'camera-lost': 'connection-lost',
  'no-key-frame': 'no-key-frame',
  parameters: undefined,
  stopped: undefined,
};

interface RunBreakEvents {
  /** Called when the next run begins. */
  missed(fromMs: number, toMs: number, cause: GapCause): void;
  /** Called for a picture of [fromMs, toMs), before which `lost` pictures of its run are missing. */
  picture(fromMs: number, toMs: number, lost: number, isDecodable: boolean): void;
}

export class RunBreaks implements SampleSink {
  readonly #events: RunBreakEvents;
  #cause: GapCause | undefined;
  /** Wall time of the end of the last picture. */
  #endMs = 0;
  #hasPicture = false;
  /** Decoding time of the last picture of the run. */
  #lastDts: number | undefined;
  /** A picture has been missing since the last key frame, to which those after it may refer. */
  #isBroken = false;

  constructor(events: RunBreakEvents) {
    this.#events = events;
  }

  /** Why no picture arrives now although the camera sends; undefined otherwise. */
  get cause(): GapCause | undefined {
    return this.#cause;
  }

  begin(): void {
    this.#lastDts = undefined;
    this.#isBroken = false;
  }

  change(): void {}

  sample(sample: Sample): void {
    if (sample.kind !== 'video') return;
    if (this.#leapsTo(sample)) this.#cause ??= 'clock-step';
    this.#endBreak(sample.wallMs);
    const lost = this.#lostBefore(sample);
    this.#isBroken = !sample.sync && (this.#isBroken || lost > 0);
    this.#lastDts = sample.dts;
    this.#hasPicture = true;
    this.#endMs = sample.wallMs + sample.usualDuration / TICKS_PER_MS;
    this.#events.picture(sample.wallMs, this.#endMs, lost, !this.#isBroken);
  }

  end(reason: EndReason): void {
    this.#cause = CAUSES[reason];
  }

  /** The camera failed before the next run began: from now on that is the cause. */
  interrupted(nowMs: number): void {
    // The status of the camera says more about a lost connection.
    if (this.#cause === 'connection-lost' || this.#cause === 'no-key-frame') this.#cause = undefined;
    this.#endBreak(nowMs);
  }

  #endBreak(toMs: number): void {
    const cause = this.#cause;
    this.#cause = undefined;
    if (cause === undefined || !this.#hasPicture) return;
    // The previous file may end before its last picture: at least the last millisecond gets the cause.
    this.#events.missed(Math.min(this.#endMs, toMs - 1), toMs, cause);
  }

  /**
   * Whether the wall time of the run jumps because its mapping was restarted: the pictures before it were dated too early.
   */
  #leapsTo({ dts, wallMs, usualDuration }: Sample): boolean {
    if (this.#lastDts === undefined) return false;
    return wallMs - this.#endMs - (dts - this.#lastDts - usualDuration) / TICKS_PER_MS > LEAP_MS;
  }

  /**
   * Where packets were lost, each usual distance without a picture counts as one missing picture. Otherwise the camera may
   * have paused.
   */
  #lostBefore({ lostPackets, dts, usualDuration }: Sample): number {
    if (lostPackets === 0 || this.#lastDts === undefined) return 0;
    return Math.max(0, Math.round((dts - this.#lastDts) / usualDuration) - 1);
  }
}
