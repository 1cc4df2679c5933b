// What leaves the corridor: one camera's runs, as calls that its archive and its live stream receive.

import type { AudioParameters } from '../codec/access-unit.ts';
import type { Sample, TrackParameters } from '../mp4/sample.ts';

/**
 * Why samples stop; each ends a segment. The same connection goes on after `parameters`, `clock` (a clock was set),
 * `gap` (packets were lost on the way) and `stalled` (no packet was lost: the camera itself made no picture).
 */
export type EndReason = 'stopped' | 'camera-lost' | 'clock' | 'parameters' | 'gap' | 'stalled' | 'no-key-frame';

/** A stretch of samples on one timeline: one connection without a jump of its clock. */
export interface Run {
  /** Unique for a camera: a random 64-bit number as 16 hex digits. */
  readonly runId: string;
  /**
   * What samples refer to, valid from the next sample on. The track that leads is the video, or the sound of a camera that
   * offers nothing else: it carries the run, and files begin and end at its sync samples.
   */
  readonly lead: TrackParameters;
  /** Beside the video. */
  readonly audio: AudioParameters | undefined;
}

/**
 * Receives one camera's samples in order: those of both tracks interleaved by arrival. All calls are synchronous and must
 * return at once: a receiver that cannot keep up drops by itself.
 */
export interface SampleSink {
  /** A new run begins. The first sample after it is a sync sample of the track that leads. */
  begin(run: Run): void;
  /** Parameter sets changed at the sample that follows (a sync sample), on the same timeline. */
  change(run: Run): void;
  sample(sample: Sample): void;
  /** The run is over; nothing follows until the next `begin`. */
  end(reason: EndReason): void;
}
