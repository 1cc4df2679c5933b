// Writes a planned movie into a file, and computes its digests. Source files are read in blocks, with two buffers, so that
// reading and writing overlap and memory does not grow with the movie.

import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { quietly } from '../../base/error.ts';
import type { CopyPiece } from '../mp4/copy-list.ts';
import { JobError } from './error.ts';
import type { ExportPlan, PartRef } from './export-plan.ts';
import { SourceChanged, type SourceFile } from './source.ts';

/** Fits into the caches of processors: larger blocks were slower in measurements. */
const BLOCK_BYTES = 1024 * 1024;
/** Blocks that are read before it is their turn, so that the delay of a link between nodes costs no time. */
const BLOCKS_AHEAD = 3;
/** Beside those: one block is hashed, and the one before it is written. */
const BUFFERS = BLOCKS_AHEAD + 2;
/** What writing a movie needs. */
export const COPY_BYTES = (BUFFERS + 2) * BLOCK_BYTES;
/** The heads of fragments lie between ranges: reading over them is faster than a new read. */
const MAX_HOLE_BYTES = 64 * 1024;
/** Bytes that are written between two checks of the free space. */
const CHECK_BYTES = 64 * 1024 * 1024;
/** Bytes between two syncs: one sync of gigabytes at the end would delay recording. */
const SYNC_BYTES = 32 * 1024 * 1024;
/** The limit of writev (POSIX: IOV_MAX). */
const MAX_SLICES = 1000;

export interface WriteOptions {
  /** Number of bytes that may be written now: free space that is not reserved for recording. */
  readonly spareBytes: () => Promise<number>;
  /** From 0 to 1. */
  readonly progress?: (share: number) => void;
}

/** One read, and the slices of it that go into the movie, with inserted bytes between them. */
interface Block {
  readonly part: number;
  readonly offset: number;
  length: number;
  readonly slices: (Buffer | { readonly from: number; readonly to: number })[];
}

/** The position of a movie in the file of the result. */
interface MoviePlace {
  readonly offset: number;
  /** Size of the whole file. */
  readonly resultBytes: number;
  /** Whether its CRC-32 is wanted. */
  readonly checksum: boolean;
}

/** Digests of the written bytes, computed before they are written. */
interface MovieDigests {
  /** 0 if it is not wanted. */
  readonly crc32: number;
  /** Hex. */
  readonly sha256: string;
}

/**
 * Writes a movie into a file. Rejects with JobError when the free space is not enough, with SourceChanged, and with the
 * signal's reason.
 */
export async function writeMovie(
  plan: ExportPlan,
  target: FileHandle,
  { offset, resultBytes, checksum }: MoviePlace,
  { spareBytes, progress = () => {} }: WriteOptions,
  signal: AbortSignal,
): Promise<MovieDigests> {
  const sources = new Sources(plan);
  let writing: Promise<void> = Promise.resolve();
  let position = offset + plan.header.length;
  let checkAt = offset + CHECK_BYTES;
  let syncAt = offset + SYNC_BYTES;
  let syncing: Promise<void> = Promise.resolve();
  let crc = checksum ? crc32(plan.header) : 0;
  const hash = createHash('sha256').update(plan.header);
  try {
    await writeAll(target, [plan.header], offset);
    for await (const { block, buffer } of sources.readAll()) {
      signal.throwIfAborted();
      await writing;
      const slices = block.slices.map((slice) =>
        Buffer.isBuffer(slice) ? slice : buffer.subarray(slice.from, slice.to),
      );
      const at = position;
      for (const slice of slices) {
        position += slice.length;
        if (checksum) crc = crc32(slice, crc);
        hash.update(slice);
      }
      writing = writeAll(target, slices, at);
      // Awaited with the next block; until then, its failure must not count as unhandled.
      writing.catch(() => {});
      progress(position / resultBytes);
      if (position >= syncAt) {
        syncAt = position + SYNC_BYTES;
        await syncing;
        syncing = target.datasync();
        // Awaited with the next block, as above.
        syncing.catch(() => {});
      }
      if (position < checkAt) continue;
      checkAt = position + CHECK_BYTES;
      if ((await spareBytes()) < resultBytes - position) {
        throw new JobError('disk-full', 'the disk has filled up: the free space is reserved for recording');
      }
    }
    await Promise.all([writing, syncing]);
    return { crc32: crc, sha256: hash.digest('hex') };
  } catch (err) {
    await Promise.allSettled([writing, syncing]);
    throw err;
  } finally {
    await sources.close();
  }
}

/** The source files, of which those are open that are read. */
class Sources {
  readonly #plan: ExportPlan;
  readonly #open = new Map<number, Promise<SourceFile>>();

  constructor(plan: ExportPlan) {
    this.#plan = plan;
  }

  /**
   * The blocks with their bytes, some of which are read before it is their turn. A buffer is valid until the next but one block is asked
   * for.
   */
  async *readAll(): AsyncGenerator<{ readonly block: Block; readonly buffer: Buffer }> {
    const runs = runsOf(this.#plan.contents);
    let run: Run | undefined;
    let next = this.#expected(runs);
    const buffers = Array.from({ length: BUFFERS }, () => Buffer.allocUnsafeSlow(BLOCK_BYTES));
    const reading: { readonly block: Block; readonly buffer: Buffer; readonly read: Promise<void> }[] = [];
    let count = 0;
    const begin = (block: Block): void => {
      const buffer = buffers[count++ % BUFFERS] as Buffer;
      if (block.length > 0 && !(run && contains(run, block))) {
        run = next;
        next = this.#expected(runs);
      }
      const read = block.length > 0 ? this.#read(block, buffer) : Promise.resolve();
      read.catch(() => {}); // thrown when it is its turn
      reading.push({ block, buffer, read });
    };
    try {
      for (const block of blocksOf(this.#plan.contents)) {
        begin(block);
        if (reading.length > BLOCKS_AHEAD) yield await first();
      }
      while (reading.length > 0) yield await first();
    } finally {
      await Promise.allSettled(reading.map(({ read }) => read));
    }

    async function first(): Promise<{ readonly block: Block; readonly buffer: Buffer }> {
      const { block, buffer, read } = reading.shift() as (typeof reading)[number];
      await read;
      return { block, buffer };
    }
  }

  /** The next run, whose holder is asked for it now: while the one before it is read. */
  #expected(runs: Iterator<Run>): Run | undefined {
    const { value: run } = runs.next() as { readonly value: Run | undefined };
    if (!run) return undefined;
    const { start = 0 } = this.#plan.files[run.part] as PartRef;
    const range = { from: start + run.start, to: start + run.end };
    void quietly(this.#file(run.part).then((file) => file.expect?.(range)));
    return run;
  }

  async #read({ part, offset, length }: Block, buffer: Buffer): Promise<void> {
    const file = await this.#file(part);
    const { start = 0 } = this.#plan.files[part] as PartRef;
    const count = await file.readInto(buffer, start + offset, length);
    if (count < length) throw new SourceChanged('a file is shorter than it was');
  }

  #file(part: number): Promise<SourceFile> {
    const opening = this.#open.get(part) ?? this.#opened(part);
    this.#open.set(part, opening);
    return opening;
  }

  async #opened(part: number): Promise<SourceFile> {
    // Blocks that are read, and the next run, are of as many files at most: reads of the first one are over.
    const [first] = this.#open;
    if (first && this.#open.size > BLOCKS_AHEAD + 1) {
      this.#open.delete(first[0]);
      await (await first[1]).close();
    }
    const { open, identity } = this.#plan.files[part] as PartRef;
    const file = await open();
    if (file?.identity === identity) return file;
    await file?.close();
    throw new SourceChanged('a file is gone');
  }

  async close(): Promise<void> {
    const files = await Promise.allSettled(this.#open.values());
    this.#open.clear();
    for (const opened of files) if (opened.status === 'fulfilled') await opened.value.close();
  }
}

/** Bytes of a part, which are read in blocks that follow one another, without large holes between them. */
interface Run {
  readonly part: number;
  readonly start: number;
  end: number;
}

function* runsOf(pieces: Iterable<CopyPiece>): Generator<Run> {
  let run: Run | undefined;
  for (const piece of pieces) {
    if (piece.kind === 'bytes') continue;
    const end = piece.offset + piece.size;
    if (run && follows(run, piece)) run.end = end;
    else {
      if (run) yield run;
      run = { part: piece.part, start: piece.offset, end };
    }
  }
  if (run) yield run;
}

const follows = ({ part, end }: Run, next: Pick<Block, 'part' | 'offset'>): boolean =>
  part === next.part && next.offset >= end && next.offset - end <= MAX_HOLE_BYTES;

const contains = ({ part, start, end }: Run, block: Pick<Block, 'part' | 'offset'>): boolean =>
  part === block.part && block.offset >= start && block.offset < end;

/** Pieces as reads of bounded size. */
function* blocksOf(pieces: Iterable<CopyPiece>): Generator<Block> {
  let block: Block | undefined;
  for (const piece of pieces) {
    if (piece.kind === 'bytes') {
      block ??= { part: -1, offset: 0, length: 0, slices: [] };
      block.slices.push(piece.bytes);
      continue;
    }
    let { offset } = piece;
    const end = piece.offset + piece.size;
    while (offset < end) {
      if (block && !reaches(block, piece.part, offset)) {
        yield block;
        block = undefined;
      }
      if (!block || block.part < 0) {
        block = { part: piece.part, offset, length: 0, slices: block?.slices ?? [] };
      }
      const from = offset - block.offset;
      const to = Math.min(BLOCK_BYTES, end - block.offset);
      block.slices.push({ from, to });
      block.length = to;
      offset += to - from;
    }
  }
  if (block) yield block;
}

/** Whether the same read can include `offset` of a part. */
const reaches = (block: Block, part: number, offset: number): boolean =>
  block.part < 0 ||
  (follows({ part: block.part, start: block.offset, end: block.offset + block.length }, { part, offset }) &&
    offset - block.offset < BLOCK_BYTES &&
    block.slices.length < MAX_SLICES);

async function writeAll(target: FileHandle, slices: readonly Buffer[], position: number): Promise<void> {
  let rest = slices.filter(({ length }) => length > 0);
  let at = position;
  while (rest.length > 0) {
    const { bytesWritten } = await target.writev(rest, at);
    at += bytesWritten;
    let left = bytesWritten;
    while (rest.length > 0 && left >= (rest[0] as Buffer).length) left -= (rest.shift() as Buffer).length;
    if (left > 0) rest = [(rest[0] as Buffer).subarray(left), ...rest.slice(1)];
  }
}
