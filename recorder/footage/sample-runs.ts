// Runs of consecutive samples of a track, with the positions of their bytes in a file. They come from a fragment, or from
// the sample index of a file without fragments.

import { VIDEO_TRACK_ID, type FragmentSample, type FragmentTrack } from '../mp4/fragment.ts';
import type { SampleIndex, TrackIndex } from '../mp4/sample-index.ts';
import { VIDEO_TIMESCALE } from '../mp4/sample.ts';

/** `size` bytes of a file from `offset`, or bytes in memory. */
export type Piece = { readonly offset: number; readonly size: number } | Buffer;

/** A sample with its time and its position in a file. */
export interface TimedSample extends FragmentSample {
  readonly dts: number;
  readonly offset: number;
}

/** Consecutive samples of a track, and the pieces of the file that contain them. */
export interface SampleRun {
  readonly track: FragmentTrack;
  readonly pieces: readonly Piece[];
}

/** The pictures from `from` to before `to` with their audio; times count from the first picture, as in fragments. */
function runsOf({ tracks }: SampleIndex, from: number, to: number): SampleRun[] {
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

/** About a second of pictures. */
const PICTURES = 25;

/** Runs of the pictures from `from` to before `to` or the end of the file, about a second each. */
export function* runsBetween(index: SampleIndex, from: number, to: number): Generator<SampleRun[]> {
  const pictures = index.tracks.find(({ header }) => header.trackId === VIDEO_TRACK_ID)?.dts.length ?? 0;
  const end = Math.min(to, pictures);
  for (let at = from; at < end; at += PICTURES) yield runsOf(index, at, Math.min(end, at + PICTURES));
}

/** Index of the first sample at or after `time`. */
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

/** The runs of a fragment in a file. */
export function runsInFile(tracks: readonly FragmentTrack[], payloadOffset: number): SampleRun[] {
  let offset = payloadOffset;
  return tracks.map((track) => {
    let size = 0;
    for (let i = 0; i < track.samples.length; i++) size += sampleAt(track, i).size;
    const pieces = [{ offset, size }];
    offset += size;
    return { track, pieces };
  });
}

const sampleAt = ({ samples }: FragmentTrack, i: number): FragmentSample => samples[i] as FragmentSample;

export function durationOf(track: FragmentTrack): number {
  let duration = 0;
  for (let i = 0; i < track.samples.length; i++) duration += sampleAt(track, i).duration;
  return duration;
}

/** Each sample with its own time and position. The samples of a run are stored in its pieces one after the other. */
export function timed({ track, pieces }: SampleRun): TimedSample[] {
  const found: TimedSample[] = [];
  let dts = track.baseDecodeTime;
  let piece = 0;
  let used = 0;
  for (let i = 0; i < track.samples.length; i++) {
    const sample = sampleAt(track, i);
    let range = pieces[piece] as { offset: number; size: number };
    while (used >= range.size && piece + 1 < pieces.length) {
      range = pieces[++piece] as { offset: number; size: number };
      used = 0;
    }
    found.push({ ...sample, dts, offset: range.offset + used });
    dts += sample.duration;
    used += sample.size;
  }
  return found;
}

/** The run up to a time in ticks of its track; the run itself when it ends before. */
export function cutAt(run: SampleRun, endTime: number): SampleRun {
  const { track } = run;
  let dts = track.baseDecodeTime;
  for (let i = 0; i < track.samples.length; i++) {
    if (dts >= endTime) {
      return firstOf(run, wantedBefore(timed(run).slice(0, i), endTime));
    }
    dts += sampleAt(track, i).duration;
  }
  return run;
}

/** The first `count` samples of a run. */
export function firstOf(run: SampleRun, count: number): SampleRun {
  const samples = timed(run).slice(0, count);
  return { track: { ...run.track, samples }, pieces: ranges(samples) };
}

/** The number of samples without those at the end that are shown after the interval. */
export function wantedBefore(samples: readonly TimedSample[], endTime: number): number {
  let count = samples.length;
  const shownAt = ({ dts, compositionOffset }: TimedSample): number => dts + compositionOffset;
  while (count > 0 && shownAt(samples[count - 1] as TimedSample) >= endTime) count--;
  return count;
}

export const ranges = (samples: readonly (FragmentSample & { readonly offset: number })[]): Piece[] =>
  joined(samples.map(({ offset, size }) => ({ offset, size })));

/** Joins adjacent ranges, so that a fragment is read at once. */
export function joined(pieces: readonly Piece[]): Piece[] {
  const found: (Buffer | { offset: number; size: number })[] = [];
  for (const piece of pieces) {
    const last = found.at(-1);
    if (Buffer.isBuffer(piece)) found.push(piece);
    else if (last && !Buffer.isBuffer(last) && last.offset + last.size === piece.offset) last.size += piece.size;
    else found.push({ offset: piece.offset, size: piece.size });
  }
  return found;
}
