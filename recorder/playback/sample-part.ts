// Samples of a file that has its index in front in, the same samples as one fragment out: for players that want
// fragments of files that have none.

import type { FragmentSample, FragmentTrack } from '../mp4/fragment.ts';
import { VIDEO_TRACK_ID, buildFragment } from '../mp4/fragment.ts';
import type { SampleIndex, TrackIndex } from '../mp4/sample-index.ts';
import { readSampleIndex } from '../mp4/sample-index.ts';
import { VIDEO_TIMESCALE } from '../mp4/sample.ts';
import type { ArchiveFile } from './archive-file.ts';
import type { Piece } from './body.ts';

export const readIndex = (file: ArchiveFile): Promise<SampleIndex> => readSampleIndex(file.read, file.sizeBytes);

/** A track's samples from `from` to before `to`, and where they lie. */
export interface SampleRun {
  readonly track: FragmentTrack;
  readonly pieces: readonly Piece[];
}

/** Pictures `from` to before `to` as a fragment, with the audio that goes with them. */
export function rangePart(index: SampleIndex, sequenceNumber: number, from: number, to: number): Piece[] {
  const runs = runsOf(index, from, to);
  const head = buildFragment(
    sequenceNumber,
    runs.map(({ track }) => track),
  );
  return [head, ...runs.flatMap(({ pieces }) => pieces)];
}

/** Video first; times are from the first picture of the file on, as in the fragments of other files. */
export function runsOf({ tracks }: SampleIndex, from: number, to: number): SampleRun[] {
  const video = tracks.find(({ header }) => header.trackId === VIDEO_TRACK_ID);
  if (!video) return [];
  const zero = video.dts[0] as number;
  const startDts = video.dts[from] as number;
  const endDts = to < video.dts.length ? (video.dts[to] as number) : Infinity;
  return tracks.map((track) => {
    if (track === video) return runOf(track, from, to, zero);
    const perTick = VIDEO_TIMESCALE / track.header.timescale;
    const first = from === 0 ? 0 : firstFrom(track, startDts / perTick);
    return runOf(track, first, firstFrom(track, endDts / perTick), zero / perTick);
  });
}

/** Number of the first sample at or behind `dts`. */
function firstFrom({ dts }: TrackIndex, time: number): number {
  let low = 0;
  let high = dts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((dts[middle] as number) < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function runOf(track: TrackIndex, from: number, to: number, zero: number): SampleRun {
  const { dts, endDts, offsets, sizes, compositionOffsets, syncs, header } = track;
  const samples: FragmentSample[] = [];
  const pieces: { offset: number; size: number }[] = [];
  for (let i = from; i < to; i++) {
    const size = sizes[i] as number;
    const next = i + 1 < dts.length ? (dts[i + 1] as number) : endDts;
    samples.push({
      size,
      duration: next - (dts[i] as number),
      compositionOffset: compositionOffsets[i] as number,
      sync: syncs[i] === 1,
    });
    const offset = offsets[i] as number;
    const last = pieces.at(-1);
    if (last && last.offset + last.size === offset) last.size += size;
    else pieces.push({ offset, size });
  }
  const baseDecodeTime = from < to ? Math.max(0, Math.round((dts[from] as number) - zero)) : 0;
  return { track: { trackId: header.trackId, baseDecodeTime, samples }, pieces };
}
