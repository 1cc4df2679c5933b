// G.711 to 16-bit samples by the formulas of ITU-T G.711 rather than by a table: what the recorder's tables must agree with.

/** Little-endian 16-bit samples of these octets. */
export function linearOf(octets: Buffer, law: 'alaw' | 'ulaw'): Buffer {
  const samples = Buffer.alloc(octets.length * 2);
  for (const [i, octet] of octets.entries())
    samples.writeInt16LE(law === 'alaw' ? fromAlaw(octet) : fromUlaw(octet), i * 2);
  return samples;
}

/** Even bits are inverted on the line; sign, 3 bits of segment, 4 bits of step. */
function fromAlaw(octet: number): number {
  const code = octet ^ 0x55;
  const segment = (code >> 4) & 7;
  const step = ((code & 0x0f) << 4) + 8;
  const magnitude = segment === 0 ? step : (step + 0x100) << (segment - 1);
  return (code & 0x80) !== 0 ? magnitude : -magnitude;
}

/** All bits are inverted on the line; a bias of 33 (here times 4) keeps segments regular. */
function fromUlaw(octet: number): number {
  const code = ~octet & 0xff;
  const magnitude = ((((code & 0x0f) << 3) + 0x84) << ((code >> 4) & 7)) - 0x84;
  return (code & 0x80) !== 0 ? -magnitude : magnitude;
}
