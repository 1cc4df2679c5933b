// Extracts H.264 access units from RTP packets (RFC 6184, packetization modes 0 and 1).

import type { Depacketizer, DepacketizerDeps, NalParameters } from './access-unit.ts';
import { AccessUnitAssembler } from './access-unit-assembler.ts';
import { H264Syntax } from './h264-nal.ts';
import { parseSprop, useSprop } from './sprop.ts';
import type { RtpPacket } from '../rtp/packet.ts';
import { countFault } from './faults.ts';

const STAP_A = 24;
const STAP_B = 25;
const FU_A = 28;
const FU_B = 29;

interface H264Options extends DepacketizerDeps {
  /** `sprop-parameter-sets` of the SDP. */
  readonly sprop: string | undefined;
}

export class H264Depacketizer implements Depacketizer {
  readonly problem = undefined;
  readonly #units: AccessUnitAssembler;

  constructor({ sprop, pool, emit, faults }: H264Options) {
    const syntax = new H264Syntax();
    this.#units = new AccessUnitAssembler({ syntax, pool, emit, faults });
    const nals = parseSprop(sprop);
    if (nals.length > 0 && !useSprop(this.#units.sets, nals)) countFault(faults, 'sprop-invalid');
  }

  get parameters(): NalParameters | undefined {
    return this.#units.sets.parameters;
  }

  get remark(): Depacketizer['remark'] {
    return this.#units.remark;
  }

  get discarded(): number {
    return this.#units.discarded;
  }

  push(packet: RtpPacket): void {
    const { buffer, payloadStart: start, payloadEnd: end } = packet;
    this.#units.startPacket(packet.timestamp, packet.lost);
    if (start < end) {
      const type = (buffer[start] as number) & 0x1f;
      if (type === FU_A) this.#takeFragment(buffer, start, end);
      else if (type === STAP_A) this.#takeAggregate(buffer, start + 1, end);
      else if (type >= STAP_B && type <= FU_B) this.#units.damage('interleaved-packet');
      else this.#units.nal(buffer, start, end);
    }
    this.#units.endPacket(packet.marker);
  }

  flush(): void {
    this.#units.flush();
  }

  close(): void {
    this.#units.close();
  }

  /**
   * FU-A, RFC 6184 §5.8.
   *
   *   |F|NRI|  28     |S|E|R|  Type   | fragment …
   *
   * S and E must not both be set, but CostarHD and OpenIPC do so for small pictures: it is then a complete NAL unit. R is ignored
   * (Longse sets it).
   */
  #takeFragment(buffer: Buffer, start: number, end: number): void {
    if (end - start < 2) return;
    const fuHeader = buffer[start + 1] as number;
    const nalHeader = ((buffer[start] as number) & 0xe0) | (fuHeader & 0x1f);
    if ((fuHeader & 0x80) !== 0) this.#units.startFragments(nalHeader, 0, buffer, start + 2, end);
    else this.#units.appendFragment(nalHeader, buffer, start + 2, end);
    if ((fuHeader & 0x40) !== 0) this.#units.endFragments();
  }

  /** STAP-A, RFC 6184 §5.7.1: NAL units, each after a 16-bit size. Some cameras pad with zeros. */
  #takeAggregate(buffer: Buffer, start: number, end: number): void {
    let at = start;
    while (at + 2 < end) {
      const size = buffer.readUInt16BE(at);
      at += 2;
      if (size === 0) continue;
      if (at + size > end) return this.#units.cut(buffer, at);
      this.#units.nal(buffer, at, at + size);
      at += size;
    }
  }
}
