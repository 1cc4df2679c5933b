// What enters the mp4 room: samples with their times on the timeline of a run.

import type { AudioParameters, VideoParameters } from '../codec/access-unit.ts';
import type { MediaData } from '../codec/slab.ts';

export type TrackParameters = VideoParameters | AudioParameters;

/** Ticks a second of every track that leads: video, or sound that is alone. Audio beside video counts in its sampling rate. */
export const VIDEO_TIMESCALE = 90_000;
export const TICKS_PER_MS = VIDEO_TIMESCALE / 1000;

/** One access unit with its place in time. Its duration is the distance to the next sample's `dts`. */
export interface Sample {
  /** Its track's place: `video` is what leads, also where a camera offers only sound; `audio` goes with video. */
  readonly kind: 'video' | 'audio';
  /** Decoding time in ticks of the track's timescale, from the start of the run; an integer, grows by at least 1. */
  readonly dts: number;
  /** Presentation minus decoding time, in the same ticks; usually not negative. */
  readonly compositionOffset: number;
  /** Duration to use when no sample follows (end of the run, a gap): the usual distance, in ticks. */
  readonly usualDuration: number;
  /** Decoding can start here. */
  readonly sync: boolean;
  /** The receiver of a sample holds `data.slab` only while the call runs; it retains it to keep it longer. */
  readonly data: MediaData;
  /** Estimated wall-clock time at which the sample is shown (capture time), milliseconds since 1970. */
  readonly wallMs: number;
  /** Packets lost since the previous sample of the track. */
  readonly lostPackets: number;
}
