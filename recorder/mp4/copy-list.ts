// The contents of a new file after its header, in order: ranges of other files, and some bytes of our own between them. Stored as
// numbers in one growing array, because four hours of footage have some ten thousand ranges.

import { assert } from '../../base/assert.ts';

/** Bytes of the file with index `part`. */
interface CopyRange {
  readonly kind: 'range';
  readonly part: number;
  readonly offset: number;
  readonly size: number;
}

export type CopyPiece = CopyRange | { readonly kind: 'bytes'; readonly bytes: Buffer };

const FIELDS = 3;
/** In the place of a part: the offset is then an index into `#literals`. */
const LITERAL = -1;

export class CopyList implements Iterable<CopyPiece> {
  #numbers = new Float64Array(FIELDS * 256);
  #length = 0;
  readonly #literals: Buffer[] = [];
  #sizeBytes = 0;

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Adds a range; merges it with the previous one if they are adjacent. */
  addRange(part: number, offset: number, size: number): void {
    assert(part >= 0 && size >= 0, 'range of no file');
    if (size === 0) return;
    const last = this.#length - FIELDS;
    const numbers = this.#numbers;
    if (
      last >= 0 &&
      numbers[last] === part &&
      (numbers[last + 1] as number) + (numbers[last + 2] as number) === offset
    ) {
      numbers[last + 2] = (numbers[last + 2] as number) + size;
      this.#sizeBytes += size;
    } else this.#push(part, offset, size);
  }

  addBytes(bytes: Buffer): void {
    if (bytes.length === 0) return;
    // The same parameter sets occur many times.
    let place = this.#literals.lastIndexOf(bytes);
    if (place < 0) place = this.#literals.push(bytes) - 1;
    this.#push(LITERAL, place, bytes.length);
  }

  *[Symbol.iterator](): Generator<CopyPiece> {
    for (let at = 0; at < this.#length; at += FIELDS) {
      const [part = 0, offset = 0, size = 0] = this.#numbers.subarray(at, at + FIELDS);
      if (part === LITERAL) yield { kind: 'bytes', bytes: this.#literals[offset] as Buffer };
      else yield { kind: 'range', part, offset, size };
    }
  }

  #push(part: number, offset: number, size: number): void {
    if (this.#length === this.#numbers.length) {
      const larger = new Float64Array(this.#length * 2);
      larger.set(this.#numbers);
      this.#numbers = larger;
    }
    this.#numbers[this.#length++] = part;
    this.#numbers[this.#length++] = offset;
    this.#numbers[this.#length++] = size;
    this.#sizeBytes += size;
  }
}
