// Assembles access units from NAL units and fragments of H.264 or H.265: decides where one ends, what it contains, and when it is
// dropped.
//
// According to the RFCs a marker bit ends an access unit. But cameras set it on parameter sets and SEI (Tapo TC70, Reolink Duo
// 2), on every slice, or never (FLIR M400), and change the timestamp between parameter sets and their picture (Reolink RLC-822A).
// Therefore:
// - a marker counts only after a slice (see also MarkerPolicy);
// - a changed timestamp ends an access unit that has a slice; one without a slice takes the new timestamp;
// - a delimiter, parameter set, SEI or first slice after a slice starts the next one, even with the same timestamp.
//
// An access unit with a missing part is dropped completely, including its parameter sets; the next one that is emitted says how
// many packets were lost.

import type { AccessUnitCallback, Depacketizer } from './access-unit.ts';
import type { Fault, Faults } from './faults.ts';
import { MarkerPolicy } from './marker-policy.ts';
import { ROLE } from './nal-syntax.ts';
import type { NalSyntax, Role, SliceHeader } from './nal-syntax.ts';
import { ParameterSets } from './parameter-sets.ts';
import { MAX_ACCESS_UNIT_BYTES, SlabWriter } from './slab.ts';
import type { SlabPool } from './slab.ts';

const MAX_NALS = 4096;
/** Limit for SEI and parameter sets before their picture. */
const MAX_PREFIX_BYTES = 256 * 1024;
/** The shortest time between two gradual refreshes that count as random access points: 5 s at the usual clock rate. */
const GRADUAL_TICKS = 5 * 90_000;
const OPEN_GROUP = {
  code: 'open-gop',
  message: 'key frames are no IDR pictures (open groups of pictures): Chromium may stop at them with an error',
};
const GRADUAL_REFRESH = {
  code: 'gradual-refresh',
  message: 'pictures are refreshed bit by bit, without key frames: the first ones of each file are not shown',
};
const START_CODE = Buffer.from([0, 0, 1]);

/** States of a NAL unit that arrives in fragments. */
const FRAGMENT = {
  none: 0,
  /** Its start had no payload (retina#115): the NAL unit starts with the next fragment. */
  awaited: 1,
  writing: 2,
  /** Not stored: useless, or part of a damaged access unit. */
  ignored: 3,
} as const;

export interface AssemblerOptions {
  readonly syntax: NalSyntax;
  readonly pool: SlabPool;
  readonly emit: AccessUnitCallback;
  readonly faults: Faults;
}

export class AccessUnitAssembler {
  readonly sets: ParameterSets;
  /** Access units dropped because they were damaged or came before the parameters were known. */
  discarded = 0;
  /** Set by the last key picture whose NAL unit type is not that of a key picture. */
  remark: Depacketizer['remark'];

  readonly #syntax: NalSyntax;
  readonly #emit: AccessUnitCallback;
  readonly #faults: Faults;
  readonly #writer: SlabWriter;
  readonly #markers = new MarkerPolicy();
  readonly #slice: SliceHeader = { randomAccess: false, intra: false, bidirectional: false, ppsId: 0 };
  /** The camera has sent a byte stream with start codes inside a NAL unit: check every one for it. */
  #sendsByteStreams = false;

  // State of the current access unit.
  #open = false;
  #damaged = false;
  #timestamp = 0;
  #hasSlice = false;
  #marked = false;
  #nalCount = 0;
  #randomAccess = false;
  #recoveryCount: number | undefined;
  #intra = true;
  #bidirectional = false;
  #ppsId: number | undefined;

  // State of the current NAL unit.
  #nalOffset = 0;
  #fragment: (typeof FRAGMENT)[keyof typeof FRAGMENT] = FRAGMENT.none;
  #fragmentHeader = 0;
  #fragmentHeader2 = 0;
  /** The last packet of the current NAL unit had the marker. */
  #fragmentMarked = false;

  /** Timestamp of the last key picture. */
  #keyTimestamp: number | undefined;
  #packetTimestamp = 0;
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
    if (this.#open && timestamp !== this.#timestamp) this.#changeTimestamp(timestamp);
  }

  /** Adds a complete NAL unit. */
  nal(bytes: Buffer, start: number, end: number): void {
    if (this.#fragment !== FRAGMENT.none) this.#interruptFragment();
    const role = this.#syntax.role(this.#syntax.nalType(bytes[start] as number));
    if (this.#isByteStream(bytes, start, end, role)) return this.#splitByteStream(bytes, start, end);
    if (end - start <= this.#syntax.headerBytes) {
      if (role !== ROLE.dropped) this.#faults.count('nal-without-content');
      return;
    }
    if (!this.#begin(role, bytes[start + this.#syntax.headerBytes] as number)) return;
    if (!this.#hasRoom(end - start)) return;
    this.#writer.appendU32(end - start);
    this.#writer.append(bytes, start, end);
    this.#endNal(role);
  }

  /** Starts a fragmented NAL unit with its header (the second byte for H.265 only) and the bytes after the header. */
  startFragments(header: number, header2: number, bytes: Buffer, start: number, end: number): void {
    if (this.#fragment !== FRAGMENT.none) this.#interruptFragment();
    this.#fragmentHeader = header;
    this.#fragmentHeader2 = header2;
    if (start === end) this.#fragment = FRAGMENT.awaited;
    else this.#beginFragments(bytes, start, end);
  }

  /** Adds a fragment. The header is used only if the first fragment was missed; some cameras vary it (Tiandy). */
  appendFragment(header: number, bytes: Buffer, start: number, end: number): void {
    if (this.#fragment === FRAGMENT.writing) {
      if (this.#hasRoom(end - start)) this.#writer.append(bytes, start, end);
    } else if (this.#fragment === FRAGMENT.awaited) {
      if (start < end) this.#beginFragments(bytes, start, end);
    } else if (this.#fragment === FRAGMENT.none) {
      this.#missStart(this.#syntax.role(this.#syntax.nalType(header)));
    }
  }

  /** The previous fragment was the last one. */
  endFragments(): void {
    const state = this.#fragment;
    this.#fragment = FRAGMENT.none;
    if (state !== FRAGMENT.writing) return;
    const writer = this.#writer;
    writer.patchU32(this.#nalOffset, writer.size - this.#nalOffset - 4);
    const role = this.#syntax.role(this.#syntax.nalType(this.#fragmentHeader));
    const start = writer.start + this.#nalOffset + 4;
    const end = writer.start + writer.size;
    if (!this.#isByteStream(writer.block, start, end, role)) return this.#endNal(role);
    const copy = Buffer.from(writer.block.subarray(start, end));
    writer.truncate(this.#nalOffset);
    this.#splitByteStream(copy, 0, copy.length);
  }

  /** A packet with several NAL units ends inside the one that starts at `start`; only a slice would be missed. */
  cut(bytes: Buffer, start: number): void {
    if (this.#syntax.role(this.#syntax.nalType(bytes[start] as number)) !== ROLE.slice) {
      this.#faults.count('aggregate-cut');
      return;
    }
    this.damage('aggregate-cut');
    this.#hasSlice = true;
  }

  /** The camera sent something invalid: the current access unit cannot be complete. */
  damage(fault: Fault): void {
    this.#faults.count(fault);
    if (!this.#open) this.#timestamp = this.#packetTimestamp;
    this.#open = true;
    this.#damaged = true;
    this.#marked = false;
    this.#fragment = FRAGMENT.none;
    this.#writer.discard();
    this.sets.rollback();
  }

  endPacket(marker: boolean): void {
    this.#fragmentMarked = marker;
    if (!marker || !this.#hasSlice) return;
    if (this.#fragment === FRAGMENT.writing || this.#fragment === FRAGMENT.awaited) return;
    if (this.#damaged) {
      if (!this.#markers.perSlice) this.#finish();
      return;
    }
    this.#marked = true;
    if (this.#markers.isEnd(this.#isKeyPicture)) this.#finish();
  }

  /** At the end of the stream: emits the current access unit if it is complete. */
  flush(): void {
    if (this.#fragment !== FRAGMENT.none) this.#interruptFragment();
    if (!this.#open) return;
    // This camera sets markers, and without one slices may be missing.
    if (this.#hasSlice && !this.#marked && !this.#damaged && this.#markers.seen) this.damage('ended-inside');
    if (!this.#hasSlice) {
      this.#writer.discard();
      this.sets.rollback();
    }
    if (this.#hasSlice) this.#finish();
    this.#reset();
  }

  close(): void {
    this.#reset();
    this.#fragment = FRAGMENT.none;
    this.sets.rollback();
    this.#writer.close();
  }

  get #isKeyPicture(): boolean {
    if (this.#randomAccess) return true;
    if (this.#recoveryCount === undefined) return false;
    return this.#intra || (this.#recoveryCount > 0 && this.#mayBeginGradually);
  }

  /**
   * After a gradual refresh pictures become complete bit by bit. A stream that starts with one, or has nothing else, may start
   * there. Such points are accepted rarely, so that playback mostly starts well after one.
   */
  get #mayBeginGradually(): boolean {
    return this.#keyTimestamp === undefined || Math.abs((this.#timestamp - this.#keyTimestamp) | 0) >= GRADUAL_TICKS;
  }

  #noteLoss(lost: number): void {
    if (this.#open) {
      if (this.#marked && !this.#markers.perSlice) this.#finish();
      else if (!this.#damaged) this.damage('lost-inside');
    }
    this.#fragment = FRAGMENT.none;
    this.#lost += lost;
  }

  #changeTimestamp(timestamp: number): void {
    if (this.#fragment !== FRAGMENT.none) this.#interruptFragment();
    if (this.#hasSlice || this.#damaged) return this.#finish();
    this.#timestamp = timestamp;
    if (this.#writer.size <= MAX_PREFIX_BYTES) return;
    this.#faults.count('prefix-too-large');
    this.#writer.discard();
    this.sets.rollback();
  }

  /** Something else arrived where a further fragment was expected, although no packet is missing. */
  #interruptFragment(): void {
    if (this.#fragment !== FRAGMENT.ignored && !this.#damaged) {
      if (this.#fragment === FRAGMENT.writing && this.#fragmentMarked) {
        // The marker shows that it was complete; only its end bit is missing.
        this.#faults.count('fragment-end-bit-missing');
        this.endFragments();
      } else {
        this.#noteSliceOf(this.#fragmentHeader);
        this.damage('fragment-without-end');
      }
    }
    this.#fragment = FRAGMENT.none;
  }

  #missStart(role: Role): void {
    if (role === ROLE.slice || role === ROLE.parameterSet) {
      if (!this.#damaged) this.damage('fragment-without-start');
      if (role === ROLE.slice) this.#hasSlice = true;
    }
    this.#fragment = FRAGMENT.ignored;
  }

  #noteSliceOf(header: number): void {
    if (this.#syntax.role(this.#syntax.nalType(header)) === ROLE.slice) this.#hasSlice = true;
  }

  #beginFragments(bytes: Buffer, start: number, end: number): void {
    const { headerBytes } = this.#syntax;
    this.#fragment = FRAGMENT.ignored;
    const firstByte = bytes[start] as number;
    const isByteStream = this.#fragmentHeader === 0 && (headerBytes === 1 ? firstByte : this.#fragmentHeader2) === 0;
    if (isByteStream) {
      if (this.#damaged) return;
      this.#openAccessUnit();
      this.#nalOffset = this.#writer.size;
    } else if (!this.#begin(this.#syntax.role(this.#syntax.nalType(this.#fragmentHeader)), firstByte)) {
      return;
    }
    if (!this.#hasRoom(end - start + headerBytes)) return;
    this.#fragment = FRAGMENT.writing;
    this.#writer.appendU32(0);
    this.#writer.appendByte(this.#fragmentHeader);
    if (headerBytes === 2) this.#writer.appendByte(this.#fragmentHeader2);
    this.#writer.append(bytes, start, end);
  }

  /** Decides what a new NAL unit means for the current access unit; false if it must not be stored. */
  #begin(role: Role, firstByte: number): boolean {
    if (role === ROLE.unknown) this.#faults.count('nal-unknown');
    if (role === ROLE.unknown || role === ROLE.dropped) return false;
    // first_mb_in_slice is 0 (one bit in Exp-Golomb code), or first_slice_segment_in_pic_flag is set.
    const isFirstSlice = role === ROLE.slice && (firstByte & 0x80) !== 0;
    if (this.#hasSlice) {
      if (role === ROLE.slice && !isFirstSlice) {
        if (this.#marked) this.#markers.noteFurtherSlice();
        this.#marked = false;
      } else if (role !== ROLE.suffix && !(isFirstSlice && this.#mayBeSecondField)) {
        this.#finish();
      }
    }
    if (role === ROLE.delimiter || (role === ROLE.suffix && !this.#hasSlice)) return false;
    this.#openAccessUnit();
    if (!this.#damaged && role === ROLE.slice && !isFirstSlice && !this.#hasSlice) this.#missFirstSlice();
    if (!this.#damaged && this.#nalCount >= MAX_NALS) this.damage('access-unit-too-large');
    if (this.#damaged) {
      if (role === ROLE.slice) this.#hasSlice = true;
      return false;
    }
    this.#nalOffset = this.#writer.size;
    return true;
  }

  /** Both fields of a frame start with a first slice on the same timestamp. */
  get #mayBeSecondField(): boolean {
    return !this.#marked && this.sets.mayHaveFields;
  }

  /** Handles a further slice of a picture whose first slice is missing. */
  #missFirstSlice(): void {
    const isRest = this.#packetTimestamp === this.#lastTimestamp && this.#lost === 0;
    // The picture was emitted at a marker that turns out to be on every slice; the rest of it is useless.
    if (isRest) this.#markers.noteFurtherSlice();
    this.damage(isRest ? 'slice-behind-marker' : 'first-slice-missing');
  }

  #openAccessUnit(): void {
    if (this.#open) return;
    this.#open = true;
    this.#timestamp = this.#packetTimestamp;
  }

  #hasRoom(bytes: number): boolean {
    if (this.#writer.size + bytes + 4 <= MAX_ACCESS_UNIT_BYTES) return true;
    if (this.#fragment === FRAGMENT.writing) this.#noteSliceOf(this.#fragmentHeader);
    this.damage('access-unit-too-large');
    this.#fragment = FRAGMENT.ignored;
    this.#writer.close(); // the block is as large as the access unit
    return false;
  }

  /** The NAL unit at `nalOffset` is complete. */
  #endNal(role: Role): void {
    const writer = this.#writer;
    const start = writer.start + this.#nalOffset + 4;
    const end = writer.start + writer.size;
    if (role === ROLE.slice) {
      this.#noteSlice(writer.block, start, end);
    } else if (role === ROLE.parameterSet) {
      const offer = this.sets.offer(writer.block, start, end);
      if (offer === 'invalid') this.#faults.count('parameter-set-invalid');
      if (offer !== 'changed') return writer.truncate(this.#nalOffset);
    } else if (role === ROLE.prefix) {
      this.#recoveryCount ??= this.#syntax.recoveryCount(writer.block, start, end);
    } else if (role === ROLE.unknown) {
      this.#faults.count('nal-unknown');
      return writer.truncate(this.#nalOffset);
    }
    this.#nalCount++;
  }

  #noteSlice(block: Buffer, start: number, end: number): void {
    const slice = this.#slice;
    this.#hasSlice = true;
    if (!this.#syntax.readSlice(block, start, end, this.sets, slice)) {
      this.#faults.count('slice-header-invalid');
      return;
    }
    this.#randomAccess ||= slice.randomAccess;
    this.#intra &&= slice.intra;
    this.#bidirectional ||= slice.bidirectional;
    this.#ppsId ??= slice.ppsId;
  }

  /** Emits or drops the current access unit. */
  #finish(): void {
    const isKeyPicture = this.#isKeyPicture;
    this.#lastTimestamp = this.#timestamp;
    if (this.#damaged) return this.#drop();
    this.sets.commit();
    if (this.#marked) this.#markers.noteEnd(isKeyPicture);
    if (isKeyPicture || this.sets.parameters === undefined) this.#insertSets(this.sets.activate(this.#ppsId));
    if (this.sets.parameters === undefined) {
      this.#faults.count('before-parameters');
      return this.#drop();
    }
    if (isKeyPicture) {
      this.#keyTimestamp = this.#timestamp;
      if (!this.#randomAccess) this.remark = this.#intra ? OPEN_GROUP : GRADUAL_REFRESH;
    }
    const unit = {
      data: this.#writer.finish(),
      timestamp: this.#timestamp,
      randomAccess: isKeyPicture,
      lostPackets: this.#lost,
      durationTicks: 0,
      bidirectional: this.#bidirectional,
    };
    this.#lost = 0;
    this.#reset();
    this.#emit(unit);
  }

  #drop(): void {
    this.discarded++;
    // The next one must report a loss, even if no packet was lost.
    this.#lost = Math.max(1, this.#lost);
    this.#writer.discard();
    this.#reset();
  }

  #reset(): void {
    this.#open = false;
    this.#damaged = false;
    this.#hasSlice = false;
    this.#marked = false;
    this.#nalCount = 0;
    this.#randomAccess = false;
    this.#recoveryCount = undefined;
    this.#intra = true;
    this.#bidirectional = false;
    this.#ppsId = undefined;
  }

  /**
   * Prepends a parameter set that changed between key pictures and is not repeated at this one, because playback may start here.
   */
  #insertSets(nals: readonly Buffer[]): void {
    if (nals.length === 0) return;
    const rest = Buffer.from(this.#writer.peek());
    this.#writer.discard();
    for (const nal of nals) {
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
    const isSuspicious =
      this.#sendsByteStreams ||
      role === ROLE.parameterSet ||
      role === ROLE.prefix ||
      role === ROLE.delimiter ||
      (bytes[start] === 0 && bytes[start + 1] === 0);
    return isSuspicious && bytes.subarray(start, end).includes(START_CODE);
  }

  #splitByteStream(bytes: Buffer, start: number, end: number): void {
    this.#faults.count('start-code-inside');
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
