// Where the turn of a file ends because another node continues. Both nodes record the same pictures of the same
// encoder, but date them by different clocks, and in the first seconds of a connection by when they arrived. So times
// alone would lose pictures or play them twice: the turn ends at the key frame with which the other node begins. It is
// recognized by the sizes of the pictures from it on, and where they say nothing, by its time.

import { VIDEO_TRACK_ID } from '../mp4/fragment.ts';
import type { FileParts } from '../mp4/parts.ts';
import { VIDEO_TIMESCALE } from '../mp4/sample.ts';
import type { SampleIndex, TrackIndex } from '../mp4/sample-index.ts';
import { timeAt, type Footage, type Turn } from './footage.ts';
import { cutAt, firstOf, runsBetween, timed, type SampleRun, type TimedSample } from './sample-runs.ts';
import { firstPartOf } from './turns.ts';

/**
 * The dates of two nodes for the same picture differ by less, if nothing else is known of it. Key frames of most cameras are more than
 * twice as far apart.
 */
const SAME_KEY_FRAME_TICKS = VIDEO_TIMESCALE / 2;
/** Farther apart, the pictures are not looked for: the times of pictures have no larger errors (docs/design/time.md). */
const SAME_PICTURES_TICKS = 2.5 * VIDEO_TIMESCALE;
/** Two pictures may have equal sizes by chance, this many in a row have not. */
const IN_A_ROW = 3;

/** `fragments` of a file up to the end of its turn: when the first picture of the other node was captured, by the clock of that node. */
export const untilTurnEnds = (
  fragments: AsyncGenerator<readonly SampleRun[]>,
  parts: FileParts,
  turn: Pick<Turn, 'toMs' | 'next'> | undefined,
): AsyncGenerator<readonly SampleRun[]> =>
  !turn || turn.toMs === Infinity
    ? fragments
    : untilKeyFrame(fragments, parts.headers, timeAt(parts, turn.toMs), turn.next ?? []);

/**
 * The samples of a file that count in its turn, as `untilTurnEnds` leaves them, with their times in the file. Undefined if none
 * counts.
 */
export async function indexInTurn(
  index: SampleIndex,
  { parts, turn }: Pick<Footage, 'parts' | 'turn'>,
): Promise<SampleIndex | undefined> {
  const video = index.tracks.find(({ header }) => header.trackId === VIDEO_TRACK_ID);
  if (!turn || !video) return index;
  const startTime = parts.times[firstPartOf(parts, turn)] ?? Infinity;
  const from = video.dts.findIndex((dts) => dts - (video.dts[0] as number) >= startTime);
  if (from < 0) return undefined;
  const taken = new Map<number, { first: number; count: number }>();
  for await (const runs of untilTurnEnds(runsOf(index, from), parts, turn)) {
    for (const { track, pieces } of runs) {
      const [piece] = pieces;
      if (!piece || Buffer.isBuffer(piece)) continue;
      const { offsets } = index.tracks.find(({ header }) => header.trackId === track.trackId) as TrackIndex;
      const before = taken.get(track.trackId) ?? { first: offsets.indexOf(piece.offset), count: 0 };
      taken.set(track.trackId, { ...before, count: before.count + track.samples.length });
    }
  }
  if (!taken.has(VIDEO_TRACK_ID)) return undefined;
  const tracks = index.tracks.map((track) => {
    const { first = 0, count = 0 } = taken.get(track.header.trackId) ?? {};
    return samplesOf(track, first, first + count);
  });
  return { ...index, tracks };
}

async function* runsOf(index: SampleIndex, from: number): AsyncGenerator<readonly SampleRun[]> {
  yield* runsBetween(index, from, Infinity);
}

const samplesOf = ({ header, ...track }: TrackIndex, from: number, to: number): TrackIndex => ({
  header,
  offsets: track.offsets.subarray(from, to),
  sizes: track.sizes.subarray(from, to),
  dts: track.dts.subarray(from, to),
  compositionOffsets: track.compositionOffsets.subarray(from, to),
  syncs: track.syncs.subarray(from, to),
  endDts: to < track.dts.length ? (track.dts[to] as number) : track.endDts,
});

async function* untilKeyFrame(
  fragments: AsyncGenerator<readonly SampleRun[]>,
  headers: FileParts['headers'],
  endTime: number,
  next: FileParts['lead'],
): AsyncGenerator<readonly SampleRun[]> {
  const within = next.length < IN_A_ROW ? SAME_KEY_FRAME_TICKS : SAME_PICTURES_TICKS;
  const last: (readonly SampleRun[])[] = [];
  let isBegun = false;
  for await (const runs of fragments) {
    const pictures = picturesOf(runs);
    const lastTime = pictures.at(-1)?.dts ?? endTime;
    if (last.length > 0 || lastTime >= endTime - within) last.push(runs);
    else {
      isBegun = true;
      yield runs;
    }
    if ((pictures[0]?.dts ?? 0) > endTime + within) break;
  }
  const pictures = last.flatMap(picturesOf);
  // A turn has a picture: players do not expect an empty part.
  const first = isBegun ? 0 : 1;
  const keyFrame = keyFrameLike(next, pictures, first, endTime) ?? keyFrameAt(pictures.slice(first), endTime);
  // Half a picture: the same one may be dated a little earlier here.
  const end = keyFrame ? shownAt(keyFrame) : endTime - (pictures.at(-1)?.duration ?? 0) / 2;
  for (const runs of last) {
    yield runs.map((run) => {
      if (run.track.trackId === VIDEO_TRACK_ID) return keyFrame ? decodedBefore(run, keyFrame.dts) : cutAt(run, end);
      const { timescale = 0 } = headers.find(({ trackId }) => trackId === run.track.trackId) ?? {};
      return cutAt(run, (end * timescale) / VIDEO_TIMESCALE);
    });
  }
}

const shownAt = ({ dts, compositionOffset }: TimedSample): number => dts + compositionOffset;

const picturesOf = (runs: readonly SampleRun[]): TimedSample[] =>
  runs.filter(({ track }) => track.trackId === VIDEO_TRACK_ID).flatMap(timed);

/** The key frame that the other node dates `time`: the nearest one. */
const keyFrameAt = (pictures: readonly TimedSample[], time: number): TimedSample | undefined =>
  nearest(
    pictures.filter((one) => one.sync && Math.abs(shownAt(one) - time) < SAME_KEY_FRAME_TICKS),
    time,
  );

/** The first key frame, at `first` or later, whose picture and the pictures after it have the sizes that `next` has. */
function keyFrameLike(
  next: FileParts['lead'],
  pictures: readonly TimedSample[],
  first: number,
  time: number,
): TimedSample | undefined {
  const isLike = (at: number): boolean => {
    const count = Math.min(next.length, pictures.length - at);
    return count >= IN_A_ROW && next.slice(0, count).every((size, i) => pictures[at + i]?.size === size);
  };
  return nearest(
    pictures.filter((one, i) => i >= first && one.sync && isLike(i)),
    time,
  );
}

const nearest = (pictures: readonly TimedSample[], time: number): TimedSample | undefined =>
  pictures.reduce<TimedSample | undefined>(
    (best, one) => (best && Math.abs(shownAt(best) - time) <= Math.abs(shownAt(one) - time) ? best : one),
    undefined,
  );

function decodedBefore(run: SampleRun, dts: number): SampleRun {
  const count = timed(run).findIndex((sample) => sample.dts >= dts);
  return count < 0 ? run : firstOf(run, count);
}
