// One camera's samples in; what is missing between two runs of one connection out, and within a run. The states of camera
// and disk do not show these, because the camera goes on sending.

import type { EndReason, SampleSink } from '../../camera/sink.ts';
import { TICKS_PER_MS, type Sample } from '../../mp4/sample.ts';
import type { GapCause } from './cause.ts';

const LEAP_MS = 1_000;

/** A camera that comes back before anybody has looked has lost its connection all the same. */
const CAUSES: Readonly<Record<EndReason, GapCause | undefined>> = {
  gap: 'packets-lost',
  stalled: 'camera-stalled',
  clock: 'clock-step',
  'camera-lost': 'connection-lost',
  'no-key-frame': 'no-key-frame',
  parameters: undefined,
  stopped: undefined,
};

export interface RunBreakEvents {
  /** A break, when the next run begins. */
  missed(fromMs: number, toMs: number, cause: GapCause): void;
  /** A picture of [fromMs, toMs), before which `lost` are missing in its run. */
  picture(fromMs: number, toMs: number, lost: number): void;
}

export class RunBreaks implements SampleSink {
  readonly #events: RunBreakEvents;
  #cause: GapCause | undefined;
  /** Wall time at which the last picture ends. */
  #endMs = 0;
  #hasPicture = false;
  /** Decoding time of the run's last picture. */
  #lastDts: number | undefined;

  constructor(events: RunBreakEvents) {
    this.#events = events;
  }

  /** Why no picture comes now although the camera sends; undefined when that is not so. */
  get cause(): GapCause | undefined {
    return this.#cause;
  }

  begin(): void {
    this.#lastDts = undefined;
  }

  change(): void {}

  sample(sample: Sample): void {
    if (sample.kind !== 'video') return;
    if (this.#leapsTo(sample)) this.#cause ??= 'clock-step';
    this.#endBreak(sample.wallMs);
    const lost = this.#lostBefore(sample);
    this.#lastDts = sample.dts;
    this.#hasPicture = true;
    this.#endMs = sample.wallMs + sample.usualDuration / TICKS_PER_MS;
    this.#events.picture(sample.wallMs, this.#endMs, lost);
  }

  end(reason: EndReason): void {
    this.#cause = CAUSES[reason];
  }

  /** The camera itself failed while the next run was waited for: that is what counts from here on. */
  interrupted(nowMs: number): void {
    // What the camera says of a connection that was lost is more.
    if (this.#cause === 'connection-lost' || this.#cause === 'no-key-frame') this.#cause = undefined;
    this.#endBreak(nowMs);
  }

  #endBreak(toMs: number): void {
    const cause = this.#cause;
    this.#cause = undefined;
    if (cause === undefined || !this.#hasPicture) return;
    // The file before may end earlier than its last picture: at least the last millisecond tells why.
    this.#events.missed(Math.min(this.#endMs, toMs - 1), toMs, cause);
  }

  /** The run's wall time skips some, because its map began again: the pictures before were dated too early. */
  #leapsTo({ dts, wallMs, usualDuration }: Sample): boolean {
    if (this.#lastDts === undefined) return false;
    return wallMs - this.#endMs - (dts - this.#lastDts - usualDuration) / TICKS_PER_MS > LEAP_MS;
  }

  /** Where packets were lost, each usual distance without a picture is one; elsewhere a camera may take its time. */
  #lostBefore({ lostPackets, dts, usualDuration }: Sample): number {
    if (lostPackets === 0 || this.#lastDts === undefined) return 0;
    return Math.max(0, Math.round((dts - this.#lastDts) / usualDuration) - 1);
  }
}
