// The representation of a recorded file for players: a closed file is served as it is; a file that is still written, as if
// it had been closed after its last whole fragment.
//
// A growing file has no index and no length: a player could seek in it only by reading it completely. So players get a state
// of the file: the bytes up to the end of a fragment, with the placeholder turned into an `mdat` header and a final `moov`
// added (docs/design/recorded-files.md). Fragments do not change, so the number of bytes is enough to produce the same state
// again, even after the file was closed. A player that requests one range after another always sees the same file.

import { crc32 } from 'node:zlib';
import type { Clock } from '../../base/clock.ts';
import { MIN_RECORDING_BYTES } from '../archive/catalogue/segment.ts';
import { readLayout, type Layout } from '../mp4/reader.ts';
import { recover } from '../mp4/recover.ts';
import type { ArchiveFile } from '../footage/archive-file.ts';
import type { Piece } from '../footage/sample-runs.ts';
import { totalSize } from './body.ts';
import type { Selectable } from '../http/selection.ts';
import { Lru } from '../footage/lru.ts';

/** A body with its validators. */
export interface Representation extends Selectable {
  readonly pieces: readonly Piece[];
}

/** The bytes that turn the start of a growing file into a complete file. */
interface Ending {
  /** Number of bytes of the growing file in this state, up to the end of a fragment. */
  readonly wholeBytes: number;
  readonly tail: Buffer;
  readonly patch: { readonly offset: number; readonly bytes: Buffer };
  readonly endMs: number;
}

/** A few hundred states of files of five minutes. */
const MAX_ENDING_BYTES = 32 * 1024 * 1024;
const MAX_LAYOUTS = 10_000;

export class Recordings {
  readonly #endings: Lru<Ending>;
  readonly #layouts: Lru<Layout>;

  constructor(clock: Clock) {
    this.#endings = new Lru(clock, { capacity: MAX_ENDING_BYTES, weigh: ({ tail }) => tail.length + 200 });
    this.#layouts = new Lru(clock, { capacity: MAX_LAYOUTS });
  }

  /** The layout of a file that is no longer written. */
  async layoutOf(file: ArchiveFile): Promise<Layout> {
    const key = `${file.path} ${file.identity}`;
    const known = this.#layouts.get(key);
    if (known) return known;
    const layout: Layout =
      file.sizeBytes < MIN_RECORDING_BYTES ? { kind: 'foreign' } : await readLayout(file.read, file.sizeBytes);
    this.#layouts.set(key, layout);
    return layout;
  }

  whole(file: ArchiveFile): Representation {
    const { sizeBytes, mtimeMs } = file;
    return {
      pieces: [{ offset: 0, size: sizeBytes }],
      sizeBytes,
      etag: `"${sizeBytes.toString(16)}-${Math.round(mtimeMs).toString(16)}"`,
      modifiedMs: mtimeMs,
    };
  }

  /** The state in which the file had `bytes` bytes; undefined when it had no picture yet, or this recorder did not write it. */
  async stateAt(file: ArchiveFile, bytes: number): Promise<Representation | undefined> {
    const ending = await this.#ending(file, bytes);
    if (!ending) return undefined;
    const { wholeBytes, tail, patch, endMs } = ending;
    const patchEnd = patch.offset + patch.bytes.length;
    const pieces: Piece[] = [
      { offset: 0, size: patch.offset },
      patch.bytes,
      { offset: patchEnd, size: wholeBytes - patchEnd },
      tail,
    ];
    const etag = `"${wholeBytes.toString(16)}.${crc32(tail).toString(16)}"`;
    return { pieces, sizeBytes: totalSize(pieces), etag, modifiedMs: endMs };
  }

  /** The number of bytes in an entity tag of `stateAt`. */
  static bytesOfTag(etag: string): number | undefined {
    const hex = /^"([0-9a-f]{1,13})\.[0-9a-f]{1,8}"$/.exec(etag)?.[1];
    return hex === undefined ? undefined : Number.parseInt(hex, 16);
  }

  async #ending(file: ArchiveFile, bytes: number): Promise<Ending | undefined> {
    const size = Math.min(bytes, file.sizeBytes);
    const key = `${file.path} ${size}`;
    const known = this.#endings.get(key);
    if (known) return known;
    const read = (offset: number, length: number): Promise<Buffer> =>
      file.read(offset, Math.max(0, Math.min(length, size - offset)));
    const found = await recover(read, size, { written: true });
    if (found.kind !== 'recovered') return undefined;
    const { tail, patch, meta } = found.writer.finish();
    const ending: Ending = {
      wholeBytes: found.cutAt,
      tail,
      patch,
      endMs: meta.wallStartMs + meta.wallDurationMs,
    };
    this.#endings.set(key, ending);
    return ending;
  }
}
