// The files of this node's archive: lists them with their parts, opens them, and keeps them from retention while they are read.

import type { Clock } from '../../base/clock.ts';
import { concurrently } from '../../base/concurrently.ts';
import type { Interval } from '../../base/interval.ts';
import type { ListQuery, SegmentListing } from '../archive/catalogue/listing.ts';
import type { OpenSegment } from '../archive/catalogue/segment.ts';
import type { ArchiveFiles } from './archive-file.ts';
import { parsePath, type SegmentName } from '../archive/disk/names.ts';
import { indexAt, type Footage } from './footage.ts';
import { recover } from '../mp4/recover.ts';
import { PartsCache } from './parts-cache.ts';

/** The archive on this node's disk. */
export interface OwnArchive {
  /** Throws ArchiveError when the archive cannot be read. */
  list(cameraId: string, query: ListQuery): Promise<SegmentListing>;
  /** With several disks: the root of the one that has a file. */
  rootOf?(path: string): Promise<string>;
  /** The segments of a camera that are not closed yet. */
  openEntries(cameraId: string): readonly OpenSegment[] | Promise<readonly OpenSegment[]>;
  /** Keeps a segment from retention until the returned function is called. */
  holdForReading(path: string): () => void;
  /** The same for all segments that overlap [fromMs, toMs). */
  holdWindow(cameraId: string, fromMs: number, toMs: number): () => void;
}

const CONCURRENT_READS = 8;
/** Of one list: an hour and a half of five-minute files. What an export needs of more files, it requests while it plans. */
const INDEX_BYTES = 2 * 1024 * 1024;

export class OwnFootage {
  /** The name of this node in its cluster; empty outside of one. */
  readonly nodeId: string;
  readonly archive: OwnArchive;
  readonly files: ArchiveFiles;
  readonly parts: PartsCache;

  constructor(nodeId: string, archive: OwnArchive, files: ArchiveFiles, clock: Clock) {
    this.nodeId = nodeId;
    this.archive = archive;
    this.files = files;
    this.parts = new PartsCache({ files, archive, clock });
  }

  /** Files that may hold footage of the interval, oldest first, without those that cannot be played. Throws ArchiveError. */
  async in(cameraId: string, interval: Interval): Promise<Footage[]> {
    const { segments } = await this.archive.list(cameraId, { ...interval, tzOffsetMinutes: 0 });
    // Cached parts are returned without a promise: awaiting one would take longer than the lookup.
    const found = await concurrently(segments, CONCURRENT_READS, (segment) => this.parts.partsOf(segment));
    return segments.flatMap(({ path, isOpen, sizeBytes }, i) => {
      const parts = found[i];
      return parts && parts.starts.length > 0 ? [{ path, isOpen, sizeBytes, parts, nodeId: this.nodeId }] : [];
    });
  }

  /** The same files, the first ones with their indexes. Rejects with the error of the system. */
  withIndexes(files: readonly Footage[]): Promise<Footage[]> {
    let room = INDEX_BYTES;
    return concurrently(files, CONCURRENT_READS, async (file) => {
      room -= file.sizeBytes - (indexAt(file) ?? file.sizeBytes);
      return room < 0 ? file : { ...file, index: await this.#indexOf(file) };
    });
  }

  async #indexOf(file: Footage): Promise<Buffer | undefined> {
    const at = indexAt(file);
    let index: Buffer | undefined;
    await this.files.use(parsePath(file.path) as SegmentName, async ({ sizeBytes, read }) => {
      if (at !== undefined && sizeBytes === file.sizeBytes) index = await read(at, sizeBytes - at);
      if (!file.isOpen) return;
      const found = await recover(read, file.sizeBytes, { written: true });
      if (found.kind === 'recovered') index = found.writer.finish().tail;
    });
    return index;
  }
}
