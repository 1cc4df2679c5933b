// Makes the initialization segment of a live stream: `ftyp` and a `moov` without samples.

import { ownCopy } from '../../base/own-copy.ts';
import { concat } from './box.ts';
import { fragmentedFileType, fragmentedMovie, trackHeader, type TrackHeader } from './movie.ts';
import type { TrackParameters } from './sample.ts';

/**
 * The initialization segment for Media Source Extensions: `ftyp`, and `moov` with `mvex`. Video is track 1, audio track 2. Throws
 * Mp4Error for parameter sets that cannot be described.
 */
export const initSegment = (tracks: readonly TrackParameters[]): Buffer =>
  ownCopy(initSegmentOf(tracks.map(trackHeader)));

/** The same for tracks of a recorded file. `creationMs` is wall time in milliseconds; 0 if unknown. */
export const initSegmentOf = (headers: readonly TrackHeader[], creationMs = 0): Buffer =>
  concat([fragmentedFileType(), fragmentedMovie(headers, creationMs)]);
