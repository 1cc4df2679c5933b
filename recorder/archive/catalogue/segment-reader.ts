// Reads details from the files of segments: once, because a closed file does not change. They are kept in the rows.

import type { Clock } from '../../../base/clock.ts';
import { errorCode, quietly } from '../../../base/error.ts';
import { ArchiveError } from '../disk/faults.ts';
import type { FileFacts, OpenFile } from '../disk/file-system.ts';
import { formatPath, type SegmentName } from '../disk/names.ts';
import type { SegmentStore } from '../disk/segment-store.ts';
import type { CameraDay } from './camera-day.ts';
import type { DayTree } from './day-tree.ts';
import type { DetailsReader } from './details-reader.ts';
import {
  closedSegment,
  describeSegment,
  endOf,
  hasSettled,
  underName,
  type ClosedSegment,
  type DescribedFile,
  type Segment,
  type SegmentDetails,
} from './segment.ts';

/** `open`: not closed, or another program may still write it; `unreadable`: the disk cannot be read. */
export type FileState =
  | { readonly kind: 'closed'; readonly closed: ClosedSegment }
  | { readonly kind: 'open' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'unreadable' };

export interface SegmentRow {
  readonly rows: CameraDay;
  readonly segment: SegmentName;
}

/** Relative to the record path. */
export const pathOf = ({ rows, segment }: SegmentRow): string => rows.pathOf(segment);

/** The result of a check of a file. `unopened`: it exists but cannot be read. */
type FileCheck =
  | DescribedFile
  | { readonly kind: 'missing' }
  | { readonly kind: 'not-a-file' }
  | { readonly kind: 'unopened'; readonly details: SegmentDetails }
  | { readonly kind: 'failed'; readonly cause: unknown };

/** For fewer files, one call after the other is faster than the thread. */
const MIN_FOR_THREAD = 8;

interface SegmentReaderDeps {
  readonly store: SegmentStore;
  readonly clock: Clock;
  readonly tree: DayTree;
  /** Without it, every file is read through the store. */
  readonly thread: DetailsReader | undefined;
}

export class SegmentReader {
  readonly #deps: SegmentReaderDeps;

  constructor(deps: SegmentReaderDeps) {
    this.#deps = deps;
  }

  /** Reads the details of many files at once. Those that the thread cannot read are read by `details` later. */
  async readTogether(all: readonly SegmentRow[]): Promise<void> {
    const { store, thread } = this.#deps;
    const unknown = thread ? all.filter(({ rows, segment }) => !rows.details(segment)) : [];
    if (!thread || unknown.length < MIN_FOR_THREAD) return;
    const paths = await Promise.all(unknown.map((found) => store.locate(pathOf(found))));
    const read = await thread.read(paths);
    for (const [i, { rows, segment }] of unknown.entries()) {
      const details = read[i];
      if (details) rows.setDetails(segment, details);
    }
  }

  /** A closed segment as lists show it; undefined when its file is gone. Throws ArchiveError. */
  async listed(found: SegmentRow): Promise<Segment | undefined> {
    const details = await this.#details(found);
    return details && { ...details, path: pathOf(found), startMs: found.segment.startMs, isOpen: false };
  }

  /** Where a closed segment ends; undefined when its file is gone. Throws ArchiveError. */
  async endOf(found: SegmentRow, nextStartMs: number | undefined): Promise<number | undefined> {
    const details = await this.#details(found);
    return details && endOf(details, found.segment.startMs, nextStartMs);
  }

  /** The details in the file of a segment now. Never throws. */
  async read(segment: SegmentName): Promise<FileState> {
    const looked = await this.#look(formatPath(segment), segment.startMs);
    switch (looked.kind) {
      case 'closed':
        return { kind: 'closed', closed: closedSegment(segment, looked.details, looked.meta) };
      case 'foreign': {
        const { details } = looked;
        const { cameraId, startMs } = segment;
        const { clock, tree } = this.#deps;
        if (!hasSettled(details, startMs, clock.wallMs())) return { kind: 'open' };
        const endMs = endOf(details, startMs, tree.firstStart(cameraId, startMs + 1));
        return { kind: 'closed', closed: closedSegment(segment, { ...details, endMs }) };
      }
      case 'open':
        return { kind: 'open' };
      case 'missing':
        return { kind: (await this.#rootIsThere()) ? 'missing' : 'unreadable' };
      default:
        return { kind: 'unreadable' };
    }
  }

  /** Whether the file of a segment is gone for certain. Never throws. */
  async isMissing(segment: SegmentName): Promise<boolean> {
    const { store } = this.#deps;
    try {
      await store.fs.facts(await store.locate(formatPath(segment)));
      return false;
    } catch (err) {
      return errorCode(err) === 'ENOENT' && (await this.#rootIsThere());
    }
  }

  /** The details in a file; undefined when it is gone. Throws ArchiveError when not even its size can be read. */
  async #details(found: SegmentRow): Promise<SegmentDetails | undefined> {
    const { rows, segment } = found;
    const known = rows.details(segment);
    if (known) return known;
    const looked = await this.#look(pathOf(found), segment.startMs);
    switch (looked.kind) {
      case 'missing':
      case 'not-a-file':
        return undefined;
      case 'failed':
        throw new ArchiveError('a file of the archive cannot be read', { cause: looked.cause });
      case 'open':
      case 'unopened':
        // It is listed by its name and size.
        return looked.details;
      default: {
        const { details } = looked;
        const isFinal = looked.kind === 'closed' || hasSettled(details, segment.startMs, this.#deps.clock.wallMs());
        if (isFinal) rows.setDetails(segment, details);
        return details;
      }
    }
  }

  async #look(path: string, startMs: number): Promise<FileCheck> {
    const { store } = this.#deps;
    const absolute = await store.locate(path);
    let facts: FileFacts;
    try {
      facts = await store.fs.facts(absolute);
    } catch (cause) {
      return errorCode(cause) === 'ENOENT' ? { kind: 'missing' } : { kind: 'failed', cause };
    }
    // A directory with the name of a segment.
    if (!facts.isFile) return { kind: 'not-a-file' };
    let source: OpenFile | undefined;
    try {
      // One that is too short to contain anything is not opened.
      const opened = async (): Promise<OpenFile> => (source ??= await store.fs.open(absolute, 'read'));
      const file = await describeSegment(async (offset, length) => (await opened()).read(offset, length), facts);
      return underName(file, startMs);
    } catch {
      // It is listed by its name and size.
      const { sizeBytes, mtimeMs } = facts;
      return { kind: 'unopened', details: { sizeBytes, mtimeMs, sequence: 0 } };
    } finally {
      await quietly(source?.close());
    }
  }

  /** Whether the record path can be read at all: without its disk every file seems to be missing. */
  async #rootIsThere(): Promise<boolean> {
    const { store } = this.#deps;
    try {
      await store.disks.checkAll();
      const roots = await Promise.all(store.disks.all.map(({ root }) => store.fs.list(root)));
      return roots.every((names) => names.length > 0);
    } catch {
      // The disk is not there, so nothing is known of the file.
      return false;
    }
  }
}
