// A file at another holder, read in blocks over requests for ranges. A few blocks are kept, so that samples are read only
// once, and a reader needs little memory, however large the file is. Blocks that follow one another are requested ahead:
// with one at a time, a link with a delay of 10 ms would carry 25 MB/s at most.

import type { PlayedFile } from './archive-file.ts';

/** The holder of a file stopped sending it. */
export class HolderLost extends Error {}
/** The holder no longer has the file. */
export class FileGone extends HolderLost {}

const BLOCK_BYTES = 256 * 1024;
const BLOCKS_AHEAD = 2;
const KEPT_BLOCKS = 2 + BLOCKS_AHEAD;

/** The bytes of a file in [from, to). Rejects if they cannot be had. */
type ReadRange = (from: number, to: number) => Promise<Buffer>;

export class RemoteFile implements PlayedFile {
  readonly sizeBytes: number;
  readonly #readRange: ReadRange;
  /** By number, the least recently used first. */
  readonly #blocks = new Map<number, Promise<Buffer>>();
  /** The number of the last block that was read. */
  #last = -1;

  constructor(sizeBytes: number, readRange: ReadRange) {
    this.sizeBytes = sizeBytes;
    this.#readRange = readRange;
  }

  readonly read = async (offset: number, length: number): Promise<Buffer> => {
    const buffer = Buffer.allocUnsafe(length);
    return buffer.subarray(0, await this.readInto(buffer, offset));
  };

  /** Fills `buffer` from `position` on; resolves to the bytes read, fewer only at the end of the file. */
  async readInto(buffer: Buffer, position: number, length = buffer.length): Promise<number> {
    const end = Math.min(position + length, this.sizeBytes);
    let at = position;
    while (at < end) {
      const number = Math.floor(at / BLOCK_BYTES);
      const block = await this.#block(number);
      const start = at - number * BLOCK_BYTES;
      const count = block.copy(buffer, at - position, start, Math.min(block.length, start + end - at));
      if (count === 0) throw new HolderLost('the holder of the file sent less than the file has');
      at += count;
    }
    return Math.max(0, at - position);
  }

  #block(number: number): Promise<Buffer> {
    const block = this.#requested(number);
    const lastAhead = number === this.#last + 1 ? number + BLOCKS_AHEAD : number;
    this.#last = number;
    for (let ahead = number + 1; ahead <= lastAhead && ahead * BLOCK_BYTES < this.sizeBytes; ahead++) {
      // Its reader, if it gets one, learns of a failure.
      this.#requested(ahead).catch(() => {});
    }
    return block;
  }

  #requested(number: number): Promise<Buffer> {
    const from = number * BLOCK_BYTES;
    const block =
      this.#blocks.get(number) ??
      this.#readRange(from, Math.min(from + BLOCK_BYTES, this.sizeBytes)).catch((err: unknown) => {
        this.#blocks.delete(number);
        throw new HolderLost('the holder of the file does not send it', { cause: err });
      });
    this.#blocks.delete(number);
    this.#blocks.set(number, block);
    const [oldest] = this.#blocks.keys();
    if (this.#blocks.size > KEPT_BLOCKS) this.#blocks.delete(oldest as number);
    return block;
  }
}
