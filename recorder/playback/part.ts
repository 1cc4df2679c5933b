// A part of a file in, the same samples as fragments whose first picture is shown when it is decoded out.
//
// hls.js takes the decoding time of a part for the time at which it begins, and knows no edit lists. Where pictures are
// reordered (B-frames) ours are shown later than that, and the player would fall behind at each discontinuity. Most
// cameras do not reorder: parts of their files are the bytes on the disk.

import { VIDEO_TIMESCALE } from '../mp4/sample.ts';
import { AUDIO_TRACK_ID, VIDEO_TRACK_ID, buildFragment } from '../mp4/fragment.ts';
import type { FileParts } from '../mp4/parts.ts';
import type { ArchiveFile } from './archive-file.ts';
import type { Piece } from './body.ts';
import { fragmentsFrom } from './fragments.ts';
import { joined, ranges, timed, type SampleRun } from './sample-runs.ts';

/** Whether parts are ranges of the file as it lies there. */
export const isServedAsIs = ({ unit, shownFrom }: FileParts): boolean => unit === 'fragments' && shownFrom === 0;

export async function partPieces(file: ArchiveFile, parts: FileParts, part: number): Promise<Piece[]> {
  const audio = parts.headers.find(({ trackId }) => trackId === AUDIO_TRACK_ID);
  const audioShift = Math.round((parts.shownFrom * (audio?.timescale ?? 0)) / VIDEO_TIMESCALE);
  const pieces: Piece[] = [];
  let sequenceNumber = 0;
  for await (const runs of fragmentsFrom(file, parts, part, part + 1)) {
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

/** Without what is heard before the first picture is shown. */
function earlier(run: SampleRun, shift: number): SampleRun {
  if (shift === 0) return run;
  const samples = timed(run).filter(({ dts }) => dts >= shift);
  const baseDecodeTime = (samples[0]?.dts ?? shift) - shift;
  return { track: { ...run.track, baseDecodeTime, samples }, pieces: ranges(samples) };
}
