// The files that a result is made from: files of this node's disk, and files of other holders, which are read by ranges while the
// result is written. A holder that stops sending is asked again for a while; then the result is planned again without it.

import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { assert } from '../../base/assert.ts';
import { Backoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import { errorCode, isExpected } from '../../base/error.ts';
import type { Interval } from '../../base/interval.ts';
import { ArchiveError } from '../archive/disk/faults.ts';
import type { ListQuery, SegmentListing } from '../archive/catalogue/listing.ts';
import type { Collector } from '../footage/collect.ts';
import { indexAt, type Footage } from '../footage/footage.ts';
import type { ByteRange, Holder } from '../footage/holder.ts';
import { FileGone, HolderLost } from '../footage/remote-file.ts';
import { readRange, RemoteRun } from '../footage/remote-run.ts';
import type { ReadAt } from '../mp4/reader.ts';
import type { Asker } from '../peers/peer-requests.ts';
import { JobError } from './error.ts';
import { PartFile } from './recorded-part.ts';

/** A source file has changed since the plan was made, or cannot be read any more: plan again. */
export class SourceChanged extends Error {}

/** An open file; the code that opens it closes it. Reading rejects with SourceChanged, and JobError for a fault of the disk. */
export interface SourceFile {
  readonly sizeBytes: number;
  /** Distinguishes the file from a later one with the same name. */
  readonly identity: string;
  /** Where the index of a completed file begins, if its holder says so: nothing else is read to find it. */
  readonly indexAt?: number | undefined;
  readonly read: ReadAt;
  /**
   * These bytes are read next, one after the other: another holder is asked for all of them at once, before the first of them is
   * needed.
   */
  expect?(range: ByteRange): void;
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
  /** With several disks: the root of the one that has a file. */
  rootOf?(path: string): Promise<string>;
  /** Keeps the footage in [fromMs, toMs) from retention until the returned function is called. */
  holdWindow(cameraId: string, fromMs: number, toMs: number): () => void;
}

/** The footage of this node and of all others, as the caller of a job may see it. */
export interface ClusterFootage {
  readonly collector: Pick<Collector, 'collect'> & {
    readonly own: Pick<Collector['own'], 'nodeId'>;
    holderOf(file: Footage): Promise<Pick<Holder, 'stream' | 'sizeOf'> | undefined>;
  };
  /** On whose behalf others are asked. */
  readonly by: Asker;
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
  const rootOf = async (path: string): Promise<string> => (await archive.rootOf?.(path)) ?? recordPath;
  const own = (path: string): Source => ({ open: async () => ownFile(join(await rootOf(path), path)) });
  if (!cluster || !isOfAllNodes) {
    const { segments } = await readable(archive.list(cameraId, { fromMs, toMs, tzOffsetMinutes: 0 }));
    return segments.map(({ path }) => own(path));
  }
  const { collector, by } = cluster;
  const { footage } = await readable(collector.collect(cameraId, { fromMs, toMs }, by, true));
  return footage.map((file) =>
    file.nodeId === collector.own.nodeId
      ? { ...own(file.path), footage: file }
      : { open: () => fileElsewhere(file, cluster, signal), footage: file },
  );
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

/** An error of the system while the archive is read is a fault of its disk, not of the disk of results. */
export async function readable<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (err) {
    const code = errorCode(err);
    if (code === undefined || !isExpected(err, ArchiveError)) throw err;
    const message = err instanceof ArchiveError ? err.message : `the archive cannot be read (${code})`;
    throw new JobError('archive-unreadable', message, { cause: err });
  }
}

/** A file of another holder, which is asked again for a while when it stops sending. */
async function fileElsewhere(
  file: Footage,
  cluster: ClusterFootage,
  signal: AbortSignal,
): Promise<SourceFile | undefined> {
  const { collector, by, clock } = cluster;
  const holder = await collector.holderOf(file);
  if (!holder) return undefined;
  const { index } = file;
  const indexFrom = indexAt(file) ?? (index && file.sizeBytes);
  const sizeBytes =
    index && indexFrom !== undefined ? indexFrom + index.length : await answered(() => holder.sizeOf(file, by, signal));
  const ask = (range: ByteRange): Promise<Readable> => holder.stream(file, range, by, signal);
  const bytes = (from: number, to: number): Promise<Buffer> =>
    to <= from ? Promise.resolve(Buffer.alloc(0)) : answered(() => readRange(ask, { from, to }, clock));
  const runs = new Set<RemoteRun>();
  return {
    sizeBytes,
    identity: `${file.nodeId} ${file.path} ${sizeBytes}`,
    indexAt: indexFrom,
    read: (from, length) =>
      index && from === indexFrom ? Promise.resolve(index) : bytes(from, Math.min(from + length, sizeBytes)),
    expect: (range) => void runs.add(new RemoteRun(ask, range, clock)),
    readInto: async (buffer, position, length) => {
      const run = [...runs].find(({ range }) => range.from <= position && position < range.to);
      assert(run, 'reading bytes that were not expected');
      await run.turns.take(() => answered(() => run.readInto(buffer, position, length)));
      if (position + length === run.range.to) runs.delete(run);
      return length;
    },
    async close() {
      for (const run of runs) run.close();
    },
  };

  async function answered<T>(ask: () => Promise<T>): Promise<T> {
    const backoff = new Backoff({ firstMs: 250, maxMs: 4_000 });
    const untilMs = clock.monotonicMs() + HOLDER_BACK_MS;
    for (;;) {
      try {
        return await ask();
      } catch (err) {
        if (!(err instanceof HolderLost)) throw err;
        const isLate = clock.monotonicMs() >= untilMs;
        if (err instanceof FileGone || isLate) throw new SourceChanged(err.message, { cause: err });
        await clock.sleep(backoff.next(), signal);
        signal.throwIfAborted();
      }
    }
  }
}
