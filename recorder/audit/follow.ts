// Reads the lines of the audit forward, from a known line on, over all of its files: the files are the queue of what is sent
// to collectors.

import type { Log } from '../../base/log.ts';
import { BLOCK_BYTES, NO_LINE, filesOf, openFrom, type ChainEnd } from './files.ts';
import { sentLineOf, type SentLine } from './sent-line.ts';

export interface NextLines {
  /** In their order, at most a block of them; empty if there are no further lines. */
  readonly lines: readonly SentLine[];
  /** Whether further lines are probably there. */
  readonly more: boolean;
}

const NOTHING: NextLines = { lines: [], more: false };
const START: ChainEnd = { n: 0, sha256: NO_LINE };

export class Follower {
  readonly #directory: string;
  readonly #log: Log;
  /** The last line that was taken. */
  #end: ChainEnd;
  /** The number of the first line of the file that is read, and the offset in it; undefined: it is not known yet. */
  #place: { readonly first: number; offset: number } | undefined;
  /** The last line that was read, taken or not. */
  #read: ChainEnd = START;

  /** Continues after the line `end`. */
  constructor(directory: string, end: ChainEnd | undefined, log: Log) {
    this.#directory = directory;
    this.#end = end ?? START;
    this.#log = log;
  }

  /** Throws errors of the file system. */
  async next(): Promise<NextLines> {
    for (;;) {
      const firsts = (await filesOf(this.#directory)).toReversed();
      this.#place ??= this.#begin(firsts);
      if (!this.#place) return NOTHING;
      const { first, offset } = this.#place;
      await using file = await openFrom(this.#directory, first);
      if (!file) {
        // It was removed: its lines are too old, or too many.
        this.#place = undefined;
        return NOTHING;
      }
      const { buffer, bytesRead } = await file.read(Buffer.alloc(BLOCK_BYTES), 0, BLOCK_BYTES, offset);
      const length = buffer.subarray(0, bytesRead).lastIndexOf(10) + 1;
      if (length === 0) {
        if (bytesRead === BLOCK_BYTES) throw new Error(`the file from line ${first} on has a line of more than 64 KiB`);
        // The list is older than the end that was read: a file that was in it gets no further line when a later one was, too.
        const later = firsts.find((one) => one > first);
        if (later === undefined && this.#read.n >= this.#end.n) return NOTHING;
        if (later === undefined) this.#restart();
        else this.#place = { first: later, offset: 0 };
        continue;
      }
      this.#place.offset += length;
      const lines = this.#take(buffer.toString('utf8', 0, length - 1).split('\n'));
      if (lines === undefined) this.#restart();
      else if (lines.length > 0) return { lines, more: bytesRead === BLOCK_BYTES || first !== firsts.at(-1) };
    }
  }

  #begin(firsts: readonly number[]): { first: number; offset: number } | undefined {
    const first = firsts.findLast((one) => one <= this.#end.n + 1) ?? firsts[0];
    if (first === undefined) return undefined;
    this.#read = { n: first - 1, sha256: NO_LINE };
    return { first, offset: 0 };
  }

  /** The lines after the last one that was taken; undefined if they do not follow from it. */
  #take(texts: readonly string[]): readonly SentLine[] | undefined {
    const lines: SentLine[] = [];
    for (const text of texts) {
      const line = sentLineOf(text, this.#read);
      this.#read = { n: line.n, sha256: line.id };
      if (line.n <= this.#end.n) continue;
      const isNext = line.n === this.#end.n + 1;
      if (isNext && this.#end.n > 0 && line.prev !== undefined && line.prev !== this.#end.sha256) return undefined;
      if (!isNext) {
        const missing = { from: this.#end.n + 1, to: line.n - 1 };
        this.#log.warn(missing, 'lines of the audit were removed before they could be sent');
      }
      this.#end = this.#read;
      lines.push(line);
    }
    return lines;
  }

  /** The files are those of another chain, or have lost their last lines in a power cut. Nothing is left out by sending all. */
  #restart(): void {
    this.#log.warn(
      { n: this.#end.n },
      'the audit does not continue the lines that were sent: all of its lines are sent again',
    );
    this.#end = START;
    this.#place = undefined;
  }
}
