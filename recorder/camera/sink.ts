// What leaves the corridor: one camera's runs, as calls that its archive and its live stream receive.

import type { AudioParameters, VideoParameters } from '../codec/access-unit.ts';
import type { Sample } from '../mp4/sample.ts';

/** Why samples stop: `gap` and the others end a segment; after `parameters` and `clock` the same connection goes on. */
export type EndReason = 'stopped' | 'camera-lost' | 'clock' | 'parameters' | 'gap' | 'no-key-frame';

/** A stretch of samples on one timeline: one connection without a jump of its clock. */
export interface Run {
  /** Unique for a camera: a random 64-bit number as 16 hex digits. */
  readonly runId: string;
  /** What samples refer to, valid from the next sample on. */
  readonly video: VideoParameters;
  readonly audio: AudioParameters | undefined;
}

/**
 * Receives one camera's samples in order: video and audio interleaved by arrival. All calls are synchronous and must
 * return at once: a receiver that cannot keep up drops by itself.
 */
export interface SampleSink {
  /** A new run begins. The first sample after it is a video sync sample. */
  begin(run: Run): void;
  /** Parameter sets changed at the sample that follows (a sync sample), on the same timeline. */
  change(run: Run): void;
  sample(sample: Sample): void;
  /** The run is over; nothing follows until the next `begin`. */
  end(reason: EndReason): void;
}
