// Assembles access units from NAL units and fragments of H.264 or H.265: decides where one ends, what it contains, and when it is
// dropped.
//
// According to the RFCs a marker bit ends an access unit. But cameras set it on parameter sets and SEI (Tapo TC70, Reolink Duo
// 2), on every slice, or never (FLIR M400), and change the timestamp between parameter sets and their picture (Reolink RLC-822A).
// Therefore:
// - a marker counts only after a slice (see also MarkerPolicy);
// - a delimiter, parameter set, SEI or first slice after a slice starts the next one, even with the same timestamp;
// - a changed timestamp ends an access unit that has a slice only if the camera has never set a marker, or may send fields: others stamp
//   each slice or each packet. One without a slice takes the new timestamp.
//
// An access unit with a missing part is dropped completely, including its parameter sets; the next one that is emitted says how
// many packets were lost. It also takes over whole signatures: they are about the pictures before.

import type { AccessUnitCallback, Depacketizer, DepacketizerDeps } from './access-unit.ts';
import { countFault, type Fault, type FaultCounts } from './faults.ts';
import { MarkerPolicy } from './marker-policy.ts';
import {
  ROLE,
  START_CODE,
  isWholeSei,
  signatureIn,
  type NalSyntax,
  type Role,
  type SliceHeader,
} from './nal-syntax.ts';
import { ParameterSets } from './parameter-sets.ts';
import { MAX_ACCESS_UNIT_BYTES, SlabWriter } from './slab.ts';

const NOTHING: readonly Buffer[] = [];
const MAX_NALS = 4096;
/** Limit for SEI and parameter sets before their picture. */
const MAX_PREFIX_BYTES = 256 * 1024;
/** Signatures of damaged access units that are kept for the next one, and the size of each with certificates and hashes. */
const MAX_SIGNATURES = 16;
const MAX_SIGNATURE_BYTES = 64 * 1024;
/** The shortest time between two gradual refreshes that count as random access points: 5 s at the usual clock rate. */
const GRADUAL_TICKS = 5 * 90_000;
const OPEN_GROUP = {
  code: 'open-gop',
  message: 'key frames are not IDR pictures (open groups of pictures): Chromium may stop at them with an error',
};
const GRADUAL_REFRESH = {
  code: 'gradual-refresh',
  message: 'pictures are refreshed in slices, without key frames: the first ones of each file are not shown',
};

/** For the small NAL units of each picture a loop is faster than `Buffer.includes`. */
function hasStartCode(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start + 2; at < end; at++) {
    if (bytes[at] === 1 && bytes[at - 1] === 0 && bytes[at - 2] === 0) return true;
  }
  return false;
}

/** An access unit without a missing part so far: its bytes are in the writer, its parameter sets are staged. */
interface Whole {
  readonly kind: 'whole';
  timestamp: number;
  hasSlice: boolean;
  /** The packet of its last slice had the marker. */
  marked: boolean;
  nalCount: number;
  /** An IDR, CRA or BLA picture. */
  randomAccess: boolean;
  recoveryCount: number | undefined;
  intra: boolean;
  bidirectional: boolean;
  ppsId: number | undefined;
}

/** An access unit with a missing part: nothing of it is stored. */
interface Damaged {
  readonly kind: 'damaged';
  readonly timestamp: number;
  hasSlice: boolean;
}

/** Fragments that are stored: what has arrived of the NAL unit is at the end of the writer, after space for its length. */
interface Writing {
  readonly kind: 'writing';
  readonly unit: Whole;
  readonly header: number;
  /** Where its length goes, in bytes from the start of the access unit. */
  readonly offset: number;
}

type Fragments =
  /** Its start had no payload (retina#115): the NAL unit starts with the next fragment. */
  { readonly kind: 'awaited'; readonly header: number; readonly header2: number } | Writing | typeof IGNORED;

/** Fragments that are not stored: useless, or part of a damaged access unit. */
const IGNORED = { kind: 'ignored' } as const;

interface AssemblerOptions extends DepacketizerDeps {
  readonly syntax: NalSyntax;
}

export class AccessUnitAssembler {
  readonly sets: ParameterSets;
  /** Access units dropped because they were damaged or came before the parameters were known. */
  discarded = 0;
  /** Set by the last key picture whose NAL unit type is not that of a key picture. */
  remark: Depacketizer['remark'];

  readonly #syntax: NalSyntax;
  readonly #emit: AccessUnitCallback;
  readonly #faults: FaultCounts;
  readonly #writer: SlabWriter;
  readonly #markers = new MarkerPolicy();
  readonly #slice: SliceHeader = { randomAccess: false, intra: false, bidirectional: false, ppsId: 0 };
  /** The camera has sent a byte stream with start codes inside a NAL unit: check every one for it. */
  #sendsByteStreams = false;

  #unit: Whole | Damaged | undefined;
  /** The current NAL unit, between its first fragment and its last. */
  #fragments: Fragments | undefined;

  /** Signatures of the current access unit, and of damaged ones before it. */
  #signatures = NOTHING;
  #orphans = NOTHING;
  /** Some cameras send it once. It is repeated at key pictures, because a file or an export may begin there. */
  #certificate: Buffer | undefined;
  #keyTimestamp: number | undefined;
  #packetTimestamp = 0;
  /** The last packet that ended had the marker. */
  #packetMarked = false;
  #lost = 0;
  /** Timestamp of the last access unit that ended. */
  #lastTimestamp = -1;

  constructor(options: AssemblerOptions) {
    this.#syntax = options.syntax;
    this.#emit = options.emit;
    this.#faults = options.faults;
    this.#writer = new SlabWriter(options.pool);
    this.sets = new ParameterSets(options.syntax);
  }

  /** Starts a packet. `lost` packets before it are missing. */
  startPacket(timestamp: number, lost: number): void {
    this.#packetTimestamp = timestamp;
    if (lost > 0) this.#noteLoss(lost);
    if (this.#unit && timestamp !== this.#unit.timestamp) this.#changeTimestamp(timestamp);
  }

  /** Adds a complete NAL unit. */
  nal(bytes: Buffer, start: number, end: number): void {
    this.#interruptFragments();
    const role = this.#syntax.role(this.#syntax.nalType(bytes[start] as number));
    if (this.#isByteStream(bytes, start, end, role)) return this.#splitByteStream(bytes, start, end);
    if (end - start <= this.#syntax.headerBytes) {
      if (role !== ROLE.dropped) countFault(this.#faults, 'nal-without-content');
      return;
    }
    const unit = this.#begin(role, bytes[start + this.#syntax.headerBytes] as number);
    if (!unit || !this.#hasSpace(end - start)) return;
    const offset = this.#writer.size;
    this.#writer.appendU32(end - start);
    this.#writer.append(bytes, start, end);
    this.#endNal(unit, role, offset);
  }

  /** Starts a fragmented NAL unit with its header (the second byte for H.265 only) and the bytes after the header. */
  startFragments(header: number, header2: number, bytes: Buffer, start: number, end: number): void {
    this.#interruptFragments();
    if (start === end) this.#fragments = { kind: 'awaited', header, header2 };
    else this.#beginFragments(header, header2, bytes, start, end);
  }

  /** Adds a fragment. The header is used only if the first fragment was missed; some cameras vary it (Tiandy). */
  appendFragment(header: number, bytes: Buffer, start: number, end: number): void {
    const fragments = this.#fragments;
    if (fragments?.kind === 'writing') {
      if (this.#hasSpace(end - start)) this.#writer.append(bytes, start, end);
    } else if (fragments?.kind === 'awaited') {
      if (start < end) this.#beginFragments(fragments.header, fragments.header2, bytes, start, end);
    } else if (!fragments) {
      this.#missStart(this.#roleOf(header));
    }
  }

  /** The previous fragment was the last one. */
  endFragments(): void {
    const fragments = this.#fragments;
    this.#fragments = undefined;
    if (fragments?.kind !== 'writing') return;
    const { unit, header, offset } = fragments;
    const writer = this.#writer;
    writer.patchU32(offset, writer.size - offset - 4);
    const role = this.#roleOf(header);
    const start = writer.start + offset + 4;
    const end = writer.start + writer.size;
    if (!this.#isByteStream(writer.block, start, end, role)) return this.#endNal(unit, role, offset);
    const copy = Buffer.from(writer.block.subarray(start, end));
    writer.truncate(offset);
    this.#splitByteStream(copy, 0, copy.length);
  }

  /** A packet with several NAL units ends inside the one that starts at `start`; only a slice would be missed. */
  cut(bytes: Buffer, start: number): void {
    if (this.#roleOf(bytes[start] as number) === ROLE.slice) this.#damage('aggregate-cut').hasSlice = true;
    else countFault(this.#faults, 'aggregate-cut');
  }

  /** The camera sent something invalid: the current access unit cannot be complete. */
  damage(fault: Fault): void {
    this.#damage(fault);
  }

  endPacket(marker: boolean): void {
    this.#packetMarked = marker;
    const unit = this.#unit;
    if (!marker || !unit?.hasSlice) return;
    if (this.#fragments && this.#fragments.kind !== 'ignored') return;
    if (unit.kind === 'damaged') {
      if (!this.#markers.perSlice) this.#finish(unit);
      return;
    }
    unit.marked = true;
    if (this.#markers.isEnd(this.#isKeyPicture(unit))) this.#finish(unit);
  }

  /** At the end of the stream: emits the current access unit if it is complete. */
  flush(): void {
    this.#interruptFragments();
    let unit = this.#unit;
    if (!unit) return;
    // This camera sets markers, and without one slices may be missing.
    if (unit.kind === 'whole' && unit.hasSlice && !unit.marked && this.#markers.seen)
      unit = this.#damage('ended-inside');
    if (unit.hasSlice) return this.#finish(unit);
    this.#writer.discard();
    this.sets.rollback();
    this.#unit = undefined;
  }

  close(): void {
    this.#unit = undefined;
    this.#fragments = undefined;
    this.sets.rollback();
    this.#writer.close();
  }

  #roleOf(header: number): Role {
    return this.#syntax.role(this.#syntax.nalType(header));
  }

  #isKeyPicture({ randomAccess, recoveryCount, intra, timestamp }: Whole): boolean {
    if (randomAccess) return true;
    if (recoveryCount === undefined) return false;
    return intra || (recoveryCount > 0 && this.#mayBeginGradually(timestamp));
  }

  /**
   * After a gradual refresh pictures become complete bit by bit. A stream that starts with one, or has nothing else, may start
   * there. Such points are accepted rarely, so that playback mostly starts well after one.
   */
  #mayBeginGradually(timestamp: number): boolean {
    return this.#keyTimestamp === undefined || Math.abs((timestamp - this.#keyTimestamp) | 0) >= GRADUAL_TICKS;
  }

  /** Drops the current access unit, or the one that would start here, and returns what remains of it. */
  #damage(fault: Fault): Damaged {
    countFault(this.#faults, fault);
    const { timestamp, hasSlice } = this.#unit ?? { timestamp: this.#packetTimestamp, hasSlice: false };
    const unit: Damaged = { kind: 'damaged', timestamp, hasSlice };
    this.#unit = unit;
    this.#fragments = undefined;
    this.#orphans = [...this.#orphans, ...this.#signatures].slice(-MAX_SIGNATURES);
    this.#signatures = NOTHING;
    this.#writer.discard();
    this.sets.rollback();
    return unit;
  }

  #noteLoss(lost: number): void {
    const unit = this.#unit;
    if (unit?.kind === 'whole') {
      if (unit.marked && !this.#markers.perSlice) {
        // The picture is complete; what follows it, as an auxiliary slice, is not.
        if (this.#fragments?.kind === 'writing') this.#writer.truncate(this.#fragments.offset);
        this.#finish(unit);
      } else this.#damage('lost-inside');
    }
    this.#fragments = undefined;
    this.#lost += lost;
  }

  #changeTimestamp(timestamp: number): void {
    // Fragments belong together by their bits and sequence numbers.
    if (this.#fragments?.kind === 'writing') return;
    this.#interruptFragments();
    const unit = this.#unit;
    if (!unit) return;
    const isOpen = unit.kind === 'whole' && !unit.marked && this.#markers.seen && !this.sets.mayHaveFields;
    if (unit.hasSlice && isOpen) return;
    if (unit.hasSlice || unit.kind === 'damaged') return this.#finish(unit);
    unit.timestamp = timestamp;
    if (this.#writer.size <= MAX_PREFIX_BYTES) return;
    countFault(this.#faults, 'prefix-too-large');
    this.#writer.discard();
    this.sets.rollback();
  }

  /** Something else arrived where a further fragment was expected, although no packet is missing. */
  #interruptFragments(): void {
    const fragments = this.#fragments;
    if (!fragments) return;
    if (fragments.kind !== 'ignored' && this.#unit?.kind !== 'damaged') {
      if (fragments.kind === 'writing' && this.#packetMarked) {
        // The marker shows that it was complete; only its end bit is missing.
        countFault(this.#faults, 'fragment-end-bit-missing');
        this.endFragments();
      } else {
        const damaged = this.#damage('fragment-without-end');
        if (this.#roleOf(fragments.header) === ROLE.slice) damaged.hasSlice = true;
      }
    }
    this.#fragments = undefined;
  }

  #missStart(role: Role): void {
    if (role === ROLE.slice || role === ROLE.parameterSet) {
      const damaged = this.#unit?.kind === 'damaged' ? this.#unit : this.#damage('fragment-without-start');
      if (role === ROLE.slice) damaged.hasSlice = true;
    }
    this.#fragments = IGNORED;
  }

  #beginFragments(header: number, header2: number, bytes: Buffer, start: number, end: number): void {
    const { headerBytes } = this.#syntax;
    this.#fragments = IGNORED;
    const firstByte = bytes[start] as number;
    const isByteStream = header === 0 && (headerBytes === 1 ? firstByte : header2) === 0;
    const unit = isByteStream ? this.#open() : this.#begin(this.#roleOf(header), firstByte);
    if (unit?.kind !== 'whole' || !this.#hasSpace(end - start + headerBytes)) return;
    const offset = this.#writer.size;
    this.#fragments = { kind: 'writing', unit, header, offset };
    this.#writer.appendU32(0);
    this.#writer.appendByte(header);
    if (headerBytes === 2) this.#writer.appendByte(header2);
    this.#writer.append(bytes, start, end);
  }

  /** Decides what a new NAL unit means for the current access unit; undefined if it must not be stored there. */
  #begin(role: Role, firstByte: number): Whole | undefined {
    if (role === ROLE.unknown) countFault(this.#faults, 'nal-unknown');
    if (role === ROLE.unknown || role === ROLE.dropped) return undefined;
    // first_mb_in_slice is 0 (one bit in Exp-Golomb code), or first_slice_segment_in_pic_flag is set.
    const isFirstSlice = role === ROLE.slice && (firstByte & 0x80) !== 0;
    if (this.#unit?.hasSlice) this.#continueOrFinish(this.#unit, role, isFirstSlice);
    if (role === ROLE.delimiter || (role === ROLE.suffix && !this.#unit?.hasSlice)) return undefined;
    let unit = this.#open();
    if (unit.kind === 'whole' && role === ROLE.slice && !isFirstSlice && !unit.hasSlice) unit = this.#missFirstSlice();
    if (unit.kind === 'whole' && unit.nalCount >= MAX_NALS) unit = this.#damage('access-unit-too-large');
    if (unit.kind === 'whole') return unit;
    if (role === ROLE.slice) unit.hasSlice = true;
    return undefined;
  }

  /** A NAL unit after a slice belongs to the same access unit or ends it. */
  #continueOrFinish(unit: Whole | Damaged, role: Role, isFirstSlice: boolean): void {
    const isMarked = unit.kind === 'whole' && unit.marked;
    if (role === ROLE.slice && !isFirstSlice) {
      if (!isMarked) return;
      this.#markers.noteFurtherSlice();
      unit.marked = false;
    } else if (role !== ROLE.suffix) {
      // Both fields of a frame start with a first slice on the same timestamp.
      const isSecondField = isFirstSlice && !isMarked && this.sets.mayHaveFields;
      if (!isSecondField) this.#finish(unit);
    }
  }

  /** Handles a further slice of a picture whose first slice is missing. */
  #missFirstSlice(): Damaged {
    const isRest = this.#packetTimestamp === this.#lastTimestamp && this.#lost === 0;
    // The picture was emitted at a marker that turns out to be on every slice; the rest of it is useless.
    if (isRest) this.#markers.noteFurtherSlice();
    return this.#damage(isRest ? 'slice-behind-marker' : 'first-slice-missing');
  }

  /** Returns the current access unit, a new one if there is none. */
  #open(): Whole | Damaged {
    this.#unit ??= {
      kind: 'whole',
      timestamp: this.#packetTimestamp,
      hasSlice: false,
      marked: false,
      nalCount: 0,
      randomAccess: false,
      recoveryCount: undefined,
      intra: true,
      bidirectional: false,
      ppsId: undefined,
    };
    return this.#unit;
  }

  #hasSpace(bytes: number): boolean {
    if (this.#writer.size + bytes + 4 <= MAX_ACCESS_UNIT_BYTES) return true;
    const fragments = this.#fragments;
    const damaged = this.#damage('access-unit-too-large');
    if (fragments?.kind === 'writing' && this.#roleOf(fragments.header) === ROLE.slice) damaged.hasSlice = true;
    this.#fragments = IGNORED;
    this.#writer.close(); // the block is as large as the access unit
    return false;
  }

  /** The NAL unit whose length is at `offset` is complete. */
  #endNal(unit: Whole, role: Role, offset: number): void {
    const writer = this.#writer;
    const start = writer.start + offset + 4;
    const end = writer.start + writer.size;
    if (role === ROLE.slice) {
      this.#noteSlice(unit, writer.block, start, end);
    } else if (role === ROLE.parameterSet) {
      const offer = this.sets.offer(writer.block, start, end);
      if (offer === 'invalid') countFault(this.#faults, 'parameter-set-invalid');
      if (offer !== 'changed') return writer.truncate(offset);
    } else if (role === ROLE.prefix) {
      this.#noteSignature(writer.block, start, end);
      unit.recoveryCount ??= this.#syntax.recoveryCount(writer.block, start, end);
    } else if (role === ROLE.unknown) {
      countFault(this.#faults, 'nal-unknown');
      return writer.truncate(offset);
    }
    unit.nalCount++;
  }

  #noteSignature(block: Buffer, start: number, end: number): void {
    const signature = signatureIn(block, start + this.#syntax.headerBytes, end);
    if (signature === undefined || end - start > MAX_SIGNATURE_BYTES || this.#signatures.length === MAX_SIGNATURES)
      return;
    const nal = Buffer.from(block.subarray(start, end));
    this.#signatures = [...this.#signatures, nal];
    if (signature === 'certificate') this.#certificate = nal;
  }

  #noteSlice(unit: Whole, block: Buffer, start: number, end: number): void {
    const slice = this.#slice;
    unit.hasSlice = true;
    if (!this.#syntax.readSlice(block, start, end, this.sets, slice)) {
      countFault(this.#faults, 'slice-header-invalid');
      return;
    }
    unit.randomAccess ||= slice.randomAccess;
    unit.intra &&= slice.intra;
    unit.bidirectional ||= slice.bidirectional;
    unit.ppsId ??= slice.ppsId;
  }

  /** Emits or drops the current access unit. */
  #finish(unit: Whole | Damaged): void {
    this.#lastTimestamp = unit.timestamp;
    if (unit.kind === 'damaged') return this.#drop();
    const isKeyPicture = this.#isKeyPicture(unit);
    this.sets.commit();
    if (unit.marked) this.#markers.noteEnd(isKeyPicture);
    const sets = isKeyPicture || this.sets.parameters === undefined ? this.sets.activate(unit.ppsId) : NOTHING;
    if (this.sets.parameters === undefined) {
      countFault(this.#faults, 'before-parameters');
      return this.#drop();
    }
    if (isKeyPicture) {
      this.#keyTimestamp = unit.timestamp;
      if (!unit.randomAccess) this.remark = unit.intra ? OPEN_GROUP : GRADUAL_REFRESH;
    }
    this.#insert(sets, this.#missingSignatures(isKeyPicture));
    this.#signatures = NOTHING;
    this.#orphans = NOTHING;
    const lostPackets = this.#lost;
    this.#lost = 0;
    this.#unit = undefined;
    this.#emit({
      data: this.#writer.finish(),
      timestamp: unit.timestamp,
      randomAccess: isKeyPicture,
      lostPackets,
      durationTicks: 0,
      bidirectional: unit.bidirectional,
    });
  }

  #drop(): void {
    this.discarded++;
    // The next one must report a loss, even if no packet was lost.
    this.#lost = Math.max(1, this.#lost);
    this.#signatures = NOTHING;
    this.#writer.discard();
    this.#unit = undefined;
  }

  #missingSignatures(isKeyPicture: boolean): readonly Buffer[] {
    const certificate = isKeyPicture ? this.#certificate : undefined;
    const has = certificate && [...this.#orphans, ...this.#signatures].some((nal) => nal.equals(certificate));
    return certificate && !has ? [certificate, ...this.#orphans] : this.#orphans;
  }

  /**
   * Prepends a parameter set that changed between key pictures and is not repeated at this one, because playback may start here, and
   * signatures.
   */
  #insert(sets: readonly Buffer[], signatures: readonly Buffer[]): void {
    if (sets.length + signatures.length === 0) return;
    const rest = Buffer.from(this.#writer.peek());
    this.#writer.discard();
    for (const nal of [...sets, ...signatures]) {
      this.#writer.appendU32(nal.length);
      this.#writer.append(nal, 0, nal.length);
    }
    this.#writer.append(rest, 0, rest.length);
  }

  /**
   * Whether the bytes contain start codes, which a NAL unit cannot. Checked only where cameras are known to leave them (after
   * parameter sets, SEI and delimiters, or before everything), and everywhere once one was found.
   */
  #isByteStream(bytes: Buffer, start: number, end: number, role: Role): boolean {
    if (role === ROLE.prefix && isWholeSei(bytes, start + this.#syntax.headerBytes, end)) return false;
    const isSuspicious =
      this.#sendsByteStreams ||
      role === ROLE.parameterSet ||
      role === ROLE.prefix ||
      role === ROLE.delimiter ||
      (bytes[start] === 0 && bytes[start + 1] === 0);
    return isSuspicious && hasStartCode(bytes, start, end);
  }

  #splitByteStream(bytes: Buffer, start: number, end: number): void {
    countFault(this.#faults, 'start-code-inside');
    this.#sendsByteStreams = true;
    const stream = bytes.subarray(start, end);
    let from = 0;
    while (from < stream.length) {
      const next = stream.indexOf(START_CODE, from);
      let to = next < 0 ? stream.length : next;
      while (to > from && stream[to - 1] === 0) to--;
      if (to > from) this.nal(stream, from, to);
      from = next < 0 ? stream.length : next + START_CODE.length;
    }
  }
}
