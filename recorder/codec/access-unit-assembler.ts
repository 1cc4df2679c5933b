// NAL units and fragments of H.264 or H.265 in, access units out: where one ends, what stays in it, when it is dropped.
//
// By the RFCs a marker bit ends an access unit. Cameras put the marker on parameter sets and SEI (Tapo TC70, Reolink
// Duo 2), on each slice, or nowhere (FLIR M400), and change the timestamp between parameter sets and their picture
// (Reolink RLC-822A). So:
// - a marker counts only behind a slice (and see MarkerPolicy);
// - a changed timestamp ends an access unit that has a slice; one that has none yet goes on with the new timestamp;
// - a delimiter, parameter set, SEI or first slice behind a slice begins the next one, also on the same timestamp.
//
// An access unit of which a part is missing is dropped whole, with the parameter sets in it; the next one that is
// emitted says how many packets were lost.

import type { AccessUnitCallback, Depacketizer } from './access-unit.ts';
import type { Faults } from './faults.ts';
import { MarkerPolicy } from './marker-policy.ts';
import { ROLE } from './nal-syntax.ts';
import type { NalSyntax, Role, SliceHeader } from './nal-syntax.ts';
import { ParameterSets } from './parameter-sets.ts';
import { MAX_ACCESS_UNIT_BYTES, SlabWriter } from './slab.ts';
import type { SlabPool } from './slab.ts';

const MAX_NALS = 4096;
/** SEI and parameter sets that wait for their picture. */
const MAX_PREFIX_BYTES = 256 * 1024;
/** From one gradual refresh that is taken as a place to begin to the next: 5 s of the usual clock rate. */
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

/** A NAL unit that arrives in fragments. */
const FRAGMENT = {
  none: 0,
  /** Its start came without payload (retina#115): the NAL unit begins with the next fragment. */
  awaited: 1,
  writing: 2,
  /** Not kept: of no use, or of a damaged access unit. */
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
  /** Access units dropped: damaged, or before the parameters were known. */
  discarded = 0;
  /** Of the last key picture that was none by its type. */
  remark: Depacketizer['remark'];

  readonly #syntax: NalSyntax;
  readonly #emit: AccessUnitCallback;
  readonly #faults: Faults;
  readonly #writer: SlabWriter;
  readonly #markers = new MarkerPolicy();
  readonly #slice: SliceHeader = { randomAccess: false, intra: false, bidirectional: false, ppsId: 0 };
  /** The camera has put byte streams with start codes into NAL units: look for them everywhere. */
  #sendsByteStreams = false;

  // The access unit in work.
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

  // The NAL unit in work.
  #nalOffset = 0;
  #fragment: (typeof FRAGMENT)[keyof typeof FRAGMENT] = FRAGMENT.none;
  #fragmentHeader = 0;
  #fragmentHeader2 = 0;
  /** The last packet of the NAL unit in work had the marker. */
  #fragmentMarked = false;

  /** Of the last key picture. */
  #keyTimestamp: number | undefined;
  #packetTimestamp = 0;
  #lost = 0;
  /** Of the last access unit that ended. */
  #lastTimestamp = -1;

  constructor(options: AssemblerOptions) {
    this.#syntax = options.syntax;
    this.#emit = options.emit;
    this.#faults = options.faults;
    this.#writer = new SlabWriter(options.pool);
    this.sets = new ParameterSets(options.syntax);
  }

  /** Begins a packet. `lost` packets before it are missing. */
  startPacket(timestamp: number, lost: number): void {
    this.#packetTimestamp = timestamp;
    if (lost > 0) this.#noteLoss(lost);
    if (this.#open && timestamp !== this.#timestamp) this.#changeTimestamp(timestamp);
  }

  /** Takes a whole NAL unit. */
  nal(bytes: Buffer, start: number, end: number): void {
    if (this.#fragment !== FRAGMENT.none) this.#interruptFragment();
    const role = this.#syntax.role(this.#syntax.nalType(bytes[start] as number));
    if (this.#isByteStream(bytes, start, end, role)) return this.#splitByteStream(bytes, start, end);
    if (end - start <= this.#syntax.headerBytes) {
      if (role !== ROLE.dropped) this.#faults.count('nal_without_content');
      return;
    }
    if (!this.#begin(role, bytes[start + this.#syntax.headerBytes] as number)) return;
    if (!this.#hasRoom(end - start)) return;
    this.#writer.appendU32(end - start);
    this.#writer.append(bytes, start, end);
    this.#endNal(role);
  }

  /** The first fragment of a NAL unit: its header (the second byte for H.265 only), then the bytes behind the header. */
  startFragments(header: number, header2: number, bytes: Buffer, start: number, end: number): void {
    if (this.#fragment !== FRAGMENT.none) this.#interruptFragment();
    this.#fragmentHeader = header;
    this.#fragmentHeader2 = header2;
    if (start === end) this.#fragment = FRAGMENT.awaited;
    else this.#beginFragments(bytes, start, end);
  }

  /** A further fragment. Its header only tells what was missed when the first one was; cameras vary it (Tiandy). */
  appendFragment(header: number, bytes: Buffer, start: number, end: number): void {
    if (this.#fragment === FRAGMENT.writing) {
      if (this.#hasRoom(end - start)) this.#writer.append(bytes, start, end);
    } else if (this.#fragment === FRAGMENT.awaited) {
      if (start < end) this.#beginFragments(bytes, start, end);
    } else if (this.#fragment === FRAGMENT.none) {
      this.#missStart(this.#syntax.role(this.#syntax.nalType(header)));
    }
  }

  /** The fragment before was the last one. */
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

  /** A packet of several NAL units ends inside the one that begins at `start`: only a slice is missed. */
  cut(bytes: Buffer, start: number): void {
    if (this.#syntax.role(this.#syntax.nalType(bytes[start] as number)) !== ROLE.slice) {
      this.#faults.count('aggregate_cut');
      return;
    }
    this.damage('aggregate_cut');
    this.#hasSlice = true;
  }

  /** What the camera sent makes no sense here: the access unit cannot be whole. */
  damage(fault: string): void {
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

  /** The stream is over: emits the access unit in work when it is whole. */
  flush(): void {
    if (this.#fragment !== FRAGMENT.none) this.#interruptFragment();
    if (!this.#open) return;
    // Without the marker that this camera sets, slices may be missing.
    if (this.#hasSlice && !this.#marked && this.#markers.seen) this.damage('ended_inside');
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
   * Pictures from a gradual refresh on become whole one by one. A stream that begins with one or has nothing else is
   * begun there, but rarely: what is looked at is then mostly far enough behind one.
   */
  get #mayBeginGradually(): boolean {
    return this.#keyTimestamp === undefined || Math.abs((this.#timestamp - this.#keyTimestamp) | 0) >= GRADUAL_TICKS;
  }

  #noteLoss(lost: number): void {
    if (this.#open) {
      if (this.#marked && !this.#markers.perSlice) this.#finish();
      else if (!this.#damaged) this.damage('lost_inside');
    }
    this.#fragment = FRAGMENT.none;
    this.#lost += lost;
  }

  #changeTimestamp(timestamp: number): void {
    if (this.#fragment !== FRAGMENT.none) this.#interruptFragment();
    if (this.#hasSlice || this.#damaged) return this.#finish();
    this.#timestamp = timestamp;
    if (this.#writer.size <= MAX_PREFIX_BYTES) return;
    this.#faults.count('prefix_too_large');
    this.#writer.discard();
    this.sets.rollback();
  }

  /** Something else comes where a further fragment was expected. No packet is missing. */
  #interruptFragment(): void {
    if (this.#fragment !== FRAGMENT.ignored && !this.#damaged) {
      if (this.#fragment === FRAGMENT.writing && this.#fragmentMarked) {
        // The marker tells that it was whole, only its end bit is missing.
        this.#faults.count('fu_without_end_bit');
        this.endFragments();
      } else {
        this.#noteSliceOf(this.#fragmentHeader);
        this.damage('fu_without_end');
      }
    }
    this.#fragment = FRAGMENT.none;
  }

  #missStart(role: Role): void {
    if (role === ROLE.slice || role === ROLE.parameterSet) {
      if (!this.#damaged) this.damage('fu_without_start');
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

  /** Decides what the NAL unit that begins means for the access unit in work; false when it is not to be written. */
  #begin(role: Role, firstByte: number): boolean {
    if (role === ROLE.unknown) this.#faults.count('nal_unknown');
    if (role === ROLE.unknown || role === ROLE.dropped) return false;
    // first_mb_in_slice is 0 (Exp-Golomb: one bit), or first_slice_segment_in_pic_flag.
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
    if (!this.#damaged && this.#nalCount >= MAX_NALS) this.damage('access_unit_too_large');
    if (this.#damaged) {
      if (role === ROLE.slice) this.#hasSlice = true;
      return false;
    }
    this.#nalOffset = this.#writer.size;
    return true;
  }

  /** Two fields of one frame are both first slices on the same timestamp. */
  get #mayBeSecondField(): boolean {
    return !this.#marked && this.sets.mayHaveFields;
  }

  /** A further slice of a picture whose beginning is not here. */
  #missFirstSlice(): void {
    const isRest = this.#packetTimestamp === this.#lastTimestamp && this.#lost === 0;
    // The picture was let go at a marker that turns out to be one of many; its rest is of no use.
    if (isRest) this.#markers.noteFurtherSlice();
    this.damage(isRest ? 'slice_behind_marker' : 'first_slice_missing');
  }

  #openAccessUnit(): void {
    if (this.#open) return;
    this.#open = true;
    this.#timestamp = this.#packetTimestamp;
  }

  #hasRoom(bytes: number): boolean {
    if (this.#writer.size + bytes + 4 <= MAX_ACCESS_UNIT_BYTES) return true;
    if (this.#fragment === FRAGMENT.writing) this.#noteSliceOf(this.#fragmentHeader);
    this.damage('access_unit_too_large');
    this.#fragment = FRAGMENT.ignored;
    this.#writer.close(); // Its block is as large.
    return false;
  }

  /** The NAL unit at `nalOffset` is whole. */
  #endNal(role: Role): void {
    const writer = this.#writer;
    const start = writer.start + this.#nalOffset + 4;
    const end = writer.start + writer.size;
    if (role === ROLE.slice) {
      this.#noteSlice(writer.block, start, end);
    } else if (role === ROLE.parameterSet) {
      const offer = this.sets.offer(writer.block, start, end);
      if (offer === 'invalid') this.#faults.count('parameter_set_invalid');
      if (offer !== 'changed') return writer.truncate(this.#nalOffset);
    } else if (role === ROLE.prefix) {
      this.#recoveryCount ??= this.#syntax.recoveryCount(writer.block, start, end);
    } else if (role === ROLE.unknown) {
      this.#faults.count('nal_unknown');
      return writer.truncate(this.#nalOffset);
    }
    this.#nalCount++;
  }

  #noteSlice(block: Buffer, start: number, end: number): void {
    const slice = this.#slice;
    this.#hasSlice = true;
    if (!this.#syntax.readSlice(block, start, end, this.sets, slice)) {
      this.#faults.count('slice_header_invalid');
      return;
    }
    this.#randomAccess ||= slice.randomAccess;
    this.#intra &&= slice.intra;
    this.#bidirectional ||= slice.bidirectional;
    this.#ppsId ??= slice.ppsId;
  }

  /** Lets the access unit in work go, or drops it. */
  #finish(): void {
    const isKeyPicture = this.#isKeyPicture;
    this.#lastTimestamp = this.#timestamp;
    if (this.#damaged) return this.#drop();
    this.sets.commit();
    if (this.#marked) this.#markers.noteEnd(isKeyPicture);
    if (isKeyPicture || this.sets.parameters === undefined) this.#insertSets(this.sets.activate(this.#ppsId));
    if (this.sets.parameters === undefined) {
      this.#faults.count('before_parameters');
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
    // The next one must say that something is missing, also where no packet was.
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

  /** A set that changed between key pictures and is not repeated at this one goes in front of it: files seek here. */
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
   * Whether start codes are inside, which no NAL unit can have. Looked for only where cameras are known to leave them:
   * behind parameter sets, SEI and delimiters, or in front of everything; and everywhere once one was found.
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
    this.#faults.count('start_code_inside');
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
