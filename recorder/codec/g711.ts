// Decodes G.711 (ITU-T G.711; in RTP: RFC 3551 §4.5.14).

import type { SampleDecoder } from './pcm.ts';

export type G711Law = 'mu' | 'a';

export class G711Decoder implements SampleDecoder {
  readonly octets: number;
  readonly samples = 1;
  readonly #table: Int16Array;

  /** The octets of the channels are interleaved. */
  constructor(law: G711Law, channels: number) {
    this.octets = channels;
    this.#table = law === 'mu' ? muLawTable() : aLawTable();
  }

  decode(bytes: Buffer, at: number, into: readonly Int16Array[], index: number): void {
    for (let channel = 0; channel < this.octets; channel++) {
      (into[channel] as Int16Array)[index] = this.#table[bytes[at + channel] as number] as number;
    }
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
