// The input of the mp4 room: samples with their times on the timeline of a run.

import type { AudioParameters, VideoParameters } from '../codec/access-unit.ts';
import type { MediaData } from '../codec/slab.ts';

export type TrackParameters = VideoParameters | AudioParameters;

/** Ticks per second of every leading track: video, or audio without video. Audio beside video uses its sampling rate. */
export const VIDEO_TIMESCALE = 90_000;
export const TICKS_PER_MS = VIDEO_TIMESCALE / 1000;

/** One access unit with its times. Its duration is the distance to the next sample's `dts`. */
export interface Sample {
  /** `video` is the leading track, also if a camera offers only audio; `audio` accompanies video. */
  readonly kind: 'video' | 'audio';
  /** Decoding time in ticks of the track's timescale from the start of the run; an integer that increases by at least 1. */
  readonly dts: number;
  /** Presentation time minus decoding time in the same ticks; usually not negative. */
  readonly compositionOffset: number;
  /** The duration in ticks if no sample follows (at the end of the run or before a gap): the usual distance. */
  readonly usualDuration: number;
  /** Decoding can start here. */
  readonly sync: boolean;
  /** Valid only during the call that passes the sample; retain `data.slab` to keep it. */
  readonly data: MediaData;
  /** Estimated wall-clock time of capture, milliseconds since 1970. */
  readonly wallMs: number;
  /** Packets lost since the previous sample of the track. */
  readonly lostPackets: number;
}
