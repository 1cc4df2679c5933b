// Memory for media: depacketizers write each access unit once, at the place from which file and viewers read it.
// Fixed-size blocks are shared by all cameras of a process and counted: the pool gets a block back when the last
// access unit in it is released. A holder that forgets to release costs a reuse, never correctness: the block is
// then left to the garbage collector.

import { assert } from '../../base/assert.ts';

/** Large enough for most key frames, small enough that twenty cameras do not hold much unused room. */
export const BLOCK_BYTES = 256 * 1024;
/** For audio: two seconds of it. A block of the other size would be held for half a minute because of its last frame. */
export const SMALL_BLOCK_BYTES = 16 * 1024;
/** Free blocks of each size kept for reuse; more are left to the garbage collector. */
const MAX_FREE_BLOCKS = 128;

export class Slab {
  readonly buffer: Buffer;
  readonly #pool: SlabPool | undefined;
  #holders = 1;

  constructor(buffer: Buffer, pool: SlabPool | undefined) {
    this.buffer = buffer;
    this.#pool = pool;
  }

  retain(): void {
    assert(this.#holders > 0, 'slab retained after its last release');
    this.#holders++;
  }

  release(): void {
    assert(this.#holders > 0, 'slab released too often');
    if (--this.#holders === 0) this.#pool?.giveBack(this.buffer);
  }
}

export class SlabPool {
  readonly #free: Buffer[] = [];
  readonly #freeSmall: Buffer[] = [];

  /** A block of `blockBytes`, or at least `minBytes`, with one holder. Blocks of unusual size are not pooled. */
  take(minBytes = 0, blockBytes = BLOCK_BYTES): Slab {
    assert(blockBytes === BLOCK_BYTES || blockBytes === SMALL_BLOCK_BYTES, 'blocks have one of two sizes');
    if (minBytes > blockBytes) return new Slab(Buffer.allocUnsafeSlow(minBytes), undefined);
    return new Slab(this.#freeOf(blockBytes).pop() ?? Buffer.allocUnsafeSlow(blockBytes), this);
  }

  giveBack(buffer: Buffer): void {
    const free = this.#freeOf(buffer.length);
    if (free.length < MAX_FREE_BLOCKS) free.push(buffer);
  }

  get freeBlocks(): number {
    return this.#free.length + this.#freeSmall.length;
  }

  #freeOf(blockBytes: number): Buffer[] {
    return blockBytes === SMALL_BLOCK_BYTES ? this.#freeSmall : this.#free;
  }
}

/** Appends the bytes of one access unit after another; an access unit never spans two blocks. */
export class SlabWriter {
  readonly #pool: SlabPool;
  readonly #blockBytes: number;
  #slab: Slab | undefined;
  #start = 0;
  #end = 0;

  constructor(pool: SlabPool, blockBytes: number = BLOCK_BYTES) {
    this.#pool = pool;
    this.#blockBytes = blockBytes;
  }

  /** Bytes in the access unit that is being written. */
  get size(): number {
    return this.#end - this.#start;
  }

  /** Makes room for `bytes` more, moving the unfinished access unit to another block when this one is too small. */
  #reserve(bytes: number): Buffer {
    const slab = this.#slab;
    if (slab && this.#end + bytes <= slab.buffer.length) return slab.buffer;
    const size = this.size;
    // Twice the size where one block is not enough: a growing access unit is moved only a few times.
    const next = this.#pool.take(size + bytes > this.#blockBytes ? (size + bytes) * 2 : 0, this.#blockBytes);
    if (slab) {
      slab.buffer.copy(next.buffer, 0, this.#start, this.#end);
      slab.release();
    }
    this.#slab = next;
    this.#start = 0;
    this.#end = size;
    return next.buffer;
  }

  append(source: Buffer, start: number, end: number): void {
    const target = this.#reserve(end - start);
    source.copy(target, this.#end, start, end);
    this.#end += end - start;
  }

  appendByte(value: number): void {
    const target = this.#reserve(1);
    target[this.#end++] = value;
  }

  appendU32(value: number): void {
    const target = this.#reserve(4);
    target.writeUInt32BE(value, this.#end);
    this.#end += 4;
  }

  /** Overwrites four bytes at `offset` of the unfinished access unit, as for a length known only afterwards. */
  patchU32(offset: number, value: number): void {
    assert(this.#slab && offset + 4 <= this.size, 'patch outside the access unit');
    this.#slab.buffer.writeUInt32BE(value, this.#start + offset);
  }

  /** Cuts the unfinished access unit back to `size` bytes. */
  truncate(size: number): void {
    assert(size <= this.size, 'truncate beyond the end');
    this.#end = this.#start + size;
  }

  /** The block in work, which holds the unfinished access unit from `start` on; valid until something is appended. */
  get block(): Buffer {
    assert(this.#slab, 'nothing is being written');
    return this.#slab.buffer;
  }

  get start(): number {
    return this.#start;
  }

  /** The unfinished access unit's bytes; valid until the next call. */
  peek(): Buffer {
    return this.#slab ? this.#slab.buffer.subarray(this.#start, this.#end) : Buffer.alloc(0);
  }

  /** Ends the access unit and hands it over; the receiver holds the block and must release it once. */
  finish(): MediaData {
    const slab = this.#slab ?? this.#pool.take(0, this.#blockBytes);
    this.#slab = slab;
    slab.retain();
    const data: MediaData = { slab, offset: this.#start, size: this.size };
    this.#start = this.#end;
    return data;
  }

  /** Forgets the unfinished access unit. */
  discard(): void {
    this.#end = this.#start;
  }

  /** Lets go of the current block; the writer can be used again. */
  close(): void {
    this.#slab?.release();
    this.#slab = undefined;
    this.#start = 0;
    this.#end = 0;
  }
}

/** The bytes of one access unit: `slab.buffer[offset, offset + size)`. Holding it longer takes `slab.retain()`. */
export interface MediaData {
  readonly slab: Slab;
  readonly offset: number;
  readonly size: number;
}
