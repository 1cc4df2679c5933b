// RTP packets of G.711 in, FLAC frames out (RFC 3551 §4.5.14, ITU-T G.711). Browsers play FLAC in MP4, not G.711.

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

export type G711Law = 'mu' | 'a';

export interface G711Options {
  readonly law: G711Law;
  readonly sampleRate: number;
  /** 1 or 2, octets interleaved. */
  readonly channels: number;
  readonly pool: SlabPool;
  readonly emit: AccessUnitCallback;
}

export class G711Depacketizer implements Depacketizer {
  readonly problem = undefined;
  readonly parameters: AudioParameters;
  readonly #table: Int16Array;
  readonly #rate: number;
  readonly #minSamples: number;
  readonly #encoder: FlacEncoder;
  readonly #faults = new Faults();
  readonly #units: AudioUnits;
  /** Samples of each channel that wait for a frame. */
  readonly #samples: readonly Int16Array[];
  #count = 0;
  #timestamp = 0;
  discarded = 0;

  constructor({ law, sampleRate, channels, pool, emit }: G711Options) {
    this.#table = law === 'mu' ? muLawTable() : aLawTable();
    this.#rate = sampleRate;
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
    const deviation = (packet.timestamp - (this.#timestamp + this.#count)) | 0;
    if (Math.abs(deviation) * 1000 > MAX_DEVIATION_MS * this.#rate) this.#emitFrame();
    if (this.#count === 0) this.#timestamp = packet.timestamp;
    const { buffer, payloadEnd: end } = packet;
    const channels = this.#samples.length;
    const table = this.#table;
    for (let at = packet.payloadStart; at + channels <= end; at += channels) {
      for (let channel = 0; channel < channels; channel++) {
        (this.#samples[channel] as Int16Array)[this.#count] = table[buffer[at + channel] as number] as number;
      }
      if (++this.#count === FLAC_MAX_BLOCK) this.#emitFrame();
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
    this.#timestamp = (timestamp + count) >>> 0;
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

/** ITU-T G.711 Table 2: 14-bit values, in the upper bits of 16. */
export function muLawTable(): Int16Array {
  return Int16Array.from({ length: 256 }, (_, octet) => {
    const inverted = ~octet & 0xff;
    const exponent = (inverted >> 4) & 7;
    const magnitude = ((((inverted & 0x0f) << 3) + 0x84) << exponent) - 0x84;
    return (inverted & 0x80) === 0 ? magnitude : -magnitude;
  });
}

/** ITU-T G.711 Table 1: 13-bit values, in the upper bits of 16. */
export function aLawTable(): Int16Array {
  return Int16Array.from({ length: 256 }, (_, octet) => {
    const toggled = octet ^ 0x55;
    const exponent = (toggled >> 4) & 7;
    const mantissa = ((toggled & 0x0f) << 4) + 8;
    const magnitude = exponent === 0 ? mantissa : (mantissa + 0x100) << (exponent - 1);
    return (toggled & 0x80) === 0 ? -magnitude : magnitude;
  });
}
