// Makes RTP packets from AV1 temporal units like a well-behaved camera (RTP Payload Format for AV1). It parses the units with
// separate code, so that it shares no mistake with the recorder.

import assert from 'node:assert/strict';
import type { PacketizeOptions } from './packetize.ts';
import { packetizePayloads } from './packetize.ts';

export const OBU_SEQUENCE_HEADER = 1;
export const OBU_DELIMITER = 2;

export interface Av1Options {
  /** Every element has its size (W = 0), instead of up to three elements of which the last has none. */
  readonly sizes?: boolean;
  /** OBUs keep their own size fields. */
  readonly keepSizeFields?: boolean;
}

export const obuType = (obu: Buffer): number => ((obu[0] as number) >> 3) & 15;

/** The OBUs of a temporal unit in which each has a size, with header and size. */
export function splitObus(unit: Buffer): Buffer[] {
  const obus: Buffer[] = [];
  for (let at = 0; at < unit.length;) {
    const header = unit[at] as number;
    assert.equal(header & 0x82, 0x02, 'an OBU with a size');
    let payload = at + ((header & 4) === 0 ? 1 : 2);
    let size = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = unit[payload++] as number;
      size |= (byte & 0x7f) << shift;
      if ((byte & 0x80) === 0) break;
    }
    obus.push(unit.subarray(at, payload + size));
    at = payload + size;
  }
  return obus;
}

/** The OBU without its size field. */
export function withoutSize(obu: Buffer): Buffer {
  const header = obu[0] as number;
  const headerBytes = (header & 4) === 0 ? 1 : 2;
  let payload = headerBytes;
  while (((obu[payload++] as number) & 0x80) !== 0);
  const head = Buffer.from(obu.subarray(0, headerBytes));
  head[0] = header & ~2;
  return Buffer.concat([head, obu.subarray(payload)]);
}

function sized(bytes: Buffer): Buffer {
  const size: number[] = [];
  let left = bytes.length;
  do {
    size.push((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
    left >>= 7;
  } while (left > 0);
  return Buffer.concat([Buffer.from(size), bytes]);
}

export function packetizeAv1(obus: readonly Buffer[], options: PacketizeOptions & Av1Options): Buffer[] {
  return packetizePayloads(av1Payloads(obus, (options.mtu ?? 1400) - 12, options), options);
}

/** `obus`: those of one temporal unit, each with its size. */
export function av1Payloads(obus: readonly Buffer[], room: number, options: Av1Options = {}): Buffer[] {
  const { sizes = false, keepSizeFields = false } = options;
  const hasSequence = obus.some((obu) => obuType(obu) === OBU_SEQUENCE_HEADER);
  const payloads: Buffer[] = [];
  let elements: Buffer[] = [];
  let continues = false;
  let used = 1;
  const end = (goesOn: boolean): void => {
    if (elements.length === 0) return;
    const count = sizes ? 0 : elements.length;
    const first = payloads.length === 0 && hasSequence ? 0x08 : 0;
    const header = (continues ? 0x80 : 0) | (goesOn ? 0x40 : 0) | (count << 4) | first;
    const parts = elements.map((element, i) => (sizes || i < count - 1 ? sized(element) : element));
    payloads.push(Buffer.concat([Buffer.of(header), ...parts]));
    continues = goesOn;
    elements = [];
    used = 1;
  };
  for (const obu of obus) {
    let rest = keepSizeFields ? obu : withoutSize(obu);
    while (rest.length > 0) {
      // Reserves three bytes for a size, whether or not it is written.
      if (used + 3 >= room || (!sizes && elements.length === 3)) end(false);
      const part = rest.subarray(0, room - used - 3);
      elements.push(part);
      used += part.length + 3;
      rest = rest.subarray(part.length);
      if (rest.length > 0) end(true);
    }
  }
  end(false);
  return payloads;
}
