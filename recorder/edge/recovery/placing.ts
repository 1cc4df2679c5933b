// Places the units of a replay on the timeline of a run: the media times are those of their RTP timestamps, the wall times follow from
// the camera's clock. Unlike a live stream, a replay tells when its pictures were taken, so nothing is estimated from arrival.

import { randomBytes } from 'node:crypto';
import { DecodeOrder } from '../../camera/decode-order.ts';
import type { EndReason, SampleSink } from '../../contract/sink.ts';
import type { AudioParameters, VideoParameters } from '../../codec/access-unit.ts';
import { TICKS_PER_MS, VIDEO_TIMESCALE, type Sample } from '../../mp4/sample.ts';
import type { EdgePicture, EdgeSound } from '../memory.ts';

/** Run time of the first picture, so that decoding times and early sound are not negative. */
const RUN_START_TICKS = 10 * VIDEO_TIMESCALE;
const ASSUMED_TICKS = 40 * TICKS_PER_MS;
/** The stated times of sound jump by their rounding; its timestamps do not. */
const MAX_SOUND_ERROR_MS = 100;

/** The distance of two RTP timestamps (RFC 3550 §5.1) in ticks of 90 kHz: they have 32 bits, and wrap. */
export const ticksBetween = (from: number, to: number, clockRate: number): number =>
  (((to - from) | 0) * VIDEO_TIMESCALE) / clockRate;

interface PlacedPicture {
  readonly unit: EdgePicture['unit'];
  readonly sample: Omit<Sample, 'usualDuration'>;
}

export const isSameSound = (a: AudioParameters, b: AudioParameters): boolean =>
  a.codec === b.codec && a.sampleRate === b.sampleRate && a.channels === b.channels && a.config.equals(b.config);

/** One run: from a key frame on, without a break. */
export class Placing {
  readonly #sink: SampleSink;
  readonly #wallOf: (cameraMs: number) => number;
  readonly #runId = randomBytes(8).toString('hex');
  #video: VideoParameters;
  readonly #audio: AudioParameters | undefined;
  readonly #order: DecodeOrder;
  readonly #startMs: number;
  #timestamp: number;
  #ticks = RUN_START_TICKS;
  /** The last picture, until the next one tells its duration. */
  #held: PlacedPicture | undefined;
  #usualTicks = ASSUMED_TICKS;
  #soundEnd = 0;
  /** From decoding to presentation of the first picture: a file ends by its last picture in decoding order, plus this. */
  #firstOffset: number | undefined;

  /** `first`: a key frame; it must still be passed to `picture`. */
  constructor(
    sink: SampleSink,
    first: EdgePicture,
    audio: AudioParameters | undefined,
    wallOf: (cameraMs: number) => number,
    depth: number,
  ) {
    this.#sink = sink;
    this.#wallOf = wallOf;
    this.#video = first.parameters;
    this.#audio = audio;
    this.#order = new DecodeOrder(Math.max(depth, first.parameters.reorderDepth ?? 0));
    this.#startMs = first.cameraMs;
    this.#timestamp = first.unit.timestamp;
    sink.begin({ runId: this.#runId, lead: first.parameters, audio });
  }

  /** How many pictures were seen to precede another one in decoding order and follow it in output order. */
  get depth(): number {
    return this.#order.observedDepth;
  }

  /** Whether decoding times are right only in a run that begins with more depth. */
  get isTooShallow(): boolean {
    return this.#order.observedDepth > this.#order.depth;
  }

  /** Takes over the hold on its data. False: it is shown before the run begins, and cannot be decoded. */
  picture({ unit, parameters, clockRate, cameraMs }: EdgePicture): boolean {
    this.#ticks += ticksBetween(this.#timestamp, unit.timestamp, clockRate);
    this.#timestamp = unit.timestamp;
    const pts = Math.round(this.#ticks);
    if (pts < RUN_START_TICKS) {
      unit.data.slab.release();
      return false;
    }
    const dts = this.#order.push(pts, this.#usualTicks);
    this.#pass(this.#held && dts - this.#held.sample.dts);
    if (parameters !== this.#video && unit.randomAccess) {
      this.#video = parameters;
      this.#sink.change({ runId: this.#runId, lead: parameters, audio: this.#audio });
    }
    const { data, randomAccess: sync, lostPackets } = unit;
    const wallMs = this.#wallOf(cameraMs);
    this.#firstOffset ??= pts - dts;
    this.#held = {
      unit,
      sample: { kind: 'video', dts, compositionOffset: pts - dts, sync, data, wallMs, lostPackets },
    };
    return true;
  }

  /** Takes over the hold on its data. */
  sound({ unit, parameters, cameraMs }: EdgeSound): void {
    const audio = this.#audio;
    const fits = audio && isSameSound(audio, parameters) && cameraMs >= this.#startMs;
    if (fits) {
      const { sampleRate } = audio;
      const place = (RUN_START_TICKS / VIDEO_TIMESCALE + (cameraMs - this.#startMs) / 1000) * sampleRate;
      const isNear = Math.abs(place - this.#soundEnd) <= (MAX_SOUND_ERROR_MS * sampleRate) / 1000;
      const dts = isNear ? this.#soundEnd : Math.max(this.#soundEnd, Math.round(place));
      this.#soundEnd = dts + unit.durationTicks;
      this.#sink.sample({
        kind: 'audio',
        dts,
        compositionOffset: 0,
        usualDuration: unit.durationTicks,
        sync: true,
        data: unit.data,
        wallMs: this.#wallOf(cameraMs),
        lostPackets: unit.lostPackets,
      });
    }
    unit.data.slab.release();
  }

  /**
   * Ends the run. The last picture is shown for its usual time, but not after the end of the gap, where other footage begins. `isThrough`:
   * the run reached that end, so that the picture is shown up to it, if it is near.
   */
  end(reason: EndReason, gapEndMs = Infinity, isThrough = false): void {
    const held = this.#held;
    if (held) {
      const reorderTicks = (this.#firstOffset ?? 0) - held.sample.compositionOffset;
      const ticks = (gapEndMs - held.sample.wallMs) * TICKS_PER_MS - reorderTicks;
      const isNear = ticks > 0 && ticks <= (isThrough ? 2.5 : 1) * this.#usualTicks;
      this.#pass(undefined, isNear ? Math.round(ticks) : this.#usualTicks);
    }
    this.#sink.end(reason);
  }

  #pass(durationTicks: number | undefined, lastTicks?: number): void {
    const held = this.#held;
    if (!held) return;
    this.#held = undefined;
    if (durationTicks !== undefined && durationTicks > 1) this.#usualTicks = durationTicks;
    this.#sink.sample({ ...held.sample, usualDuration: Math.max(1, lastTicks ?? durationTicks ?? this.#usualTicks) });
    held.unit.data.slab.release();
  }
}
