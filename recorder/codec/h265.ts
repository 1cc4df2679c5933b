// Extracts H.265 access units from RTP packets (RFC 7798).

import type { Depacketizer, DepacketizerDeps, NalParameters } from './access-unit.ts';
import { AccessUnitAssembler } from './access-unit-assembler.ts';
import { countFault, type FaultCounts } from './faults.ts';
import { H265Syntax } from './h265-nal.ts';
import { parseSprop, useSprop } from './sprop.ts';
import type { RtpPacket } from '../rtp/packet.ts';

const AGGREGATION_PACKET = 48;
const FRAGMENTATION_UNIT = 49;
const PACI = 50;

interface H265Options extends DepacketizerDeps {
  /** `sprop-vps`, `sprop-sps` and `sprop-pps` of the SDP. */
  readonly spropVps: string | undefined;
  readonly spropSps: string | undefined;
  readonly spropPps: string | undefined;
  /** `sprop-max-don-diff`: if above 0, packets contain decoding order numbers. */
  readonly maxDonDiff: number;
}

export class H265Depacketizer implements Depacketizer {
  readonly problem = undefined;
  readonly #faults: FaultCounts;
  readonly #units: AccessUnitAssembler;
  readonly #hasDon: boolean;
  /** Decoding order number of the last NAL unit. */
  #don: number | undefined;

  constructor(options: H265Options) {
    const { pool, emit, faults } = options;
    this.#faults = faults;
    this.#hasDon = options.maxDonDiff > 0;
    this.#units = new AccessUnitAssembler({ syntax: new H265Syntax(), pool, emit, faults });
    const nals = [options.spropVps, options.spropSps, options.spropPps].flatMap(parseSprop);
    if (nals.length > 0 && !useSprop(this.#units.sets, nals)) countFault(this.#faults, 'sprop-invalid');
  }

  get parameters(): NalParameters | undefined {
    return this.#units.sets.parameters;
  }

  get discarded(): number {
    return this.#units.discarded;
  }

  push(packet: RtpPacket): void {
    const { buffer, payloadStart: start, payloadEnd: end } = packet;
    this.#units.startPacket(packet.timestamp, packet.lost);
    if (packet.lost > 0) this.#don = undefined;
    if (end - start >= 2) {
      const type = ((buffer[start] as number) >> 1) & 0x3f;
      if (isOtherLayer(buffer, start)) countFault(this.#faults, 'layer-ignored');
      else if (type === FRAGMENTATION_UNIT) this.#takeFragment(buffer, start, end);
      else if (type === AGGREGATION_PACKET) this.#takeAggregate(buffer, start + 2, end);
      else if (type === PACI) countFault(this.#faults, 'paci-ignored');
      else this.#takeSingle(buffer, start, end);
    }
    this.#units.endPacket(packet.marker);
  }

  flush(): void {
    this.#units.flush();
  }

  close(): void {
    this.#units.close();
  }

  /** RFC 7798 §4.4.1: one NAL unit, with DONL after its header. */
  #takeSingle(buffer: Buffer, start: number, end: number): void {
    if (!this.#hasDon) return this.#units.nal(buffer, start, end);
    if (end - start < 4) return countFault(this.#faults, 'nal-without-content');
    if (!this.#noteDon(buffer.readUInt16BE(start + 2))) return;
    this.#units.startFragments(buffer[start] as number, buffer[start + 1] as number, buffer, start + 4, end);
    this.#units.endFragments();
  }

  /**
   * RFC 7798 §4.4.3.
   *
   *   |F|  49       |  LayerId  | TID |S|E|  FuType   | DONL, in the first | fragment …
   *
   * S and E must not both be set, but OpenIPC does so: it is then a complete NAL unit.
   */
  #takeFragment(buffer: Buffer, start: number, end: number): void {
    if (end - start < 3) return;
    const fuHeader = buffer[start + 2] as number;
    const header = ((buffer[start] as number) & 0x81) | ((fuHeader & 0x3f) << 1);
    const header2 = buffer[start + 1] as number;
    let from = start + 3;
    if ((fuHeader & 0x80) === 0) {
      this.#units.appendFragment(header, buffer, from, end);
    } else {
      if (this.#hasDon) {
        if (end - from < 2) return this.#units.damage('don-missing');
        if (!this.#noteDon(buffer.readUInt16BE(from))) return;
        from += 2;
      }
      this.#units.startFragments(header, header2, buffer, from, end);
    }
    if ((fuHeader & 0x40) !== 0) this.#units.endFragments();
  }

  /** RFC 7798 §4.4.2: NAL units, each after a 16-bit size; before that DONL (first) or DOND (others). */
  #takeAggregate(buffer: Buffer, start: number, end: number): void {
    let at = start;
    while (at + 2 < end) {
      if (this.#hasDon) {
        const isFirst = at === start;
        const don = isFirst ? buffer.readUInt16BE(at) : (this.#don ?? 0) + (buffer[at] as number) + 1;
        if (!this.#noteDon(don & 0xffff)) return;
        at += isFirst ? 2 : 1;
        if (at + 2 > end) return this.#units.damage('aggregate-cut');
      }
      const size = buffer.readUInt16BE(at);
      at += 2;
      if (size === 0) continue;
      if (at + size > end) return this.#units.cut(buffer, at);
      if (size > 1 && isOtherLayer(buffer, at)) countFault(this.#faults, 'layer-ignored');
      else this.#units.nal(buffer, at, at + size);
      at += size;
    }
  }

  /** Rejects NAL units that are not sent in decoding order. */
  #noteDon(don: number): boolean {
    const isLate = this.#don !== undefined && ((don - this.#don) << 16) >> 16 < 0;
    if (!isLate) this.#don = don;
    else this.#units.damage('decoding-order-changed');
    return !isLate;
  }
}

/** nuh_layer_id is not 0: an enhancement layer, which decoders of the base layer do not need. */
function isOtherLayer(buffer: Buffer, at: number): boolean {
  return ((buffer[at] as number) & 1) !== 0 || (buffer[at + 1] as number) >> 3 !== 0;
}
