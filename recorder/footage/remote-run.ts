// Bytes of a file at another holder that are read one after the other, with one request: no piece waits for the delay of the link.

import type { Readable } from 'node:stream';
import { quietly } from '../../base/error.ts';
import type { Clock } from '../../base/clock.ts';
import { Turns } from '../../base/turns.ts';
import type { ByteRange } from './holder.ts';
import { HolderLost } from './remote-file.ts';

/** Longest time for one piece. */
const PIECE_MS = 10_000;
const NOTHING: Buffer = Buffer.alloc(0);

/** Requests bytes of the file. Rejects with HolderLost. */
type OpenRange = (range: ByteRange) => Promise<Readable>;

export class RemoteRun {
  readonly range: ByteRange;
  readonly #open: OpenRange;
  readonly #clock: Clock;
  #body: Promise<{ readonly stream: Readable; readonly chunks: AsyncIterator<Buffer> }> | undefined;
  /** The position of `#rest`, which was received and not read yet. */
  #at = 0;
  #rest = NOTHING;
  /** Pieces are requested before the ones before them are here. */
  readonly turns = new Turns(1);

  /** Asks at once. */
  constructor(open: OpenRange, range: ByteRange, clock: Clock) {
    this.range = range;
    this.#open = open;
    this.#clock = clock;
    this.#begin(range.from);
  }

  /** Fills the start of `buffer`; what lies before `position` is skipped. After it has rejected with HolderLost, it asks again. */
  async readInto(buffer: Buffer, position: number, length: number): Promise<void> {
    const late = this.#clock.after(PIECE_MS, () => this.close());
    try {
      if (!this.#body || position < this.#at) this.#begin(position);
      for (const end of [position, position + length]) {
        while (this.#at < end) {
          if (this.#rest.length === 0) this.#rest = (await this.#next()) ?? lost('the holder of the file ends early');
          const piece = this.#rest.subarray(0, end - this.#at);
          if (this.#at >= position) piece.copy(buffer, this.#at - position);
          this.#at += piece.length;
          this.#rest = this.#rest.subarray(piece.length);
          if (this.#rest.length === 0) release(piece);
        }
      }
      // The connection is free for others when the end of the answer was read.
      if (this.#at >= this.range.to && (this.#rest.length > 0 || (await this.#next())))
        lost('the holder of the file sends more than the range');
    } catch (err) {
      this.close();
      throw err instanceof HolderLost ? err : new HolderLost('the holder does not send the file', { cause: err });
    } finally {
      late.cancel();
    }
  }

  close(): void {
    void quietly(this.#body?.then(({ stream }) => stream.destroy()));
    this.#body = undefined;
  }

  #begin(position: number): void {
    this.close();
    this.#body = this.#open({ from: position, to: this.range.to }).then((stream) => {
      stream.on('error', () => {}); // the code that reads learns of it
      return { stream, chunks: stream[Symbol.asyncIterator]() };
    });
    void quietly(this.#body);
    this.#at = position;
    this.#rest = NOTHING;
  }

  async #next(): Promise<Buffer | undefined> {
    const next = await (await this.#body)?.chunks.next();
    return next?.done ? undefined : next?.value;
  }
}

/** The bytes in a range. Rejects with HolderLost. */
export async function readRange(open: OpenRange, range: ByteRange, clock: Clock): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(range.to - range.from);
  await new RemoteRun(open, range, clock).readInto(buffer, range.from, buffer.length);
  return buffer;
}

/**
 * Returns the memory of a piece at once, if nothing else lies in it. Pieces have 16 KiB: collecting them as garbage would take longer than
 * their decryption.
 */
function release({ buffer, byteLength }: Buffer): void {
  if (byteLength === buffer.byteLength) (buffer as ArrayBuffer).transfer(0);
}

function lost(why: string): never {
  throw new HolderLost(why);
}
