// Bytes of a file at another holder that are read one after the other, with one request: no piece waits for the delay of the link.

import type { Readable } from 'node:stream';
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
  readonly #open: OpenRange;
  /** Where the last piece ends. */
  readonly #to: number;
  readonly #clock: Clock;
  #body: { readonly stream: Readable; readonly chunks: AsyncIterator<Buffer> } | undefined;
  /** The position of `#rest`, which was received and not read yet. */
  #at = 0;
  #rest = NOTHING;
  /** Pieces are requested before the ones before them are here. */
  readonly turns = new Turns(1);

  constructor(open: OpenRange, to: number, clock: Clock) {
    this.#open = open;
    this.#to = to;
    this.#clock = clock;
  }

  /** Fills the start of `buffer`; what lies before `position` is skipped. After it has rejected with HolderLost, it asks again. */
  async readInto(buffer: Buffer, position: number, length: number): Promise<void> {
    const late = this.#clock.after(PIECE_MS, () => this.close());
    try {
      if (!this.#body || position < this.#at) await this.#begin(position);
      for (const end of [position, position + length]) {
        while (this.#at < end) {
          if (this.#rest.length === 0) this.#rest = (await this.#next()) ?? lost('the holder of the file ends early');
          const piece = this.#rest.subarray(0, end - this.#at);
          if (this.#at >= position) piece.copy(buffer, this.#at - position);
          this.#at += piece.length;
          this.#rest = this.#rest.subarray(piece.length);
        }
      }
      // The connection is free for others when the end of the answer was read.
      if (this.#at >= this.#to && (this.#rest.length > 0 || (await this.#next())))
        lost('the holder of the file sends more than the range');
    } catch (err) {
      this.close();
      throw err instanceof HolderLost ? err : new HolderLost('the holder does not send the file', { cause: err });
    } finally {
      late.cancel();
    }
  }

  close(): void {
    this.#body?.stream.destroy();
    this.#body = undefined;
  }

  async #begin(position: number): Promise<void> {
    this.close();
    const stream = await this.#open({ from: position, to: this.#to });
    stream.on('error', () => {}); // the code that reads learns of it
    this.#body = { stream, chunks: stream[Symbol.asyncIterator]() };
    this.#at = position;
    this.#rest = NOTHING;
  }

  async #next(): Promise<Buffer | undefined> {
    const next = await this.#body?.chunks.next();
    return next?.done ? undefined : next?.value;
  }
}

/** The bytes in a range. Rejects with HolderLost. */
export async function readRange(open: OpenRange, { from, to }: ByteRange, clock: Clock): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(to - from);
  await new RemoteRun(open, to, clock).readInto(buffer, from, buffer.length);
  return buffer;
}

function lost(why: string): never {
  throw new HolderLost(why);
}
