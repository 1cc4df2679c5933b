// Extracts AV1 temporal units from RTP packets (RTP Payload Format for AV1, Alliance for Open Media) in the form of samples: OBUs
// with sizes, without temporal delimiters and padding (AV1 in ISOBMFF §2.4).
//
//   |Z|Y| W |N|-|-|-| OBU element | OBU element | …
//
// Z: the first element continues the last one of the previous packet; Y: the last one continues in the next packet; W: the number
// of elements, all but the last with their size, or 0: all with their size.

import type { AccessUnitCallback, Av1Parameters, Depacketizer, DepacketizerDeps } from './access-unit.ts';
import {
  HAS_SIZE_FLAG,
  OBU,
  describeAv1,
  isKeyFrame,
  leb128,
  obuHeaderBytes,
  obuType,
  parseSequenceHeader,
  readLeb128,
} from './av1-obu.ts';
import type { SequenceHeader } from './av1-obu.ts';
import { countFault, type Fault, type FaultCounts } from './faults.ts';
import { MAX_ACCESS_UNIT_BYTES, SlabWriter } from './slab.ts';
import type { RtpPacket } from '../rtp/packet.ts';

const MAX_OBUS = 4096;
/** Larger OBUs are not sequence headers of a camera. */
const MAX_SEQUENCE_BYTES = 4096;
const KEPT: ReadonlySet<number> = new Set(Object.values(OBU));
/** Temporal delimiter, redundant frame header, tile list, padding. */
const DROPPED: ReadonlySet<number> = new Set([2, 7, 8, 15]);

/** A sequence header as an OBU with size, and its fields. */
interface Sequence extends SequenceHeader {
  readonly obu: Buffer;
}

export class Av1Depacketizer implements Depacketizer {
  readonly problem = undefined;
  readonly #faults: FaultCounts;
  readonly #emit: AccessUnitCallback;
  readonly #writer: SlabWriter;
  parameters: Av1Parameters | undefined;
  /** The sequence header of the last complete temporal unit that had one, and the one from which `parameters` were made. */
  #sequence: Sequence | undefined;
  #described: Sequence | undefined;
  discarded = 0;

  // State of the current temporal unit.
  #open = false;
  #damaged = false;
  #timestamp = 0;
  #obus = 0;
  #hasFrame = false;
  #isKey = false;
  #staged: Sequence | undefined;
  #lost = 0;
  /** Offset of the OBU whose next fragment is expected; undefined if there is none. */
  #fragmentsFrom: number | undefined;

  constructor({ pool, emit, faults }: DepacketizerDeps) {
    this.#faults = faults;
    this.#emit = emit;
    this.#writer = new SlabWriter(pool);
  }

  push(packet: RtpPacket): void {
    const { buffer, payloadStart: start, payloadEnd: end, timestamp } = packet;
    if (packet.lost > 0) {
      this.#lost += packet.lost;
      if (this.#open) this.#damage('lost-inside');
    }
    // The marker was missing.
    if (this.#open && timestamp !== this.#timestamp) this.#finish();
    this.#open = true;
    this.#timestamp = timestamp;
    if (start < end && !this.#damaged) this.#takeElements(buffer, start, end);
    if (packet.marker) this.#finish();
  }

  flush(): void {
    // It is unknown whether more would have come.
    if (this.#open) this.#damage('ended-inside');
    this.#finish();
  }

  close(): void {
    this.#reset();
    this.#writer.close();
  }

  #takeElements(buffer: Buffer, start: number, end: number): void {
    const header = buffer[start] as number;
    const continues = (header & 0x80) !== 0;
    const goesOn = (header & 0x40) !== 0;
    const count = (header >> 4) & 3;
    let at = start + 1;
    for (let element = 1; at < end && !this.#damaged; element++) {
      let size = end - at;
      if (element !== count) {
        const length = readLeb128(buffer, at, end);
        if (!length || at + length.bytes + length.value > end) return this.#damage('element-cut');
        at += length.bytes;
        size = length.value;
      }
      const isLast = count === 0 ? at + size === end : element === count;
      this.#takeElement(buffer, at, at + size, element === 1 && continues, isLast && goesOn);
      at += size;
    }
  }

  #takeElement(buffer: Buffer, start: number, end: number, continues: boolean, goesOn: boolean): void {
    if (continues !== (this.#fragmentsFrom !== undefined)) {
      return this.#damage(continues ? 'fragment-without-start' : 'fragment-without-end');
    }
    if (!continues) this.#obus++;
    if (this.#writer.size + end - start > MAX_ACCESS_UNIT_BYTES || this.#obus > MAX_OBUS) {
      this.#writer.close(); // the block is as large as the temporal unit
      return this.#damage('temporal-unit-too-large');
    }
    if (!continues && !goesOn) return this.#takeObus(buffer, start, end);
    const from = (this.#fragmentsFrom ??= this.#writer.size);
    this.#writer.append(buffer, start, end);
    if (goesOn) return;
    this.#fragmentsFrom = undefined;
    // Copied, because a size must be inserted: one copy for data from many packets.
    const whole = Buffer.from(this.#writer.peek().subarray(from));
    this.#writer.truncate(from);
    this.#takeObus(whole, 0, whole.length);
  }

  /** Takes the OBUs of an element: normally one, but some cameras put a complete temporal unit with sizes into one element. */
  #takeObus(bytes: Buffer, start: number, end: number): void {
    for (let at = start; at < end && !this.#damaged;) {
      const header = bytes[at] as number;
      const payload = at + obuHeaderBytes(header);
      if ((header & 0x80) !== 0 || payload > end) return this.#damage('obu-invalid');
      if ((header & HAS_SIZE_FLAG) === 0) return this.#takeObu(bytes, at, payload, end);
      const size = readLeb128(bytes, payload, end);
      if (!size || payload + size.bytes + size.value > end) return this.#damage('obu-cut');
      const payloadStart = payload + size.bytes;
      this.#takeObu(bytes, at, payloadStart, payloadStart + size.value);
      at = payloadStart + size.value;
      if (at < end && ++this.#obus > MAX_OBUS) return this.#damage('temporal-unit-too-large');
    }
  }

  /** Takes one OBU; its header starts at `start`. */
  #takeObu(bytes: Buffer, start: number, payload: number, end: number): void {
    const header = bytes[start] as number;
    const type = obuType(header);
    if (!KEPT.has(type)) {
      if (!DROPPED.has(type)) countFault(this.#faults, 'obu-unknown');
      return;
    }
    if (type === OBU.tileGroup && !this.#hasFrame) return this.#damage('frame-header-missing');
    const written = this.#writer.size;
    this.#writer.appendByte(header | HAS_SIZE_FLAG);
    if (obuHeaderBytes(header) === 2) this.#writer.appendByte(bytes[start + 1] as number);
    const size = leb128(end - payload);
    this.#writer.append(size, 0, size.length);
    this.#writer.append(bytes, payload, end);
    if (type === OBU.sequenceHeader) this.#stage(Buffer.from(this.#writer.peek().subarray(written)), end - payload);
    if (type !== OBU.frame && type !== OBU.frameHeader) return;
    const sequence = this.#staged ?? this.#sequence;
    if (!this.#hasFrame) this.#isKey = isKeyFrame(bytes, payload, end, sequence?.isStill ?? false);
    this.#hasFrame = true;
  }

  #stage(obu: Buffer, payloadBytes: number): void {
    const known = this.#sequence;
    if (known?.obu.equals(obu)) {
      this.#staged = known;
      return;
    }
    const sequence = obu.length > MAX_SEQUENCE_BYTES ? undefined : parseSequenceHeader(obu.subarray(-payloadBytes));
    if (sequence) this.#staged = { ...sequence, obu };
    else countFault(this.#faults, 'sequence-header-invalid');
  }

  #damage(fault: Fault): void {
    if (!this.#damaged) countFault(this.#faults, fault);
    this.#damaged = true;
    this.#fragmentsFrom = undefined;
    this.#writer.discard();
  }

  /** Emits or drops the current temporal unit. */
  #finish(): void {
    if (this.#open && this.#fragmentsFrom !== undefined) this.#damage('fragment-without-end');
    if (this.#open && !this.#damaged) {
      this.#sequence = this.#staged ?? this.#sequence;
      if (this.#isKey) this.#describe();
      if (this.#hasFrame && !this.parameters) this.#damage('before-parameters');
    }
    if (this.#damaged) {
      this.discarded++;
      // The next one must report a loss, even if no packet was lost.
      this.#lost = Math.max(1, this.#lost);
    } else if (this.#hasFrame) {
      this.#emitUnit();
    }
    this.#reset();
  }

  /** Prepends the sequence header to a random access point that lacks it. */
  #describe(): void {
    const sequence = this.#sequence;
    if (!sequence) return;
    if (sequence !== this.#described) this.parameters = describeAv1(sequence, sequence.obu);
    this.#described = sequence;
    if (!this.#staged) this.#writer.prepend(sequence.obu);
  }

  #emitUnit(): void {
    const unit = {
      data: this.#writer.finish(),
      timestamp: this.#timestamp,
      randomAccess: this.#isKey,
      lostPackets: this.#lost,
      durationTicks: 0,
      bidirectional: false,
    };
    this.#lost = 0;
    this.#emit(unit);
  }

  #reset(): void {
    this.#open = false;
    this.#damaged = false;
    this.#obus = 0;
    this.#hasFrame = false;
    this.#isKey = false;
    this.#staged = undefined;
    this.#fragmentsFrom = undefined;
    this.#writer.discard();
  }
}
