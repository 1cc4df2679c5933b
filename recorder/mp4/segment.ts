// One recorded file as a value machine: samples' sizes and times in, the bytes around the samples out.

import type { VideoParameters } from '../codec/access-unit.ts';
import type { FragmentTrack } from './fragment.ts';
import type { SegmentClosing, SegmentMeta } from './meta.ts';
import type { TrackParameters } from './sample.ts';

/** What completes a file: write `tail` at its end, sync, overwrite `patch.bytes` at `patch.offset`, sync. */
export interface SegmentEnd {
  readonly tail: Buffer;
  readonly patch: { readonly offset: number; readonly bytes: Buffer };
}

/** A file rewritten with its `moov` in front: write `header`, then copy each range of the fragmented file. */
export interface ProgressiveFile {
  readonly header: Buffer;
  readonly ranges: readonly { readonly offset: number; readonly size: number }[];
}

/**
 * A hybrid MP4: `ftyp | free | moov(mvex) | moof mdat …` while it grows, so that every whole fragment survives a crash;
 * `finish` appends a full `moov` and turns `free` into one `mdat` that hides the fragments, so that the finished file
 * is a plain MP4. Times are file-local: 0 is the first video sample's dts, for both tracks.
 *
 * For `record.format: mp4` the growing file is the same (so is its crash safety); it is not served, and when it is
 * closed the archive writes `progressive` to a new file and renames it over the old one.
 */
export class SegmentWriter {
  constructor(tracks: readonly TrackParameters[], meta: SegmentMeta) {
    this.reset(tracks, meta);
  }

  /** Bytes the file has when everything handed out so far (and the samples) is written. */
  get size(): number {
    throw new Error('not yet');
  }

  /** Duration shown so far, in milliseconds. */
  get mediaDurationMs(): number {
    throw new Error('not yet');
  }

  /** The first bytes of the file. */
  header(): Buffer {
    throw new Error('not yet');
  }

  /** The head of the next fragment; the caller writes it, then all samples of the first track, then of the second. */
  append(tracks: readonly FragmentTrack[]): Buffer {
    void tracks;
    throw new Error('not yet');
  }

  /** Parameter sets changed in band: the presentation size is the largest. */
  change(video: VideoParameters): void {
    void video;
    throw new Error('not yet');
  }

  /** After a failed write: forgets fragments that end beyond `fileSize`; returns the size to truncate the file to. */
  rollback(fileSize: number): number {
    void fileSize;
    throw new Error('not yet');
  }

  finish(closing?: SegmentClosing): SegmentEnd {
    void closing;
    throw new Error('not yet');
  }

  progressive(closing?: SegmentClosing): ProgressiveFile {
    void closing;
    throw new Error('not yet');
  }

  /** Starts the next file with the tables' memory of this one. */
  reset(tracks: readonly TrackParameters[], meta: SegmentMeta): void {
    void [tracks, meta];
    throw new Error('not yet');
  }
}
