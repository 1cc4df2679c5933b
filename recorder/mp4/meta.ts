// What a recorded file says about itself beside its samples: camera, run, wall clock.

/**
 * How far the wall time of a file can be trusted: `settled` when the run's clock had seen enough frames to know the
 * least delayed one, `settling` in the first seconds of a run, `unknown` for files finished by recovery of other clocks.
 */
export type ClockQuality = 'unknown' | 'settling' | 'settled';

/** Known when a file is opened. */
export interface SegmentMeta {
  readonly cameraId: string;
  /** 16 hex digits. */
  readonly runId: string;
  /** Place of the segment in its run, from 0. */
  readonly sequence: number;
  /** Wall time at which the first picture shown was captured, milliseconds since 1970; kept to the nanosecond. */
  readonly wallStartMs: number;
  readonly clock: ClockQuality;
  /** Time without recording just before this file, as far as known. */
  readonly gapBeforeMs: number;
}

/** Known when a file is closed; what is left out stays as it was at opening. */
export interface SegmentClosing {
  readonly wallStartMs?: number;
  readonly clock?: ClockQuality;
  readonly gapBeforeMs?: number;
  /** Wall time from the first picture shown to the end of the last; left out: the media duration. */
  readonly wallDurationMs?: number;
  readonly lostPackets?: number;
}

/** One track, as an index row wants it. */
export interface TrackSummary {
  readonly kind: 'video' | 'audio';
  readonly codecString: string;
  /** Pixels; 0 for audio. */
  readonly width: number;
  readonly height: number;
  /** 0 for video. */
  readonly sampleRate: number;
  readonly channels: number;
}

/** Everything the `uuid` box of a file holds. */
export interface RecordedMeta extends SegmentMeta {
  /** 0 while the file is open. */
  readonly wallDurationMs: number;
  readonly mediaDurationMs: number;
  readonly lostPackets: number;
  readonly tracks: readonly TrackSummary[];
}
