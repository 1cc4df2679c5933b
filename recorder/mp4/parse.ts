// Locates boxes in a buffer and reads their fields. Lengths come from files that may be damaged, so everything is checked to be
// inside its box before it is read.

import { Mp4Error } from './error.ts';

/** A box in a buffer; its contents are `buffer[start, end)`. */
export interface BoxView {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

/** The boxes that fill `buffer[start, end)`. */
export function children(buffer: Buffer, start: number, end: number): BoxView[] {
  const found: BoxView[] = [];
  let at = start;
  while (at < end) {
    if (end - at < 8) throw new Mp4Error('TRUNCATED', 'box header ends too early');
    const size = buffer.readUInt32BE(at);
    if (size < 8 || size > end - at) throw new Mp4Error('MALFORMED', `box of ${size} bytes where ${end - at} are left`);
    found.push({ type: buffer.toString('latin1', at + 4, at + 8), start: at + 8, end: at + size });
    at += size;
  }
  return found;
}

export const childrenOf = (buffer: Buffer, view: BoxView): BoxView[] => children(buffer, view.start, view.end);

/** The first box of the type; undefined if there is none. */
export const findBox = (views: readonly BoxView[], type: string): BoxView | undefined =>
  views.find((view) => view.type === type);

/** The box at the end of a path of types. Throws Mp4Error if it is missing. */
export function requireBox(buffer: Buffer, parent: BoxView, ...path: string[]): BoxView {
  let view = parent;
  for (const type of path) {
    const next = findBox(childrenOf(buffer, view), type);
    if (!next) throw new Mp4Error('MALFORMED', `no ${type} in ${view.type}`);
    view = next;
  }
  return view;
}

/** Reads the fields of a box in order. Throws Mp4Error at the end of the box. */
export class Fields {
  readonly #buffer: Buffer;
  readonly #end: number;
  #at: number;

  constructor(buffer: Buffer, view: BoxView) {
    this.#buffer = buffer;
    this.#at = view.start;
    this.#end = view.end;
  }

  get left(): number {
    return this.#end - this.#at;
  }

  #take(bytes: number): number {
    if (bytes > this.left) throw new Mp4Error('TRUNCATED', 'box ends before its fields');
    this.#at += bytes;
    return this.#at - bytes;
  }

  skip(bytes: number): void {
    this.#take(bytes);
  }

  u8(): number {
    return this.#buffer.readUInt8(this.#take(1));
  }

  u16(): number {
    return this.#buffer.readUInt16BE(this.#take(2));
  }

  u24(): number {
    return this.#buffer.readUIntBE(this.#take(3), 3);
  }

  u32(): number {
    return this.#buffer.readUInt32BE(this.#take(4));
  }

  i32(): number {
    return this.#buffer.readInt32BE(this.#take(4));
  }

  /** 64 bits; must be below 2^53. */
  u64(): number {
    const at = this.#take(8);
    const upper = this.#buffer.readUInt32BE(at);
    if (upper > 0x1fffff) throw new Mp4Error('TOO_LARGE', '64-bit field beyond 2^53');
    return upper * 0x100000000 + this.#buffer.readUInt32BE(at + 4);
  }

  /** 64 bits, exact. */
  bigU64(): bigint {
    return this.#buffer.readBigUInt64BE(this.#take(8));
  }

  /** Time and duration fields: 64 bits in version 1, otherwise 32 bits. */
  uVersion(version: number): number {
    return version === 1 ? this.u64() : this.u32();
  }

  /** A view of the next bytes; copy it to keep it. */
  bytes(count: number): Buffer {
    const at = this.#take(count);
    return this.#buffer.subarray(at, at + count);
  }

  /** The number of entries of `entryBytes` bytes; all must fit into the box. */
  entryCount(entryBytes: number): number {
    const count = this.u32();
    if (count > this.left / entryBytes) throw new Mp4Error('MALFORMED', `${count} entries do not fit their box`);
    return count;
  }
}
