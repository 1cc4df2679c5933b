// The files of the audit: `audit.log` has the newest lines; a rotated file has the number of its first line in its name and never
// changes again. Each line contains the SHA-256 of the previous line, so that changes can be detected.

import { createHash } from 'node:crypto';
import { open, readdir, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { parseJson } from '../../base/parse-json.ts';

export const NEWEST = 'audit.log';
/** Longer than any line. */
export const BLOCK_BYTES = 64 * 1024;
/** In place of the hash before the first line. */
export const NO_LINE = '0'.repeat(64);

export const ASIDE = /^audit-(\d{12})\.log$/;
export const asideName = (first: number): string => `audit-${String(first).padStart(12, '0')}.log`;
/** Also matches the files of versions whose lines had no number. */
export const isAuditFile = (name: string): boolean => /^audit(?:-\w+)?\.log(?:\.\d+)?$/.test(name);

export const hashOf = (line: string | Buffer): string => createHash('sha256').update(line).digest('hex');

/** A line of a file, with the fields that every line has. */
export interface AuditLine {
  /** 1, 2, 3 … across all files. */
  readonly n: number;
  /** ISO 8601, UTC, by the clock of the node. */
  readonly time: string;
  readonly node: string;
  readonly what: string;
  /** SHA-256 of the previous line, without its line break. */
  readonly prev: string;
  readonly [fact: string]: unknown;
}

/** Undefined if the text is not a line of this format. */
export function parseLine(text: string): AuditLine | undefined {
  const line = parseJson(text) as Partial<AuditLine> | null | undefined;
  const isLine = Number.isSafeInteger(line?.n) && typeof line?.time === 'string' && typeof line.prev === 'string';
  return isLine ? (line as AuditLine) : undefined;
}

/** The last line of the chain. */
export interface ChainEnd {
  readonly n: number;
  /** SHA-256 of the last line. */
  readonly sha256: string;
}

export async function firstLineOf(file: FileHandle): Promise<AuditLine | undefined> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(BLOCK_BYTES), 0, BLOCK_BYTES, 0);
  const end = buffer.subarray(0, bytesRead).indexOf(10);
  return end < 0 ? undefined : parseLine(buffer.toString('utf8', 0, end));
}

/** Undefined if no line near the end has a number. A line truncated by a crash counts like any other. */
export async function chainEndOf(file: FileHandle): Promise<ChainEnd | undefined> {
  const { size } = await file.stat();
  const start = Math.max(0, size - BLOCK_BYTES);
  const buffer = Buffer.alloc(size - start);
  await file.read(buffer, 0, buffer.length, start);
  const lines = buffer.toString('latin1').split('\n');
  if (lines.at(-1) === '') lines.pop();
  const after = lines.toReversed().findIndex((line) => parseLine(line) !== undefined);
  if (after < 0) return undefined;
  const { n } = parseLine(lines.at(-1 - after) as string) as AuditLine;
  return { n: n + after, sha256: hashOf(Buffer.from(lines.at(-1) as string, 'latin1')) };
}

/** Opens the file that starts with line `first`; undefined if it is gone. */
export async function openFrom(directory: string, first: number): Promise<FileHandle | undefined> {
  // It may have been rotated just now.
  for (const name of [asideName(first), NEWEST, asideName(first)]) {
    const file = await openFile(join(directory, name));
    if (!file) continue;
    if ((await firstLineOf(file))?.n === first) return file;
    await file.close();
  }
  return undefined;
}

/** The number of the first line of each file, newest first. */
export async function filesOf(directory: string): Promise<number[]> {
  // In this order, a file that is rotated meanwhile is found twice instead of missed.
  await using newest = await openFile(join(directory, NEWEST));
  const first = newest && (await firstLineOf(newest));
  const aside = (await namesIn(directory)).flatMap((name) => ASIDE.exec(name)?.[1] ?? []).map(Number);
  return [...new Set([...aside, ...(first ? [first.n] : [])])].sort((a, b) => b - a);
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (err) {
    // No line has been written yet.
    if ((err as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw err;
  }
}

async function openFile(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r');
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw err;
  }
}
