// Queries the audit, page by page, newest lines first. Files are read backwards, and one query reads a limited amount; a cursor
// continues it.

import type { FileHandle } from 'node:fs/promises';
import { BLOCK_BYTES, filesOf, firstLineOf, openFrom, parseLine, type AuditLine } from './files.ts';
import { HOUR_MS } from '../../base/units.ts';

/** One query reads at most this much. */
const MAX_READ_BYTES = 4 * 1024 * 1024;
/** Lines are in the order in which they were written. A clock that was set back is assumed to be wrong by at most this. */
const CLOCK_STEP_MS = HOUR_MS;

export interface AuditQuery {
  /** Milliseconds since 1970, [from, to). */
  readonly fromMs: number;
  readonly toMs: number;
  readonly who?: string | undefined;
  readonly what?: string | undefined;
  readonly camera?: string | undefined;
  readonly limit: number;
  /** The `next` of the previous page. */
  readonly cursor?: string | undefined;
}

export interface AuditPage {
  readonly lines: readonly AuditLine[];
  /** Undefined at the end; a page may be empty and still have one. */
  readonly next: string | undefined;
}

/** The number of the first line of a file, and the offset in it before which nothing has been read yet. */
export const AUDIT_CURSOR = /^([0-9]{1,12})-([0-9]{1,12})$/;

/** Throws errors of the file system. */
export async function readAudit(directory: string, query: AuditQuery): Promise<AuditPage> {
  const at = AUDIT_CURSOR.exec(query.cursor ?? '');
  const [cursorFirst, cursorOffset] = at ? [Number(at[1]), Number(at[2])] : [Infinity, Infinity];
  const found: AuditLine[] = [];
  let left = MAX_READ_BYTES;
  for (const first of await filesOf(directory)) {
    if (first > cursorFirst) continue;
    const file = await openFrom(directory, first);
    // The file was removed meanwhile.
    if (!file) continue;
    try {
      const { size } = await file.stat();
      let end = Math.min(size, first === cursorFirst ? cursorOffset : Infinity);
      if (await isLater(file, query.toMs)) continue;
      while (end > 0) {
        if (left <= 0) return { lines: found, next: `${first}-${end}` };
        const start = Math.max(0, end - BLOCK_BYTES);
        left -= end - start;
        const block = await blockOf(file, start, end);
        for (const { text, offset } of block.lines) {
          end = start + offset;
          const line = parseLine(text);
          if (!line) continue;
          const timeMs = Date.parse(line.time);
          if (timeMs < query.fromMs - CLOCK_STEP_MS) return { lines: found, next: undefined };
          if (!matches(line, timeMs, query)) continue;
          found.push(line);
          if (found.length === query.limit) return { lines: found, next: `${first}-${end}` };
        }
        // The line that the start of the block cuts is read with the next block.
        end = start + block.begins;
      }
    } finally {
      await file.close();
    }
  }
  return { lines: found, next: undefined };
}

interface Block {
  /** Complete lines, last first, with their offsets in the block. */
  readonly lines: { readonly text: string; readonly offset: number }[];
  /** Where the first complete line starts. */
  readonly begins: number;
}

async function blockOf(file: FileHandle, start: number, end: number): Promise<Block> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(end - start), 0, end - start, start);
  const bytes = buffer.subarray(0, bytesRead);
  // After the last line break, a line is still being written.
  let to = bytes.lastIndexOf(10);
  const begins = start === 0 ? 0 : bytes.indexOf(10) + 1;
  const lines = [];
  while (to >= begins) {
    const offset = to === 0 ? 0 : bytes.lastIndexOf(10, to - 1) + 1;
    lines.push({ text: bytes.toString('utf8', offset, to), offset });
    to = offset - 1;
  }
  return { lines, begins };
}

/** Whether the whole file was written after `toMs`. */
async function isLater(file: FileHandle, toMs: number): Promise<boolean> {
  const line = await firstLineOf(file);
  return line !== undefined && Date.parse(line.time) > toMs + CLOCK_STEP_MS;
}

function matches(line: AuditLine, timeMs: number, { fromMs, toMs, who, what, camera }: AuditQuery): boolean {
  const { cameras } = line;
  return (
    timeMs >= fromMs &&
    timeMs < toMs &&
    (who === undefined || line['caller'] === who) &&
    (what === undefined || line.what === what) &&
    (camera === undefined || line['camera'] === camera || (Array.isArray(cameras) && cameras.includes(camera)))
  );
}
