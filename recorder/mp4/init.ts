// Track parameters in, the start of a file or a live stream out: `ftyp` and a `moov` without samples.

import type { TrackParameters } from './sample.ts';

/**
 * The initialization segment of a live stream, as Media Source Extensions want it: `ftyp`, and `moov` with `mvex`.
 * Video is track 1, audio track 2. Throws Mp4Error for parameter sets that cannot be described.
 */
export function initSegment(tracks: readonly TrackParameters[]): Buffer {
  void tracks;
  throw new Error('not yet');
}
