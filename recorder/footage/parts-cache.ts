// Knows the parts of segments. Those of closed files are cached; of an open file, only the data since the last read are read.

import type { Clock } from '../../base/clock.ts';
import type { OpenSegment } from '../archive/catalogue/segment.ts';
import { parsePath } from '../archive/disk/names.ts';
import { Mp4Error } from '../mp4/error.ts';
import { GrowingParts, readParts, type FileParts } from '../mp4/parts.ts';
import { readLayout } from '../mp4/reader.ts';
import type { ArchiveFile, ArchiveFiles } from './archive-file.ts';
import { Lru } from './lru.ts';

interface PartsCacheOptions {
  readonly files: ArchiveFiles;
  readonly archive: { openEntries(cameraId: string): readonly OpenSegment[] | Promise<readonly OpenSegment[]> };
  readonly clock: Clock;
}

/** About 8000 files, and 50 MB with their lines in playlists: five minutes of video have 50 parts of two numbers each. */
const MAX_PART_NUMBERS = 1_200_000;
const MAX_GROWING = 500;
const NUMBERS_BESIDE_PARTS = 50;

/** A segment as listings have it. */
interface SegmentRef {
  readonly path: string;
  readonly sizeBytes: number;
}

export class PartsCache {
  readonly #options: PartsCacheOptions;
  readonly #closed: Lru<FileParts>;
  readonly #growing: Lru<GrowingParts>;
  /** Simultaneous requests for the same file share one read. */
  readonly #reading = new Map<string, Promise<FileParts | undefined>>();

  constructor(options: PartsCacheOptions) {
    this.#options = options;
    this.#closed = new Lru(options.clock, {
      capacity: MAX_PART_NUMBERS,
      weigh: ({ starts }) => NUMBERS_BESIDE_PARTS + 2 * starts.length,
    });
    this.#growing = new Lru(options.clock, { capacity: MAX_GROWING });
  }

  /** Undefined when the file is gone or has nothing to play (yet). Rejects with the error of the system. */
  partsOf(segment: SegmentRef): FileParts | undefined | Promise<FileParts | undefined> {
    const known = this.#closed.get(keyOf(segment));
    if (known) return known;
    const { path } = segment;
    const reading = this.#reading.get(path) ?? this.#read(path).finally(() => this.#reading.delete(path));
    this.#reading.set(path, reading);
    return reading;
  }

  async #read(path: string): Promise<FileParts | undefined> {
    const name = parsePath(path);
    const file = name && (await this.#options.files.open(name));
    if (!file) return undefined;
    try {
      const entries = await this.#options.archive.openEntries(file.segment.cameraId);
      const open = entries.find((entry) => entry.path === path);
      if (open) return await this.#readGrowing(file, open);
      this.#growing.delete(path);
      const parts = await readParts(file.read, file.sizeBytes);
      if (parts) this.#closed.set(keyOf(file), parts);
      return parts;
    } catch (err) {
      // A damaged file is left out; the others can be played.
      if (err instanceof Mp4Error) return undefined;
      throw err;
    } finally {
      await file.close();
    }
  }

  async #readGrowing(file: ArchiveFile, { format, sizeBytes }: OpenSegment): Promise<FileParts | undefined> {
    if (format === 'mp4') return undefined;
    const known = this.#growing.get(file.path);
    if (known) {
      await known.extend(file.read, sizeBytes);
      return known.settled;
    }
    const layout = await readLayout(file.read, sizeBytes);
    if (layout.kind !== 'open') return undefined;
    const growing = await GrowingParts.read(file.read, layout.moov, sizeBytes);
    this.#growing.set(file.path, growing);
    return growing.settled;
  }
}

/** The size distinguishes a file that was replaced, which `record.format: mp4` does at the end of a segment. */
const keyOf = ({ path, sizeBytes }: SegmentRef): string => `${path} ${sizeBytes}`;
