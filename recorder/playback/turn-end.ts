// Where the turn of a file ends because another node continues. Both nodes record the same pictures of the same
// encoder, but date them by different clocks, and in the first seconds of a connection by when they arrived. So times
// alone would lose pictures or play them twice: the turn ends at the key frame with which the other node begins.

import { VIDEO_TRACK_ID } from '../mp4/fragment.ts';
import type { FileParts } from '../mp4/parts.ts';
import { VIDEO_TIMESCALE } from '../mp4/sample.ts';
import { timeAt } from './footage.ts';
import { cutAt, firstOf, timed, type SampleRun, type TimedSample } from './sample-runs.ts';

/**
 * The dates of two nodes for the same picture differ by less. Key frames of most cameras are more than twice as far
 * apart.
 */
const SAME_KEY_FRAME_TICKS = VIDEO_TIMESCALE / 2;

/**
 * `fragments` of a file up to `untilMs`: when the first picture of the other node was captured, by the clock of that
 * node.
 */
export const untilTurnEnds = (
  fragments: AsyncGenerator<readonly SampleRun[]>,
  parts: FileParts,
  untilMs: number,
): AsyncGenerator<readonly SampleRun[]> =>
  untilMs === Infinity ? fragments : untilKeyFrame(fragments, parts.headers, timeAt(parts, untilMs));

async function* untilKeyFrame(
  fragments: AsyncGenerator<readonly SampleRun[]>,
  headers: FileParts['headers'],
  endTime: number,
): AsyncGenerator<readonly SampleRun[]> {
  const last: (readonly SampleRun[])[] = [];
  let isBegun = false;
  for await (const runs of fragments) {
    const pictures = picturesOf(runs);
    const lastTime = pictures.at(-1)?.dts ?? endTime;
    if (last.length > 0 || lastTime >= endTime - SAME_KEY_FRAME_TICKS) last.push(runs);
    else {
      isBegun = true;
      yield runs;
    }
    if ((pictures[0]?.dts ?? 0) > endTime + SAME_KEY_FRAME_TICKS) break;
  }
  const pictures = last.flatMap(picturesOf);
  // A turn has a picture: players do not expect an empty part.
  const keyFrame = keyFrameAt(isBegun ? pictures : pictures.slice(1), endTime);
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
function keyFrameAt(pictures: readonly TimedSample[], time: number): TimedSample | undefined {
  const offBy = (picture: TimedSample): number => Math.abs(shownAt(picture) - time);
  return pictures
    .filter((picture) => picture.sync && offBy(picture) < SAME_KEY_FRAME_TICKS)
    .reduce<TimedSample | undefined>((best, one) => (best && offBy(best) <= offBy(one) ? best : one), undefined);
}

function decodedBefore(run: SampleRun, dts: number): SampleRun {
  const count = timed(run).findIndex((sample) => sample.dts >= dts);
  return count < 0 ? run : firstOf(run, count);
}
