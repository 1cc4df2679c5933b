// The files of the audit: `audit.log` has the newest lines; a rotated file has the number of its first line in its
// name and does not change any more. Each line has the SHA-256 of the previous line, so that a change is detected.

import { createHash } from 'node:crypto';
import { open, readdir, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';

export const NEWEST = 'audit.log';
/** Longer than any line. */
export const BLOCK_BYTES = 64 * 1024;
/** Stands for the hash of a line before the first one. */
export const NO_LINE = '0'.repeat(64);

export const ASIDE = /^audit-(\d{12})\.log$/;
export const asideName = (first: number): string => `audit-${String(first).padStart(12, '0')}.log`;
/** Matches also the files of versions whose lines had no number. */
export const isAuditFile = (name: string): boolean => /^audit(?:-\w+)?\.log(?:\.\d+)?$/.test(name);

export const hashOf = (line: string | Buffer): string => createHash('sha256').update(line).digest('hex');

/** A line of a file, with the fields that all lines have. */
export interface AuditLine {
  /** 1, 2, 3 … over all files. */
  readonly n: number;
  /** ISO 8601, UTC; by the clock of the node. */
  readonly time: string;
  readonly node: string;
  readonly what: string;
  /** SHA-256 of the line before, without its line break. */
  readonly prev: string;
  readonly [fact: string]: unknown;
}

/** Undefined for text that is not a line of this format. */
export function parseLine(text: string): AuditLine | undefined {
  try {
    const line = JSON.parse(text) as Partial<AuditLine> | null;
    const isLine = Number.isSafeInteger(line?.n) && typeof line?.time === 'string' && typeof line.prev === 'string';
    return isLine ? (line as AuditLine) : undefined;
  } catch {
    return undefined;
  }
}

/** Where the chain ends. */
export interface ChainEnd {
  readonly n: number;
  /** Of the last line. */
  readonly sha256: string;
}

export async function firstLineOf(file: FileHandle): Promise<AuditLine | undefined> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(BLOCK_BYTES), 0, BLOCK_BYTES, 0);
  const end = buffer.subarray(0, bytesRead).indexOf(10);
  return end < 0 ? undefined : parseLine(buffer.toString('utf8', 0, end));
}

/** Undefined if no line near the end has a number. A line that was cut off by a crash is a line like any other. */
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

/** Opens the file that begins with line `first`; undefined when it is gone. */
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

/** The first lines of all files, newest first. */
export async function filesOf(directory: string): Promise<number[]> {
  // In this order, a file that is rotated meanwhile is found twice, and never missed.
  await using newest = await openFile(join(directory, NEWEST));
  const first = newest && (await firstLineOf(newest));
  const aside = (await namesIn(directory)).flatMap((name) => ASIDE.exec(name)?.[1] ?? []).map(Number);
  return [...new Set([...aside, ...(first ? [first.n] : [])])].sort((a, b) => b - a);
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (err) {
    // No line was written yet.
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
