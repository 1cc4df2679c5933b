// Converts audio that browsers do not play in MP4 to FLAC frames, without loss.

import type { AudioParameters, Depacketizer, DepacketizerDeps } from './access-unit.ts';
import { AudioUnits } from './audio-units.ts';
import { countFault, type FaultCounts } from './faults.ts';
import { FLAC_MAX_BLOCK, FLAC_MIN_BLOCK, FlacEncoder, flacStreamInfo } from './flac.ts';
import type { RtpPacket } from '../rtp/packet.ts';

/** Shorter packets are combined: a FLAC frame has about a dozen bytes of overhead. */
const MIN_FRAME_MS = 20;
/** Smaller deviations of timestamps are rounding errors of the camera. */
const MAX_DEVIATION_MS = 20;

/** Decodes octets to 16-bit samples. Compressed audio depends on what came before, so each stream has its own decoder. */
export interface SampleDecoder {
  /** The number of octets that are decoded at once, and of the resulting samples per channel: a divisor of 4096. */
  readonly octets: number;
  readonly samples: number;
  /** Decodes from `bytes[at]` to `into[channel][index]`. */
  decode(bytes: Buffer, at: number, into: readonly Int16Array[], index: number): void;
}

interface PcmOptions extends DepacketizerDeps {
  readonly decoder: SampleDecoder;
  readonly sampleRate: number;
  readonly channels: number;
  /** Clock rate of the packets' timestamps in Hz; default: the sample rate. */
  readonly clockRate?: number;
}

export class PcmDepacketizer implements Depacketizer {
  readonly problem = undefined;
  readonly parameters: AudioParameters;
  readonly #decoder: SampleDecoder;
  readonly #ticksPerSample: number;
  readonly #maxDeviationTicks: number;
  readonly #minSamples: number;
  readonly #encoder: FlacEncoder;
  readonly #faults: FaultCounts;
  readonly #units: AudioUnits;
  /** Samples of each channel that wait to form a frame. */
  readonly #samples: readonly Int16Array[];
  #count = 0;
  /** Timestamp of the first waiting sample. */
  #timestamp = 0;
  discarded = 0;

  constructor({ decoder, sampleRate, channels, clockRate = sampleRate, pool, emit, faults }: PcmOptions) {
    this.#faults = faults;
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
    // FLAC allows a shorter block only at the end of a stream.
    if (count < FLAC_MIN_BLOCK) {
      countFault(this.#faults, 'audio-too-short');
      this.discarded++;
      return;
    }
    const frame = this.#encoder.encode(this.#samples, count);
    this.#units.append(frame, 0, frame.length);
    this.#units.finish(timestamp, count);
  }
}

/** Decodes L16: 16-bit big-endian samples with interleaved channels (RFC 3551 §4.5.11). */
export class L16Decoder implements SampleDecoder {
  readonly octets: number;
  readonly samples = 1;

  constructor(channels: number) {
    this.octets = channels * 2;
  }

  decode(bytes: Buffer, at: number, into: readonly Int16Array[], index: number): void {
    for (let channel = 0; channel < into.length; channel++) {
      const octet = at + channel * 2;
      // The Int16Array makes the value signed.
      (into[channel] as Int16Array)[index] = ((bytes[octet] as number) << 8) | (bytes[octet + 1] as number);
    }
  }
}
