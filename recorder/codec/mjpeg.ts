// Extracts JPEG files from RTP packets (RFC 2435; with the header extension of ONVIF's Streaming Specification, "JPEG over RTP").
//
//   | type-specific |        fragment offset in bytes       |
//   |     type      |       Q       |   width/8   | height/8 |
//   restart marker header, types 64 to 127 | quantization table header, offset 0 and Q from 128 on | scan data …

import type { AccessUnitCallback, Depacketizer, DepacketizerDeps, MjpegParameters } from './access-unit.ts';
import { countFault, type Fault, type FaultCounts } from './faults.ts';
import { NO_SEGMENTS, frameSize, jpegHeader, readSegments, tablesInHeader, tablesOfQuality } from './jpeg-header.ts';
import type { QuantizationTables } from './jpeg-header.ts';
import { MAX_ACCESS_UNIT_BYTES, SlabWriter } from './slab.ts';
import type { RtpPacket } from '../rtp/packet.ts';

const HEADER_BYTES = 8;
/** Types from this one on have a restart marker header. */
const RESTART_TYPES = 64;
/** Values of Q from this one on refer to tables that the camera sends. */
const TABLES_IN_BAND = 128;
/** The first 16 bits of the header extension: in the first packet of a picture, and in further ones. */
const FIRST_EXTENSION = 0xffd8;
const FURTHER_EXTENSION = 0xffff;
const MAX_EXTENSION_BYTES = 64 * 1024;
/** T.81 allows four tables of each kind. */
const MAX_TABLES = 8;
const EOI = Buffer.of(0xff, 0xd9);
/** Types of a field, every second line of a picture (RFC 2435 §4.1). */
const FIELDS: ReadonlySet<number> = new Set([1, 2]);
const FIELD_ASPECT = { horizontal: 1, vertical: 2 } as const;

export interface PictureSize {
  readonly width: number;
  readonly height: number;
}

interface MjpegOptions extends DepacketizerDeps {
  /** The size in the SDP: packets cannot express more than 2040, or a size that is not a multiple of 8. */
  readonly size: PictureSize | undefined;
}

export class MjpegDepacketizer implements Depacketizer {
  readonly #faults: FaultCounts;
  readonly #emit: AccessUnitCallback;
  readonly #writer: SlabWriter;
  readonly #announced: PictureSize | undefined;
  parameters: MjpegParameters | undefined;
  problem: Depacketizer['problem'];
  discarded = 0;

  // State of the current picture.
  #open = false;
  #damaged = false;
  #timestamp = 0;
  /** Bytes of scan data so far; the writer has the header before them. */
  #scanBytes = 0;
  #size: PictureSize = { width: 0, height: 0 };
  #isField = false;
  #extension: Buffer[] = [];
  #extensionBytes = 0;
  #lost = 0;

  /** By Q: sent by the camera, or computed. */
  readonly #tablesByQ = new Map<number, QuantizationTables>();
  // From the previous picture; a picture with a header extension may leave them out.
  #quantization: readonly Buffer[] = [];
  #huffman: readonly Buffer[] = [];
  #frame: Buffer | undefined;

  constructor({ size, pool, emit, faults }: MjpegOptions) {
    this.#faults = faults;
    this.#announced = size;
    this.#emit = emit;
    this.#writer = new SlabWriter(pool);
  }

  push(packet: RtpPacket): void {
    const { buffer, payloadStart: start, payloadEnd: end, timestamp } = packet;
    if (packet.lost > 0) {
      this.#lost += packet.lost;
      if (this.#open) this.#damage('lost-inside');
    }
    if (this.#open && timestamp !== this.#timestamp) this.#finish();
    const offset = end - start >= HEADER_BYTES ? buffer.readUIntBE(start + 1, 3) : undefined;
    // The marker was missing, or this is the second field.
    if (offset === 0 && (this.#scanBytes > 0 || this.#damaged)) this.#finish();
    this.#open = true;
    this.#timestamp = timestamp;
    this.#takeExtension(packet);
    if (!this.#damaged && offset !== undefined) this.#takePayload(buffer, start, end, offset);
    else if (!this.#damaged && start < end) this.#damage('packet-cut');
    if (packet.marker) this.#finish();
  }

  flush(): void {
    // Without a marker, only the end of the data shows that it is complete.
    if (this.#open && !this.#endsWithMarker) this.#damage('ended-inside');
    this.#finish();
  }

  close(): void {
    this.#reset();
    this.#writer.close();
  }

  get #endsWithMarker(): boolean {
    return this.#writer.size >= 2 && this.#writer.peek().subarray(-2).equals(EOI);
  }

  #takeExtension({ buffer, extensionStart: start, payloadStart: end }: RtpPacket): void {
    if (start + 4 >= end || this.#scanBytes > 0) return;
    const kind = buffer.readUInt16BE(start);
    if (kind !== FIRST_EXTENSION && kind !== FURTHER_EXTENSION) return;
    if (this.#extensionBytes + end - start > MAX_EXTENSION_BYTES)
      return countFault(this.#faults, 'extension-too-large');
    this.#extensionBytes += end - start;
    this.#extension.push(Buffer.from(buffer.subarray(start + 4, end)));
  }

  #takePayload(buffer: Buffer, start: number, end: number, offset: number): void {
    const type = buffer[start + 4] as number;
    const q = buffer[start + 5] as number;
    let at = start + HEADER_BYTES;
    let restartInterval = 0;
    if (type >= RESTART_TYPES && type < 2 * RESTART_TYPES) {
      if (end - at < 4) return this.#damage('packet-cut');
      restartInterval = buffer.readUInt16BE(at);
      at += 4;
    }
    if (offset === 0 && q >= TABLES_IN_BAND) {
      const length = end - at < 4 ? Infinity : buffer.readUInt16BE(at + 2);
      if (at + 4 + length > end) return this.#damage('packet-cut');
      this.#takeTables(q, buffer[at + 1] as number, buffer.subarray(at + 4, at + 4 + length));
      at += 4 + length;
    }
    if (at === end) return;
    if (offset !== this.#scanBytes) return this.#damage(this.#lost > 0 ? 'lost-inside' : 'offset-wrong');
    if (this.#writer.size + end - at > MAX_ACCESS_UNIT_BYTES) {
      this.#writer.close(); // the block is as large as the picture
      return this.#damage('picture-too-large');
    }
    if (this.#scanBytes === 0) {
      const header = this.#header(buffer, start, type % RESTART_TYPES, q, restartInterval);
      if (!header) return;
      this.#writer.append(header, 0, header.length);
    }
    this.#writer.append(buffer, at, end);
    this.#scanBytes += end - at;
  }

  /** A length of 0 means the tables that were sent for this Q before. */
  #takeTables(q: number, precision: number, bytes: Buffer): void {
    if (bytes.length === 0) return;
    const tables = tablesInHeader(precision, bytes);
    if (tables) this.#tablesByQ.set(q, tables);
    else countFault(this.#faults, 'quantization-invalid');
  }

  #tablesOf(q: number): QuantizationTables {
    let tables = this.#tablesByQ.get(q);
    if (!tables && q < TABLES_IN_BAND) this.#tablesByQ.set(q, (tables = tablesOfQuality(q)));
    return tables ?? [];
  }

  /** Undefined if the picture cannot be described. */
  #header(buffer: Buffer, start: number, type: number, q: number, restartInterval: number): Buffer | undefined {
    const extended = this.#extension.length > 0;
    const own = extended ? readSegments(Buffer.concat(this.#extension)) : NO_SEGMENTS;
    const quantization = q === 0 ? this.#quantization : this.#tablesOf(q);
    const widthUnits = buffer[start + 6] as number;
    const heightUnits = buffer[start + 7] as number;
    const before = extended && widthUnits === 0 && heightUnits === 0 ? this.#frame : undefined;
    this.#quantization = [...quantization, ...own.quantization].slice(-MAX_TABLES);
    this.#huffman = extended ? [...this.#huffman, ...own.huffman].slice(-MAX_TABLES) : [];
    this.#frame = own.frame ?? before;
    this.#size = this.#frame ? frameSize(this.#frame) : this.#sizeOf(widthUnits, heightUnits);
    this.#isField = FIELDS.has(buffer[start] as number);
    const { width, height } = this.#size;
    if (this.#quantization.length === 0) return this.#refuse('quantization-missing', 'lack quantization tables');
    if (width === 0 || height === 0) return this.#refuse('size-unknown', 'have a size that the camera does not send');
    if (type > 1 && !this.#frame)
      return this.#refuse('type-unknown', `are of type ${type}, which RFC 2435 leaves open`);
    this.problem = undefined;
    const tables = { quantization: this.#quantization, huffman: this.#huffman };
    return jpegHeader({ ...own, ...tables, frame: this.#frame, type, width, height, restartInterval });
  }

  /** The announced size if the packets agree with it: they count modulo 2048, in units of 8, and 0 matches any size. */
  #sizeOf(widthUnits: number, heightUnits: number): PictureSize {
    const exact = (units: number, announced: number | undefined): number =>
      announced !== undefined && (units === 0 || units === (Math.ceil(announced / 8) & 0xff)) ? announced : units * 8;
    return {
      width: exact(widthUnits, this.#announced?.width),
      height: exact(heightUnits, this.#announced?.height),
    };
  }

  #refuse(fault: Fault, what: string): undefined {
    this.problem = { code: `mjpeg-${fault}`, message: `the camera's JPEG pictures ${what}` };
    this.#damage(fault);
  }

  #damage(fault: Fault): void {
    if (!this.#damaged) countFault(this.#faults, fault);
    this.#damaged = true;
    this.#scanBytes = 0;
    this.#writer.discard();
  }

  /** Emits or drops the current picture. */
  #finish(): void {
    if (this.#damaged) {
      this.discarded++;
      // The next one must report a loss, even if no packet was lost.
      this.#lost = Math.max(1, this.#lost);
    } else if (this.#scanBytes > 0) {
      this.#emitPicture();
    }
    this.#reset();
  }

  #emitPicture(): void {
    if (!this.#endsWithMarker) this.#writer.append(EOI, 0, EOI.length);
    this.#describe();
    const unit = {
      data: this.#writer.finish(),
      timestamp: this.#timestamp,
      randomAccess: true,
      lostPackets: this.#lost,
      durationTicks: 0,
      bidirectional: false,
    };
    this.#lost = 0;
    this.#emit(unit);
  }

  #describe(): void {
    const { width, height } = this.#size;
    const before = this.parameters;
    const pixelAspect = this.#isField ? FIELD_ASPECT : undefined;
    if (before?.width === width && before.height === height && before.pixelAspect === pixelAspect) return;
    const common = { kind: 'video', codec: 'mjpeg', codecString: 'mp4v.6C', reorderDepth: 0 } as const;
    this.parameters = { ...common, width, height, ...(pixelAspect ? { pixelAspect } : {}) };
  }

  #reset(): void {
    this.#open = false;
    this.#damaged = false;
    this.#scanBytes = 0;
    this.#extension = [];
    this.#extensionBytes = 0;
    this.#writer.discard();
  }
}
