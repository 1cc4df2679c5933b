// Memory for media: depacketizers write each access unit once, at the place from which file and viewers read it.
// Fixed-size blocks are shared by all cameras of a process and counted: the pool gets a block back when the last
// access unit in it is released. A holder that forgets to release costs a reuse, never correctness: the block is
// then left to the garbage collector.

import { assert } from '../../base/assert.ts';

/** Large enough for most key frames, small enough that twenty cameras do not hold much unused room. */
export const BLOCK_BYTES = 256 * 1024;
/** For audio: two seconds of it. A block of the other size would be held for half a minute because of its last frame. */
export const SMALL_BLOCK_BYTES = 16 * 1024;
/** No camera's picture is as large; a stream without ends must not fill the memory. */
export const MAX_ACCESS_UNIT_BYTES = 8 * 1024 * 1024;
/** Free blocks of each size kept for reuse; more are left to the garbage collector. */
const MAX_FREE_BLOCKS = 128;
/** After so many came back, those that were free all the while are left to it as well: a rush needed them, once. */
const LOOK_EVERY = 4096;

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
  readonly #free = new FreeBlocks(BLOCK_BYTES);
  readonly #freeSmall = new FreeBlocks(SMALL_BLOCK_BYTES);

  /** A block of `blockBytes`, or at least `minBytes`, with one holder. Blocks of unusual size are not pooled. */
  take(minBytes = 0, blockBytes = BLOCK_BYTES): Slab {
    assert(blockBytes === BLOCK_BYTES || blockBytes === SMALL_BLOCK_BYTES, 'blocks have one of two sizes');
    if (minBytes > blockBytes) return new Slab(Buffer.allocUnsafeSlow(minBytes), undefined);
    return new Slab(this.#freeOf(blockBytes).take(), this);
  }

  giveBack(buffer: Buffer): void {
    this.#freeOf(buffer.length).put(buffer);
  }

  get freeBlocks(): number {
    return this.#free.count + this.#freeSmall.count;
  }

  #freeOf(blockBytes: number): FreeBlocks {
    return blockBytes === SMALL_BLOCK_BYTES ? this.#freeSmall : this.#free;
  }
}

/** Blocks of one size that nobody holds. */
class FreeBlocks {
  readonly #bytes: number;
  #blocks: Buffer[] = [];
  /** The fewest since the last look. */
  #least = 0;
  #returns = 0;

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  get count(): number {
    return this.#blocks.length;
  }

  take(): Buffer {
    const block = this.#blocks.pop();
    this.#least = Math.min(this.#least, this.#blocks.length);
    return block ?? Buffer.allocUnsafeSlow(this.#bytes);
  }

  put(block: Buffer): void {
    if (this.#blocks.length < MAX_FREE_BLOCKS) this.#blocks.push(block);
    if (++this.#returns % LOOK_EVERY !== 0) return;
    this.#blocks = this.#blocks.slice(this.#least);
    this.#least = this.#blocks.length;
  }
}

/** The blocks that one holder keeps from being used again, each counted once however often it is held. */
export class SlabHolds {
  readonly #counts = new Map<Slab, number>();
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** Bytes of those in `slabs` that are not held yet. */
  bytesOfNew(slabs: readonly Slab[]): number {
    let bytes = 0;
    for (const [i, slab] of slabs.entries()) {
      if (!this.#counts.has(slab) && slabs.indexOf(slab) === i) bytes += slab.buffer.length;
    }
    return bytes;
  }

  add(slabs: readonly Slab[]): void {
    for (const slab of slabs) {
      const count = this.#counts.get(slab) ?? 0;
      if (count === 0) this.#bytes += slab.buffer.length;
      this.#counts.set(slab, count + 1);
    }
  }

  /** Returns the bytes of those that are not held any more. */
  remove(slabs: readonly Slab[]): number {
    const before = this.#bytes;
    for (const slab of slabs) {
      const count = this.#counts.get(slab);
      assert(count !== undefined, 'a block is let go of that was not held');
      if (count > 1) this.#counts.set(slab, count - 1);
      else {
        this.#counts.delete(slab);
        this.#bytes -= slab.buffer.length;
      }
    }
    return before - this.#bytes;
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

  /** Puts bytes before the unfinished access unit. */
  prepend(bytes: Buffer): void {
    const { size } = this;
    this.append(bytes, 0, bytes.length);
    this.block.copyWithin(this.#start + bytes.length, this.#start, this.#start + size);
    bytes.copy(this.block, this.#start);
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
