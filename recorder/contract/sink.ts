// The output of the camera room: one camera's runs, as calls to its archive and its live stream.

import type { AudioParameters } from '../codec/access-unit.ts';
import type { Sample, TrackParameters } from '../mp4/sample.ts';

/**
 * Why samples stop; each ends a segment. The same connection continues after `parameters`, `clock` (a clock step), `gap` (packets
 * were lost) and `stalled` (no packet was lost: the camera itself made no picture).
 */
export type EndReason = 'stopped' | 'camera-lost' | 'clock' | 'parameters' | 'gap' | 'stalled' | 'no-key-frame';

/** A sequence of samples on one timeline: one connection without a clock step. */
export interface Run {
  /** Unique per camera: a random 64-bit number as 16 hex digits. */
  readonly runId: string;
  /**
   * Valid from the next sample on. The leading track is the video, or the audio of a camera that offers nothing else: files start
   * and end at its sync samples.
   */
  readonly lead: TrackParameters;
  /** The audio beside the video. */
  readonly audio: AudioParameters | undefined;
}

/**
 * Gets one camera's samples in order, those of both tracks interleaved by arrival. All calls are synchronous and must return at
 * once: a receiver that cannot keep up must drop samples itself.
 */
export interface SampleSink {
  /** A new run starts. The first sample after it is a sync sample of the leading track. */
  begin(run: Run): void;
  /** Parameter sets change with the following sample (a sync sample), on the same timeline. */
  change(run: Run): void;
  sample(sample: Sample): void;
  /** The run is over; nothing follows until the next `begin`. */
  end(reason: EndReason): void;
}
