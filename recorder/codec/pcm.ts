// RTP packets of sound that browsers do not play in MP4 in, FLAC frames out: what was sent is kept without loss.

import type { AccessUnitCallback, AudioParameters, Depacketizer } from './access-unit.ts';
import { AudioUnits } from './audio-units.ts';
import { Faults } from './faults.ts';
import { FLAC_MAX_BLOCK, FLAC_MIN_BLOCK, FlacEncoder, flacStreamInfo } from './flac.ts';
import type { SlabPool } from './slab.ts';
import type { RtpPacket } from '../rtp/packet.ts';

/** Shorter packets are put together: a frame of FLAC has a dozen bytes of its own. */
const MIN_FRAME_MS = 20;
/** Timestamps that deviate less are rounding errors of the camera. */
const MAX_DEVIATION_MS = 20;

/** Octets in, 16-bit samples out. Compressed sound refers to what was before: one decoder a stream. */
export interface SampleDecoder {
  /** Octets that are decoded at once, and the samples of each channel that they become: a divisor of 4096. */
  readonly octets: number;
  readonly samples: number;
  /** Decodes from `bytes[at]` to `into[channel][index]`. */
  decode(bytes: Buffer, at: number, into: readonly Int16Array[], index: number): void;
}

export interface PcmOptions {
  readonly decoder: SampleDecoder;
  readonly sampleRate: number;
  readonly channels: number;
  /** Ticks a second of the packets' timestamps; the sample rate when absent. */
  readonly clockRate?: number;
  readonly pool: SlabPool;
  readonly emit: AccessUnitCallback;
}

export class PcmDepacketizer implements Depacketizer {
  readonly problem = undefined;
  readonly parameters: AudioParameters;
  readonly #decoder: SampleDecoder;
  readonly #ticksPerSample: number;
  readonly #maxDeviationTicks: number;
  readonly #minSamples: number;
  readonly #encoder: FlacEncoder;
  readonly #faults = new Faults();
  readonly #units: AudioUnits;
  /** Samples of each channel that wait for a frame. */
  readonly #samples: readonly Int16Array[];
  #count = 0;
  /** Of the first sample that waits. */
  #timestamp = 0;
  discarded = 0;

  constructor({ decoder, sampleRate, channels, clockRate = sampleRate, pool, emit }: PcmOptions) {
    this.#decoder = decoder;
    this.#ticksPerSample = clockRate / sampleRate;
    this.#maxDeviationTicks = (MAX_DEVIATION_MS * clockRate) / 1000;
    this.#minSamples = Math.min(FLAC_MAX_BLOCK, (sampleRate * MIN_FRAME_MS) / 1000);
    this.#encoder = new FlacEncoder(sampleRate, channels);
    this.#samples = Array.from({ length: channels }, () => new Int16Array(FLAC_MAX_BLOCK));
    this.#units = new AudioUnits(pool, emit);
    this.parameters = {
      kind: 'audio',
      codec: 'flac',
      sampleRate,
      channels,
      config: flacStreamInfo(sampleRate, channels),
      codecString: 'flac',
    };
  }

  get faults(): ReadonlyMap<string, number> {
    return this.#faults.counts;
  }

  push(packet: RtpPacket): void {
    if (packet.lost > 0) {
      this.#emitFrame();
      this.#units.noteLoss(packet.lost);
    }
    const deviation = (packet.timestamp - (this.#timestamp + this.#count * this.#ticksPerSample)) | 0;
    if (Math.abs(deviation) > this.#maxDeviationTicks) this.#emitFrame();
    if (this.#count === 0) this.#timestamp = packet.timestamp;
    const { buffer, payloadEnd: end } = packet;
    const decoder = this.#decoder;
    const { octets, samples } = decoder;
    for (let at = packet.payloadStart; at + octets <= end; at += octets) {
      decoder.decode(buffer, at, this.#samples, this.#count);
      this.#count += samples;
      if (this.#count === FLAC_MAX_BLOCK) this.#emitFrame();
    }
    if (this.#count >= this.#minSamples) this.#emitFrame();
  }

  flush(): void {
    this.#emitFrame();
  }

  close(): void {
    this.#count = 0;
    this.#units.close();
  }

  #emitFrame(): void {
    const count = this.#count;
    if (count === 0) return;
    this.#count = 0;
    const timestamp = this.#timestamp;
    this.#timestamp = (timestamp + count * this.#ticksPerSample) >>> 0;
    // FLAC has no shorter blocks but for the last of a stream.
    if (count < FLAC_MIN_BLOCK) {
      this.#faults.count('audio_too_short');
      this.discarded++;
      return;
    }
    const frame = this.#encoder.encode(this.#samples, count);
    this.#units.append(frame, 0, frame.length);
    this.#units.finish(timestamp, count);
  }
}
