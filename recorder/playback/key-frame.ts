// Finds the key frame of a moment in the files of this node: the newest one that was captured at or before it, if footage covers
// the moment.

import type { Interval } from '../../base/interval.ts';
import { parsePath } from '../archive/disk/names.ts';
import { concat } from '../mp4/box.ts';
import { VIDEO_TRACK_ID } from '../mp4/fragment.ts';
import { readSetsInForce } from '../mp4/in-band-sets.ts';
import type { TrackHeader } from '../mp4/movie.ts';
import type { FileParts } from '../mp4/parts.ts';
import type { ArchiveFile, ArchiveFiles } from './archive-file.ts';
import { footageOf, wallAt, type Footage } from './footage.ts';
import { fragmentsFrom } from './fragments.ts';
import { partAt, wallOfPart } from './part-times.ts';
import { timed } from './sample-runs.ts';
import type { WholeDeps } from './whole.ts';

export interface KeyFrame {
  /** Distinguishes it from all others, also of other cameras. */
  readonly id: string;
  /** When it was captured, in whole milliseconds since 1970. */
  readonly timeMs: number;
  /** The picture of this moment is final: nothing that is written later can replace it. */
  readonly isSettled: boolean;
  readonly header: TrackHeader;
  /** With the parameter sets that it needs. Undefined if the file is gone. Rejects with the error of the system. */
  read(): Promise<Buffer | undefined>;
}

interface KeyFrameDeps extends Pick<WholeDeps, 'archive' | 'parts' | 'clock'> {
  readonly files: ArchiveFiles;
}

/** Ends of files and times of pictures deviate by this much. */
const HOLE_MS = 100;

/** `atMs`: whole milliseconds. Undefined where nothing is recorded. Rejects with ApiError if the archive cannot be read. */
export async function keyFrameAt(deps: KeyFrameDeps, cameraId: string, atMs: number): Promise<KeyFrame | undefined> {
  if (atMs > deps.clock.wallMs()) return undefined;
  // Times are reported in whole milliseconds, rounded down: a picture is found at the time that is reported for it.
  const lastMs = atMs + 0.999;
  const footage = await footageOf(deps, cameraId, { fromMs: atMs - HOLE_MS, toMs: atMs + 1 });
  const item = footage.findLast((one) => covers(timeOf(one), lastMs));
  const name = item && parsePath(item.path);
  if (!name) return undefined;
  let found: KeyFrame | undefined;
  await deps.files.use(name, async (file) => {
    const { parts } = item;
    const part = partAt(parts, lastMs);
    const frames = await keyFramesOf(file, parts, part);
    const at = frames.findLastIndex(({ wallMs }) => wallMs <= lastMs);
    const frame = frames[at];
    const header = parts.headers.find(({ trackId }) => trackId === VIDEO_TRACK_ID);
    if (!frame || !header) return;
    const isFollowed = at + 1 < frames.length || part + 1 < parts.times.length;
    found = {
      id: `${item.path} ${frame.offset}`,
      timeMs: Math.floor(frame.wallMs),
      isSettled: (isFollowed || parts.complete) && atMs < timeOf(item).toMs,
      header,
      async read() {
        let picture: Buffer | undefined;
        await deps.files.use(name, async (again) => {
          picture = await readPicture(again, header, frames, at);
        });
        return picture;
      },
    };
  });
  return found;
}

/** The file that is being written continues. */
const timeOf = ({ parts, isOpen }: Footage): Interval => ({
  fromMs: wallOfPart(parts, 0),
  toMs: isOpen && !parts.complete ? Infinity : wallOfPart(parts, parts.starts.length - 1),
});

const covers = ({ fromMs, toMs }: Interval, ms: number): boolean => fromMs <= ms && ms < toMs + HOLE_MS;

interface Found {
  readonly wallMs: number;
  readonly offset: number;
  readonly size: number;
}

async function keyFramesOf(file: ArchiveFile, parts: FileParts, part: number): Promise<Found[]> {
  const found: Found[] = [];
  const end = part + 1 < parts.starts.length ? part + 1 : undefined;
  for await (const runs of fragmentsFrom(file, parts, part, end)) {
    for (const run of runs) {
      if (run.track.trackId !== VIDEO_TRACK_ID) continue;
      for (const { sync, dts, compositionOffset, offset, size } of timed(run)) {
        if (sync) found.push({ wallMs: wallAt(parts, dts + compositionOffset), offset, size });
      }
    }
  }
  return found;
}

/** Only the sets in the part count, as for a player that begins there. */
async function readPicture(
  file: ArchiveFile,
  header: TrackHeader,
  frames: readonly Found[],
  at: number,
): Promise<Buffer | undefined> {
  const until = frames.slice(0, at + 1);
  const track = {
    header,
    offsets: until.map(({ offset }) => offset),
    sizes: until.map(({ size }) => size),
    syncs: until.map(() => 1),
  };
  const sets = (await readSetsInForce(file.read, track))?.(at);
  const { offset, size } = frames[at] as Found;
  const picture = await file.read(offset, size);
  if (picture.length < size) return undefined;
  return sets ? concat([sets, picture]) : picture;
}
