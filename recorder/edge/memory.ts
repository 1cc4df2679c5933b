// What the memory of a camera (its SD card, or the disk of a recorder that serves it) offers to the archive: which footage it
// claims to have, its clock, and replays as access units dated by the camera.
//
// All times of the memory are by the camera's own clock, as milliseconds since 1970 in UTC (`cameraMs`), with fractions. The caller
// converts them to ours.

import { CodedError } from '../../base/error.ts';
import { RtspError } from '../rtsp/error.ts';
import type { AccessUnit, AudioParameters, VideoParameters } from '../codec/access-unit.ts';

/**
 * - `not-supported`: the camera has no memory that it can replay from, or not in a way that we know;
 * - `nothing-recorded`: it has nothing of this window, and will not have it later (`recordings` says what it has);
 * - `card-failed`: it says that its storage is missing or broken; `other-profile`: it recorded another codec or size than asked for;
 * - `refused-login`: wrong or missing user and password; `busy`: it replays to others, or refuses more connections;
 * - `unreachable`: no connection, or no response in time; `cut`: the connection ended before the window did;
 * - `bad-answer`: an answer or a stream that is of no use, for example without pictures; `range-ignored`: it replays other times
 *   than it was asked for; `undated`: nothing in the replay says when its pictures were taken.
 */
export type EdgeErrorCode =
  | 'not-supported'
  | 'nothing-recorded'
  | 'card-failed'
  | 'other-profile'
  | 'refused-login'
  | 'busy'
  | 'unreachable'
  | 'cut'
  | 'bad-answer'
  | 'range-ignored'
  | 'undated';

/** The message never contains a password or a URL with a user part. */
export class EdgeError extends CodedError<EdgeErrorCode> {
  override readonly name = 'EdgeError';

  /** The camera refused a request, perhaps for its form. */
  get isRefusal(): boolean {
    return this.cause instanceof RtspError && this.cause.status !== undefined;
  }
}

/** Half open, by the camera's clock. */
export interface CameraWindow {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** A recording in the memory, from its first to its last footage; there may be gaps inside. */
export interface EdgeRecording extends CameraWindow {
  /** The kinds of its tracks that have footage. */
  readonly tracks: readonly ('video' | 'audio')[];
}

/** `offsetMs`: the camera's clock minus ours (`Clock.wallMs`); wrong by at most `errorMs`. */
export interface EdgeClock {
  readonly offsetMs: number;
  readonly errorMs: number;
}

export interface ReplayRequest {
  /** Not longer than an hour. */
  readonly window: CameraWindow;
  /** Bits per second of the connection, averaged over a second. */
  readonly maxBitrate: number;
  /**
   * The video that the live stream had before the gap. Of several recordings, one with the same video is replayed; if there is
   * none, the replay ends with `other-profile`. Undefined: any video is accepted.
   */
  readonly like: VideoParameters | undefined;
}

/**
 * One access unit of a replay, in the order in which the camera sent it (decoding order). The holder has one hold on
 * `unit.data.slab` and releases it after use. `timestamp` and `lostPackets` of the unit are those of the replay.
 */
export type EdgeUnit = EdgePicture | EdgeSound;

interface Replayed {
  readonly unit: AccessUnit;
  /** When it was captured. */
  readonly cameraMs: number;
  /**
   * `unit`: the camera stated the time of this very unit; `stream`: it follows from a unit before or after it and the RTP
   * timestamps; `range`: only the camera's answer to PLAY says when the replay starts, which may be wrong by the distance of two
   * key frames, so such a unit needs a seam to be placed.
   */
  readonly dated: 'unit' | 'stream' | 'range';
  /** Decoding can start here, as stated by the camera or as seen in the data. */
  readonly cleanPoint: boolean;
  /** The camera's footage has a gap after this unit, or ends (bit E or T). */
  readonly endsSection: boolean;
  /** It does not follow the unit before it (bit D, or time or RTP timestamp jump). */
  readonly discontinuity: boolean;
}

export interface EdgePicture extends Replayed {
  readonly kind: 'video';
  /** A new object means that the parameters changed. */
  readonly parameters: VideoParameters;
  /** The clock rate of `unit.timestamp`, in Hz. */
  readonly clockRate: number;
}

export interface EdgeSound extends Replayed {
  readonly kind: 'audio';
  readonly parameters: AudioParameters;
  readonly clockRate: number;
}

/**
 * How a replay that did not fail ended. `window`: units after the window came; `footage`: the camera has no more (bit E or T, BYE,
 * or end of stream), or sent nothing more for some seconds.
 */
export type ReplayEnd = 'window' | 'footage';

/**
 * A replay that runs while it is iterated, once: the pace of the iteration bounds how much is read. The first picture is a clean
 * point, in most cases the last one before the window; some cameras start up to two minutes earlier. Units from the window's end
 * on are left out. Leaving the loop closes the connection. Fails with `EdgeError`, or with the signal's reason when it aborts.
 */
export interface Replay extends AsyncIterable<EdgeUnit> {
  /** Undefined until the iteration has ended by itself. */
  readonly end: ReplayEnd | undefined;
}

/** The memory of one camera. All calls fail with `EdgeError`, or with the signal's reason when it aborts. */
export interface EdgeMemory {
  /** What the camera claims to have; undefined if it cannot be asked (address pattern without ONVIF). */
  recordings(signal: AbortSignal): Promise<readonly EdgeRecording[] | undefined>;
  /** Asked several times, until the error is small; undefined if the camera does not state its time. */
  clock(signal: AbortSignal): Promise<EdgeClock | undefined>;
  replay(request: ReplayRequest, signal: AbortSignal): Replay;
}
