// Decodes L16: 16-bit big-endian samples with interleaved channels (RFC 3551 §4.5.11).

import type { SampleDecoder } from './pcm.ts';

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
