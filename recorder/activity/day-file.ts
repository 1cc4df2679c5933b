// The looks at one camera on one day, as a file: a summary for each minute, then a block for each file of footage. It is derived: what
// a crash has left incomplete is cut off and made again.
//
//   head   "KNAD" end:u32 | (level:u8 sure:u8 unclear:u8 0:u8) for each minute of MINUTES
//   block  "KNAB" looks:u32 startMs:f64 sizeBytes:f64 | looks
//   look   after the start of the block, in ms:u32 level:u8 confidence:u8 0:u16 | a bit for each cell

import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/units.ts';
import { MAP_BYTES, SURE, type Look } from './grid.ts';

/** A file of footage may end so long after midnight. */
const MINUTES = (DAY_MS + 2 * HOUR_MS) / MINUTE_MS;
const HEAD_FIELDS = 8;
const PER_MINUTE = 4;
export const HEAD_BYTES = HEAD_FIELDS + MINUTES * PER_MINUTE;
const HEAD_MARK = 0x4b4e4144;
const BLOCK_MARK = 0x4b4e4142;
export const BLOCK_HEAD_BYTES = 24;
const LOOK_FIELDS = 8;
const LOOK_BYTES = LOOK_FIELDS + MAP_BYTES;
/** More key frames of one file are not looked at. */
export const MAX_LOOKS = 8_000;

interface BlockHead {
  /** Of the file of footage. */
  readonly startMs: number;
  readonly sizeBytes: number;
  readonly looks: number;
}

export const blockBytes = (looks: number): number => BLOCK_HEAD_BYTES + looks * LOOK_BYTES;

export function formatBlock(file: Omit<BlockHead, 'looks'>, looks: readonly Look[]): Buffer {
  const block = Buffer.alloc(blockBytes(looks.length));
  block.writeUInt32BE(BLOCK_MARK);
  block.writeUInt32LE(looks.length, 4);
  block.writeDoubleLE(file.startMs, 8);
  block.writeDoubleLE(file.sizeBytes, 16);
  for (const [i, { timeMs, level, confidence, changed }] of looks.entries()) {
    const at = blockBytes(i);
    block.writeUInt32LE(Math.max(0, Math.round(timeMs - file.startMs)), at);
    block[at + 4] = Math.min(255, level);
    block[at + 5] = confidence;
    block.set(changed, at + LOOK_FIELDS);
  }
  return block;
}

/** Undefined where no block begins. `bytes`: at least its first BLOCK_HEAD_BYTES. */
export function parseBlockHead(bytes: Buffer): BlockHead | undefined {
  if (bytes.length < BLOCK_HEAD_BYTES || bytes.readUInt32BE() !== BLOCK_MARK) return undefined;
  const looks = bytes.readUInt32LE(4);
  return looks > MAX_LOOKS ? undefined : { startMs: bytes.readDoubleLE(8), sizeBytes: bytes.readDoubleLE(16), looks };
}

interface Block {
  readonly head: BlockHead;
  /** From its mark on. */
  readonly bytes: Buffer;
}

/** The complete blocks of a day, those that were made last for a file of footage. */
export function blocksIn(day: Buffer): Block[] {
  const blocks = new Map<number, Block>();
  for (let at = HEAD_BYTES; ;) {
    const head = parseBlockHead(day.subarray(at, at + BLOCK_HEAD_BYTES));
    const bytes = head && day.subarray(at, at + blockBytes(head.looks));
    if (!head || bytes?.length !== blockBytes(head.looks)) return [...blocks.values()];
    blocks.set(head.startMs, { head, bytes });
    at += bytes.length;
  }
}

/** What is known of a look. */
export type LookSummary = Pick<Look, 'timeMs' | 'level' | 'confidence'>;

/** Calls `tell` for each look of a block, in order; with `region`, a bit for each cell, for those in which one of its cells has changed. */
export function eachLook(
  { head, bytes }: Block,
  region: Uint8Array | undefined,
  tell: (look: LookSummary) => void,
): void {
  const bitsOf = region && Array.from(region.entries()).filter(([, bits]) => bits !== 0);
  for (let i = 0; i < head.looks; i++) {
    const at = blockBytes(i);
    const level = bytes[at + 4] as number;
    if (bitsOf && (level === 0 || !touches(bytes, at + LOOK_FIELDS, bitsOf))) continue;
    tell({ timeMs: head.startMs + bytes.readUInt32LE(at), level, confidence: bytes[at + 5] as number });
  }
}

function touches(bytes: Buffer, at: number, bitsOf: readonly [k: number, bits: number][]): boolean {
  for (const [k, bits] of bitsOf) if (((bytes[at + k] as number) & bits) !== 0) return true;
  return false;
}

/** A minute of a day: how many cells have changed for sure at most, and how many looks were sure and how many were not. */
interface Minute {
  readonly level: number;
  readonly sure: number;
  readonly unclear: number;
}

export class DayHead {
  readonly bytes: Buffer;

  /** `bytes`: of an existing one. */
  constructor(bytes?: Buffer) {
    this.bytes = bytes ?? Buffer.alloc(HEAD_BYTES);
    if (!bytes) this.bytes.writeUInt32BE(HEAD_MARK);
  }

  /** Where the last block ends that is counted; undefined if this is no head. */
  get end(): number | undefined {
    return this.bytes.length >= HEAD_BYTES && this.bytes.readUInt32BE() === HEAD_MARK
      ? this.bytes.readUInt32LE(4)
      : undefined;
  }

  set end(value: number) {
    this.bytes.writeUInt32LE(value, 4);
  }

  /** `dayMs`: midnight. */
  count(block: Block, dayMs: number): void {
    eachLook(block, undefined, ({ timeMs, level, confidence }) => {
      const minute = Math.floor((timeMs - dayMs) / MINUTE_MS);
      if (minute < 0 || minute >= MINUTES) return;
      const at = HEAD_FIELDS + minute * PER_MINUTE;
      const isSure = confidence >= SURE;
      const counter = at + (isSure ? 1 : 2);
      if (isSure) this.bytes[at] = Math.max(this.bytes[at] as number, level);
      this.bytes[counter] = Math.min(255, (this.bytes[counter] as number) + 1);
    });
  }

  /** Minutes at which something was looked at, as milliseconds since midnight. */
  *minutes(): Generator<[atMs: number, Minute]> {
    if (this.end === undefined) return;
    for (let minute = 0; minute < MINUTES; minute++) {
      const at = HEAD_FIELDS + minute * PER_MINUTE;
      const [level, sure, unclear] = this.bytes.subarray(at, at + PER_MINUTE) as unknown as [number, number, number];
      if (sure + unclear > 0) yield [minute * MINUTE_MS, { level, sure, unclear }];
    }
  }
}
