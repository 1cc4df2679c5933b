// The files that a result is made from: files of this node's disk, and files of other holders, which are read by ranges while the
// result is written. A holder that stops sending is asked again for a while; then the result is planned again without it.

import { join } from 'node:path';
import { Backoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import { errorCode } from '../../base/error.ts';
import type { Interval } from '../../base/interval.ts';
import { ArchiveError } from '../archive/disk/faults.ts';
import type { ListQuery, SegmentListing } from '../archive/catalogue/listing.ts';
import type { Collected } from '../footage/collect.ts';
import type { Footage } from '../footage/footage.ts';
import type { ByteRange } from '../footage/holder.ts';
import { FileGone, HolderLost } from '../footage/remote-file.ts';
import type { ReadAt } from '../mp4/reader.ts';
import { JobError } from './error.ts';
import { PartFile } from './recorded-part.ts';

/** A source file has changed since the plan was made, or cannot be read any more: plan again. */
export class SourceChanged extends Error {}

/** An open file; the code that opens it closes it. Reading rejects with SourceChanged, and JobError for a fault of the disk. */
export interface SourceFile {
  readonly sizeBytes: number;
  /** Distinguishes the file from a later one with the same name. */
  readonly identity: string;
  readonly read: ReadAt;
  /** Resolves to the bytes read into the start of `buffer`, fewer than `length` only at the end of the file. */
  readInto(buffer: Buffer, position: number, length: number): Promise<number>;
  close(): Promise<void>;
}

/** A file that holds a part of a result. */
export interface Source {
  /** Undefined when it is gone. */
  readonly open: () => Promise<SourceFile | undefined>;
  /** Set if other holders are asked too: what is known of the file, and what counts of it. */
  readonly footage?: Footage;
}

/** The archive on this node's disk. */
export interface JobArchive {
  /** Throws ArchiveError when the archive cannot be read. */
  list(cameraId: string, query: ListQuery): Promise<SegmentListing>;
  /** Keeps the footage in [fromMs, toMs) from retention until the returned function is called. */
  holdWindow(cameraId: string, fromMs: number, toMs: number): () => void;
}

/** The footage of this node and of all others, as the caller of a job may see it. */
export interface ClusterFootage {
  /** The name of this node in `Footage`. */
  readonly nodeId: string;
  /** Throws ArchiveError. */
  collect(cameraId: string, interval: Interval): Promise<Collected>;
  /** Bytes of a file of another node. Rejects with FileGone, HolderLost, and the signal's reason. */
  read(file: Footage, range: ByteRange, signal: AbortSignal): Promise<Buffer>;
  readonly clock: Clock;
}

export interface SourceDeps {
  /** Absolute. */
  readonly recordPath: string;
  readonly archive: JobArchive;
  /** For results of all nodes; without it, this node is alone. */
  readonly cluster?: ClusterFootage | undefined;
}

/** How long a holder is asked again that stopped sending: restarts take less. */
const HOLDER_BACK_MS = 30_000;

/** The files of a window, in the order of recording. Throws JobError. */
export async function sourcesOf(
  {
    cameraId,
    fromMs,
    toMs,
    isOfAllNodes = false,
  }: Interval & { readonly cameraId: string; readonly isOfAllNodes?: boolean | undefined },
  { recordPath, archive, cluster }: SourceDeps,
  signal: AbortSignal,
): Promise<Source[]> {
  const own = (path: string): Source => ({ open: () => ownFile(join(recordPath, path)) });
  try {
    if (!cluster || !isOfAllNodes) {
      const { segments } = await archive.list(cameraId, { fromMs, toMs, tzOffsetMinutes: 0 });
      return segments.map(({ path }) => own(path));
    }
    const { footage } = await readable(cluster.collect(cameraId, { fromMs, toMs }));
    return footage.map((file) =>
      file.nodeId === cluster.nodeId
        ? { ...own(file.path), footage: file }
        : { open: async () => new FileElsewhere(file, cluster, signal), footage: file },
    );
  } catch (err) {
    if (err instanceof ArchiveError) throw new JobError('archive-unreadable', err.message, { cause: err });
    throw err;
  }
}

async function ownFile(path: string): Promise<SourceFile | undefined> {
  const file = await readable(PartFile.open(path));
  return (
    file && {
      sizeBytes: file.sizeBytes,
      identity: file.identity,
      read: (offset, length) => readable(file.read(offset, length)),
      readInto: (buffer, position, length) => readable(file.readInto(buffer, position, length)),
      close: () => file.close(),
    }
  );
}

/** An error of the system while a file of the archive is read is a fault of its disk, not of the disk of results. */
async function readable<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (err) {
    const code = errorCode(err);
    if (code === undefined || err instanceof JobError) throw err;
    throw new JobError('archive-unreadable', `the archive cannot be read (${code})`, { cause: err });
  }
}

class FileElsewhere implements SourceFile {
  readonly #file: Footage;
  readonly #cluster: ClusterFootage;
  readonly #signal: AbortSignal;
  readonly sizeBytes: number;
  readonly identity: string;

  constructor(file: Footage, cluster: ClusterFootage, signal: AbortSignal) {
    this.#file = file;
    this.#cluster = cluster;
    this.#signal = signal;
    this.sizeBytes = file.sizeBytes;
    this.identity = `${file.nodeId} ${file.path} ${file.sizeBytes}`;
  }

  readonly read: ReadAt = (offset, length) => this.#range(offset, length);

  async readInto(buffer: Buffer, position: number, length: number): Promise<number> {
    return (await this.#range(position, length)).copy(buffer);
  }

  async close(): Promise<void> {}

  async #range(from: number, length: number): Promise<Buffer> {
    const to = Math.min(from + length, this.sizeBytes);
    if (to <= from) return Buffer.alloc(0);
    const backoff = new Backoff({ firstMs: 250, maxMs: 4_000 });
    const { clock } = this.#cluster;
    const untilMs = clock.monotonicMs() + HOLDER_BACK_MS;
    for (;;) {
      try {
        return await this.#cluster.read(this.#file, { from, to }, this.#signal);
      } catch (err) {
        if (!(err instanceof HolderLost)) throw err;
        const isLate = clock.monotonicMs() >= untilMs;
        if (err instanceof FileGone || isLate) throw new SourceChanged(err.message, { cause: err });
        await clock.sleep(backoff.next(), this.#signal);
        this.#signal.throwIfAborted();
      }
    }
  }
}
