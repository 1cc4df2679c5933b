// Makes boxes of the ISO base media file format from field values (ISO/IEC 14496-12 §4.2). For boxes written once per file;
// `fragment.ts` writes those of each fragment.

import { assert } from '../../base/assert.ts';

/** The bytes of a field or box, or a list of such parts. */
export type Part = Buffer | readonly Part[];

export function u8(value: number): Buffer {
  return Buffer.of(value);
}

export function u16(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

export function i16(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(2);
  bytes.writeInt16BE(value);
  return bytes;
}

export function u24(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(3);
  bytes.writeUIntBE(value, 0, 3);
  return bytes;
}

export function u32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A 64-bit count; must be below 2^53. */
export function u64(value: number): Buffer {
  assert(Number.isSafeInteger(value) && value >= 0, 'no 64-bit count');
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeUInt32BE(Math.floor(value / 0x100000000));
  bytes.writeUInt32BE(value % 0x100000000, 4);
  return bytes;
}

/** A field with 64 bits in version 1 of its box and 32 bits in version 0. */
export const uVersion = (version: number, value: number): Buffer => (version === 1 ? u64(value) : u32(value));

/** The box version: 1 if one of the values needs 64 bits. */
export const versionFor = (...values: number[]): 0 | 1 => (values.some((value) => value > 0xffffffff) ? 1 : 0);

export const zeros = (count: number): Buffer => Buffer.alloc(count);

/** Four characters, as in a box type or a brand. */
export function fourCc(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  assert(bytes.length === 4, 'a four-character code has four bytes');
  return bytes;
}

export const concat = (parts: Part): Buffer => Buffer.concat(flatten(parts, []));

export function box(type: string, parts: Part): Buffer {
  const bytes = concat([zeros(4), fourCc(type), parts]);
  bytes.writeUInt32BE(bytes.length);
  return bytes;
}

export const lengthOf = (part: Part): number =>
  Buffer.isBuffer(part) ? part.length : part.reduce((sum, inner) => sum + lengthOf(inner), 0);

/** Like `box`, but without copying its contents: in nested boxes they would be copied at each level. */
export const nestedBox = (type: string, parts: Part): Part => [u32(8 + lengthOf(parts)), fourCc(type), parts];

/** Like `fullBox`, but without copying its contents. */
export const nestedFullBox = (type: string, version: number, flags: number, parts: Part): Part =>
  nestedBox(type, [u8(version), u24(flags), parts]);

/** A box that starts with a version and 24 bits of flags (§4.2.2). */
export const fullBox = (type: string, version: number, flags: number, parts: Part): Buffer =>
  box(type, [u8(version), u24(flags), parts]);

function flatten(part: Part, into: Buffer[]): Buffer[] {
  if (Buffer.isBuffer(part)) into.push(part);
  else for (const inner of part) flatten(inner, into);
  return into;
}
