// Finds the key frame of a moment in the files of this node, or of all holders: the newest one that was captured at or before it, if footage covers
// the moment.

import type { Interval } from '../../base/interval.ts';
import { concat } from '../mp4/box.ts';
import { VIDEO_TRACK_ID } from '../mp4/fragment.ts';
import { readSetsInForce } from '../mp4/in-band-sets.ts';
import { MIN_GAP_MS } from '../mp4/join.ts';
import type { TrackHeader } from '../mp4/movie.ts';
import type { Asker } from '../peers/peer-requests.ts';
import type { FileParts } from '../mp4/parts.ts';
import type { PlayedFile } from '../footage/archive-file.ts';
import { wallAt } from '../footage/footage.ts';
import { fragmentsFrom } from '../footage/fragments.ts';
import { partAt } from '../footage/part-times.ts';
import { timed } from '../footage/sample-runs.ts';
import { countedTime } from '../footage/turns.ts';
import { collected, nothingToPlay, type WholeDeps } from './whole.ts';

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

/**
 * `atMs`: whole milliseconds. `by`: who asks for the footage of all holders; without it, that of this node. Undefined where nothing is
 * recorded. Rejects with ApiError if the archive cannot be read, or the only holders that may have footage do not answer.
 */
export async function keyFrameAt(
  { footage, clock }: WholeDeps,
  cameraId: string,
  atMs: number,
  by: Asker | undefined,
): Promise<KeyFrame | undefined> {
  if (atMs > clock.wallMs()) return undefined;
  // Times are reported in whole milliseconds, rounded down: a picture is found at the time that is reported for it.
  const lastMs = atMs + 0.999;
  const interval = { fromMs: atMs - MIN_GAP_MS, toMs: atMs + 1 };
  const found = await collected(footage, cameraId, interval, by);
  const item = found.footage.findLast((one) => covers(countedTime(one), lastMs));
  if (!item && found.elsewhere.length > 0) throw nothingToPlay(found.elsewhere);
  if (!item) return undefined;
  const caller = by ?? { name: '', credential: undefined };
  const { parts } = item;
  let frame: KeyFrame | undefined;
  await footage.use(item, caller, async (file) => {
    const part = partAt(parts, lastMs);
    const frames = await keyFramesOf(file, parts, part);
    const at = frames.findLastIndex(({ wallMs }) => wallMs <= lastMs);
    const shown = frames[at];
    const header = parts.headers.find(({ trackId }) => trackId === VIDEO_TRACK_ID);
    if (!shown || !header) return;
    const isFollowed = at + 1 < frames.length || part + 1 < parts.times.length;
    frame = {
      id: `${item.nodeId} ${item.path} ${shown.offset}`,
      timeMs: Math.floor(shown.wallMs),
      isSettled: found.elsewhere.length === 0 && (isFollowed || parts.complete) && atMs < countedTime(item).toMs,
      header,
      async read() {
        let picture: Buffer | undefined;
        await footage.use(item, caller, async (again) => {
          picture = await readPicture(again, header, frames, at);
        });
        return picture;
      },
    };
  });
  return frame;
}

const covers = ({ fromMs, toMs }: Interval, ms: number): boolean => fromMs <= ms && ms < toMs + MIN_GAP_MS;

interface KeyFramePlace {
  readonly wallMs: number;
  readonly offset: number;
  readonly size: number;
}

async function keyFramesOf(file: PlayedFile, parts: FileParts, part: number): Promise<KeyFramePlace[]> {
  const found: KeyFramePlace[] = [];
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
  file: PlayedFile,
  header: TrackHeader,
  frames: readonly KeyFramePlace[],
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
  const { offset, size } = frames[at] as KeyFramePlace;
  const picture = await file.read(offset, size);
  if (picture.length < size) return undefined;
  return sets ? concat([sets, picture]) : picture;
}
