// Memory for media: depacketizers write each access unit once, and files and viewers read it there. Blocks of fixed size are
// shared by all cameras of a process and reference-counted: a block returns to the pool when its last access unit is released.
// Forgetting a release costs a reuse, never correctness: the block is then garbage collected.

import { assert } from '../../base/assert.ts';

/** Large enough for most key frames, small enough that twenty cameras do not waste much. */
export const BLOCK_BYTES = 256 * 1024;
/** For audio: two seconds. In a block of the other size, the last frame would keep the block occupied for half a minute. */
export const SMALL_BLOCK_BYTES = 16 * 1024;
/** No camera's pictures are this large. The limit protects memory from streams in which pictures never end. */
export const MAX_ACCESS_UNIT_BYTES = 8 * 1024 * 1024;
/** Maximum number of free blocks of each size; more are left to the garbage collector. */
const MAX_FREE_BLOCKS = 128;
/** After this many returns, blocks that have been free all the time are given up too: they were needed only for a peak. */
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
    if (--this.#holders === 0) this.#pool?.giveBack(this);
  }

  /** Whether so much is in use that nothing should wait in memory without need. */
  get isScarce(): boolean {
    return this.#pool?.isScarce ?? false;
  }
}

export class SlabPool {
  readonly #free = new FreeBlocks(BLOCK_BYTES);
  readonly #freeSmall = new FreeBlocks(SMALL_BLOCK_BYTES);
  readonly #plentyBytes: number;
  #usedBytes = 0;
  readonly #forgotten = new FinalizationRegistry<number>((bytes) => void (this.#usedBytes -= bytes));

  /** `plentyBytes`: with more in use, blocks are scarce. */
  constructor(plentyBytes = Infinity) {
    this.#plentyBytes = plentyBytes;
  }

  /** Bytes of all blocks that are held by somebody. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  get isScarce(): boolean {
    return this.#usedBytes > this.#plentyBytes;
  }

  /** A block of `blockBytes`, or of at least `minBytes`, with one holder. Blocks of unusual size are not pooled. */
  take(minBytes = 0, blockBytes = BLOCK_BYTES): Slab {
    assert(blockBytes === BLOCK_BYTES || blockBytes === SMALL_BLOCK_BYTES, 'blocks have one of two sizes');
    const buffer = minBytes > blockBytes ? Buffer.allocUnsafeSlow(minBytes) : this.#freeOf(blockBytes).take();
    this.#usedBytes += buffer.length;
    const slab = new Slab(buffer, this);
    this.#forgotten.register(slab, buffer.length, slab);
    return slab;
  }

  giveBack(slab: Slab): void {
    const { buffer } = slab;
    this.#forgotten.unregister(slab);
    this.#usedBytes -= buffer.length;
    if (buffer.length === BLOCK_BYTES || buffer.length === SMALL_BLOCK_BYTES) this.#freeOf(buffer.length).put(buffer);
  }

  get freeBlocks(): number {
    return this.#free.count + this.#freeSmall.count;
  }

  #freeOf(blockBytes: number): FreeBlocks {
    return blockBytes === SMALL_BLOCK_BYTES ? this.#freeSmall : this.#free;
  }
}

class FreeBlocks {
  readonly #bytes: number;
  #blocks: Buffer[] = [];
  /** The fewest free blocks since the last check. */
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

/** The blocks that one holder keeps from being reused; each counts once however often it is held. */
export class SlabHolds {
  readonly #counts = new Map<Slab, number>();
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** Total bytes of those `slabs` that are not held yet. */
  bytesOfNew(slabs: readonly Slab[]): number {
    let bytes = 0;
    for (let i = 0; i < slabs.length; i++) {
      const slab = slabs[i] as Slab;
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

  /** Returns the bytes of the slabs that are no longer held. */
  remove(slabs: readonly Slab[]): number {
    const before = this.#bytes;
    for (const slab of slabs) {
      const count = this.#counts.get(slab);
      assert(count !== undefined, 'a block is released that was not in use');
      if (count > 1) this.#counts.set(slab, count - 1);
      else {
        this.#counts.delete(slab);
        this.#bytes -= slab.buffer.length;
      }
    }
    return before - this.#bytes;
  }
}

/** Appends the bytes of access units; an access unit never spans two blocks. */
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

  /** Size of the current access unit in bytes. */
  get size(): number {
    return this.#end - this.#start;
  }

  /** Makes space for `bytes` more; moves the unfinished access unit to another block if this one is too small. */
  #reserve(bytes: number): Buffer {
    const slab = this.#slab;
    if (slab && this.#end + bytes <= slab.buffer.length) return slab.buffer;
    const size = this.size;
    // Twice the size if one block is not enough, so that a growing access unit is moved only a few times.
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

  /** Overwrites four bytes at `offset` of the unfinished access unit, for a length that is known only afterwards. */
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

  /** Truncates the unfinished access unit to `size` bytes. */
  truncate(size: number): void {
    assert(size <= this.size, 'truncate beyond the end');
    this.#end = this.#start + size;
  }

  /** The current block, which contains the unfinished access unit from `start` on; valid until something is appended. */
  get block(): Buffer {
    assert(this.#slab, 'nothing is being written');
    return this.#slab.buffer;
  }

  get start(): number {
    return this.#start;
  }

  /** The bytes of the unfinished access unit; valid until the next call. */
  peek(): Buffer {
    return this.#slab ? this.#slab.buffer.subarray(this.#start, this.#end) : Buffer.alloc(0);
  }

  /** Ends the access unit and returns it; the receiver holds the block and must release it once. */
  finish(): MediaData {
    const slab = this.#slab ?? this.#pool.take(0, this.#blockBytes);
    this.#slab = slab;
    slab.retain();
    const data: MediaData = { slab, offset: this.#start, size: this.size };
    this.#start = this.#end;
    return data;
  }

  /** Drops the unfinished access unit. */
  discard(): void {
    this.#end = this.#start;
  }

  /** Releases the current block; the writer can be used again. */
  close(): void {
    this.#slab?.release();
    this.#slab = undefined;
    this.#start = 0;
    this.#end = 0;
  }
}

/** The bytes of one access unit: `slab.buffer[offset, offset + size)`. Call `slab.retain()` to hold it longer. */
export interface MediaData {
  readonly slab: Slab;
  readonly offset: number;
  readonly size: number;
}
