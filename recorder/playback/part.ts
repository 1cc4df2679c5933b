// Rewrites a part of a file into fragments whose first picture is shown when it is decoded.
//
// hls.js uses the decoding time of a part as its start, and does not support edit lists. If pictures are reordered
// (B-frames), they are shown later than that, and the player would fall behind at each discontinuity. Most cameras do not
// reorder: parts of their files are served unchanged from the disk.

import { VIDEO_TIMESCALE } from '../mp4/sample.ts';
import { AUDIO_TRACK_ID, VIDEO_TRACK_ID, buildFragment } from '../mp4/fragment.ts';
import type { FileParts } from '../mp4/parts.ts';
import type { PlayedFile } from '../footage/archive-file.ts';
import type { Turn } from '../footage/footage.ts';
import { fragmentsFrom } from '../footage/fragments.ts';
import { joined, ranges, timed, type SampleRun, type Piece } from '../footage/sample-runs.ts';
import { untilTurnEnds } from '../footage/turn-end.ts';

/** Whether parts are served as byte ranges of the file. */
export const isServedAsIs = ({ unit, shownFrom }: FileParts): boolean => unit === 'fragments' && shownFrom === 0;

/** `end`: where another node continues, if the part ends there. */
export async function partPieces(
  file: PlayedFile,
  parts: FileParts,
  part: number,
  end?: Pick<Turn, 'toMs' | 'next'>,
): Promise<Piece[]> {
  const audio = parts.headers.find(({ trackId }) => trackId === AUDIO_TRACK_ID);
  const audioShift = Math.round((parts.shownFrom * (audio?.timescale ?? 0)) / VIDEO_TIMESCALE);
  const pieces: Piece[] = [];
  let sequenceNumber = 0;
  // The key frame with which the other node continues may be after the part.
  const further = end ? undefined : part + 1;
  for await (const runs of untilTurnEnds(fragmentsFrom(file, parts, part, further), parts, end)) {
    const shifted = runs.map((run) =>
      run.track.trackId === VIDEO_TRACK_ID ? shownAtOnce(run, parts.shownFrom) : earlier(run, audioShift),
    );
    const tracks = shifted.map(({ track }) => track);
    if (tracks.every(({ samples }) => samples.length === 0)) continue;
    pieces.push(buildFragment(++sequenceNumber, tracks), ...shifted.flatMap(({ pieces }) => pieces));
  }
  return joined(pieces);
}

function shownAtOnce({ track, pieces }: SampleRun, shownFrom: number): SampleRun {
  const samples = Array.from(track.samples, (sample) => ({
    ...sample,
    compositionOffset: sample.compositionOffset - shownFrom,
  }));
  return { track: { ...track, samples }, pieces };
}

/** Moves the samples earlier, without the sound before the first picture. */
function earlier(run: SampleRun, shift: number): SampleRun {
  if (shift === 0) return run;
  const samples = timed(run).filter(({ dts }) => dts >= shift);
  const baseDecodeTime = (samples[0]?.dts ?? shift) - shift;
  return { track: { ...run.track, baseDecodeTime, samples }, pieces: ranges(samples) };
}
