// Reads a camera's footage from the files on the disks of all nodes, without asking a recorder. Closed files state their wall
// time; a file that is being written (or was when its node died) is read up to its last complete fragment.

import { readdirSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../../base/error.ts';
import { dayPath, parseBaseName } from '../../../recorder/archive/disk/names.ts';
import { readFragmentAt } from '../../../recorder/mp4/read-fragment.ts';
import { readLayout, readMeta, type ReadAt } from '../../../recorder/mp4/reader.ts';

/** The footage of one file, on the wall clock. */
export interface Piece {
  readonly node: string;
  readonly camera: string;
  readonly path: string;
  /** Capture time of its first picture and end of its last one, in milliseconds since 1970. */
  readonly fromMs: number;
  readonly toMs: number;
  /** It is still being written, or was when its node died. */
  readonly isOpen: boolean;
}

export interface Disk {
  readonly node: string;
  /** Root of its archive. */
  readonly root: string;
}

/** What the name of a file says. */
interface NamedFile {
  readonly camera: string;
  readonly startMs: number;
  readonly path: string;
}

const DAY_MS = 86_400_000;
const TICKS_PER_MS = 90;
/** A segment is named after its first picture; the one that contains `fromMs` started at most this long before. */
export const SEGMENT_SECONDS = 60;
const MAX_SEGMENT_MS = 2 * SEGMENT_SECONDS * 1000;

/** The files that started at `fromMs` or later according to their names. */
export function filesSince(root: string, fromMs: number): readonly NamedFile[] {
  const files: NamedFile[] = [];
  for (let dayMs = Math.floor(fromMs / DAY_MS) * DAY_MS; dayMs <= Date.now(); dayMs += DAY_MS) {
    const directory = join(root, dayPath(dayMs));
    for (const name of namesIn(directory)) {
      const parsed = parseBaseName(name);
      if (!parsed || parsed.startMs < fromMs) continue;
      files.push({ camera: parsed.cameraId, startMs: parsed.startMs, path: join(directory, name) });
    }
  }
  return files;
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch (err) {
    if (errorCode(err) === 'ENOENT') return [];
    throw err;
  }
}

/** Footage of the cameras from `fromMs` on, on all disks; pieces may start before it. */
export async function footageOf(
  disks: readonly Disk[],
  cameras: readonly string[],
  fromMs: number,
): Promise<ReadonlyMap<string, readonly Piece[]>> {
  const pieces = new Map<string, Piece[]>(cameras.map((camera) => [camera, []]));
  for (const { node, root } of disks) {
    for (const { camera, path } of filesSince(root, fromMs - MAX_SEGMENT_MS)) {
      const own = pieces.get(camera);
      const piece = own && (await readPiece(path));
      if (piece && piece.toMs > fromMs) own.push({ node, camera, path, ...piece });
    }
  }
  return pieces;
}

type Span = Pick<Piece, 'fromMs' | 'toMs' | 'isOpen'>;

/** Undefined: the file contains no picture. */
async function readPiece(path: string): Promise<Span | undefined> {
  const handle = await open(path).catch((err: unknown) => {
    if (errorCode(err) === 'ENOENT') return undefined; // removed by retention or recovery
    throw err;
  });
  if (!handle) return undefined;
  try {
    const { size } = await handle.stat();
    const read: ReadAt = async (offset, length) => {
      const buffer = Buffer.allocUnsafe(Math.max(0, Math.min(length, size - offset)));
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, offset);
      return buffer.subarray(0, bytesRead);
    };
    const state = await readMeta(read, size);
    if (state.kind === 'foreign' || !state.meta) return undefined;
    const { wallStartMs, wallDurationMs } = state.meta;
    if (state.kind === 'finalized') return { fromMs: wallStartMs, toMs: wallStartMs + wallDurationMs, isOpen: false };
    const durationMs = await writtenMs(read, size);
    return durationMs === 0 ? undefined : { fromMs: wallStartMs, toMs: wallStartMs + durationMs, isOpen: true };
  } finally {
    await handle.close();
  }
}

/** Media time of the complete fragments of a growing file. */
async function writtenMs(read: ReadAt, size: number): Promise<number> {
  const layout = await readLayout(read, size);
  if (layout.kind !== 'open') return 0;
  let ticks = 0;
  for (let at = layout.moov.offset + layout.moov.size; ;) {
    const fragment = await readFragmentAt(read, size, at);
    if (!fragment) return ticks / TICKS_PER_MS;
    const [video] = fragment.tracks;
    const { samples = [] } = video ?? {};
    for (let i = 0; i < samples.length; i++) ticks += samples[i]?.duration ?? 0;
    at = fragment.end;
  }
}

/** Whether the first complete fragment of a file is on the disk. */
export const hasPicture = async (path: string): Promise<boolean> => (await readPiece(path)) !== undefined;

/** A shorter time between two recordings is not a gap: names and adjusted clocks are not more precise (docs/design/gaps.md). */
const MIN_GAP_MS = 100;

interface Hole {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The periods in [fromMs, toMs) that no piece covers. */
export function holesIn(pieces: readonly Piece[], fromMs: number, toMs: number): readonly Hole[] {
  const holes: Hole[] = [];
  let coveredTo = fromMs;
  const add = (nextMs: number): void => {
    if (nextMs - coveredTo >= MIN_GAP_MS) holes.push({ fromMs: coveredTo, toMs: nextMs });
  };
  for (const piece of pieces.toSorted((a, b) => a.fromMs - b.fromMs)) {
    if (piece.toMs <= coveredTo || piece.fromMs >= toMs) continue;
    add(piece.fromMs);
    coveredTo = piece.toMs;
  }
  add(toMs);
  return holes;
}

/** The end of a camera's newest footage in milliseconds since 1970; 0 if there is none. */
export const endOf = (pieces: readonly Piece[]): number => Math.max(0, ...pieces.map(({ toMs }) => toMs));
