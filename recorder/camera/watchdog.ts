// Checks that a playing session delivers pictures, and decides with which error it must end.

import { CameraError } from './error.ts';
import type { Patience } from './patience.ts';

/** After this time without a packet of the video, the camera is gone, whatever it answers. */
const SILENCE_MS = 10_000;
/** After this time with packets but without a picture, a new connection may help. */
const NO_PICTURE_MS = 12_000;
/** Complete pictures without a key frame: the longest groups of pictures of smart codecs have about a minute. */
const NO_KEY_FRAME_MS = 130_000;
/** The packets of a single picture come within this time: those that come for longer without a picture are none. */
const PICTURE_MS = 1_000;
/** A BYE counts if no packet follows it within this time. */
const GOODBYE_MS = 500;

/** What became of the packets of the leading stream. Times are those in which this process ran, in milliseconds. */
export interface Pictures {
  /** The leading stream: video, or the audio of a camera that offers nothing else; its frames then count as pictures. */
  readonly awaited: 'video' | 'sound';
  /** When the last picture of this connection was passed on; undefined before the first. */
  readonly lastPictureMs: number | undefined;
  /** When the source of the video sent a BYE (RTCP); undefined again once another packet of it arrives. */
  readonly byeMs: number | undefined;
  /** Whether no picture is missing although there was none for `silentMs`. */
  isQuiet(silentMs: number): boolean;
  /**
   * Why there was no picture for `silentMs`: `stream-silent`; `not-decodable` with what arrived instead; or `no-key-frame` if
   * pictures arrived and only a key frame is missing.
   */
  explainSilence(silentMs: number): CameraError;
}

export class Watchdog {
  readonly #sinceMs: number;
  readonly #pictures: Pictures | undefined;
  readonly #start: Patience;
  /** When the first packet came, or the first one after a pause of `SILENCE_MS`. */
  #packetsSinceMs: number | undefined;
  lastPacketMs: number;
  /** Time from PLAY to the first picture. */
  #joinedAfterMs: number | undefined;

  /** `start`: the limit for the first packet. */
  constructor(options: { readonly nowMs: number; readonly pictures: Pictures | undefined; readonly start: Patience }) {
    this.#sinceMs = options.nowMs;
    this.lastPacketMs = options.nowMs;
    this.#pictures = options.pictures;
    this.#start = options.start;
  }

  /**
   * Call about twice a second; `sawVideo`: packets of the video arrived since the last call. Returns `joined` once, after the
   * first picture. Throws `CameraError`.
   */
  check(nowMs: number, sawVideo: boolean): 'joined' | undefined {
    if (sawVideo) {
      if (this.#packetsSinceMs === undefined || nowMs - this.lastPacketMs >= SILENCE_MS) this.#packetsSinceMs = nowMs;
      this.lastPacketMs = nowMs;
    }
    this.#checkPackets(nowMs);
    if (!this.#pictures || this.#packetsSinceMs === undefined) return undefined;
    const lastMs = this.#pictures.lastPictureMs;
    // Of a camera that makes few pictures, only packets show that one is missing.
    const untilMs = this.#isQuiet(nowMs) ? this.lastPacketMs : nowMs;
    this.#checkPictures(this.#pictures, Math.max(lastMs ?? 0, this.#packetsSinceMs), untilMs);
    if (lastMs === undefined || this.#joinedAfterMs !== undefined) return undefined;
    this.#joinedAfterMs = lastMs - this.#sinceMs;
    this.#start.met(this.#joinedAfterMs);
    return 'joined';
  }

  #checkPackets(nowMs: number): void {
    const byeMs = this.#pictures?.byeMs;
    if (byeMs !== undefined && nowMs - byeMs >= GOODBYE_MS) {
      throw new CameraError('closed-by-camera', 'the camera ended its stream (RTCP BYE)');
    }
    const silentMs = nowMs - this.lastPacketMs;
    const limitMs = this.#packetsSinceMs === undefined ? this.#start.limitMs : SILENCE_MS;
    if (silentMs < limitMs || this.#isQuiet(nowMs)) return;
    if (this.#packetsSinceMs === undefined) this.#start.exceeded();
    const seconds = Math.round(silentMs / 1000);
    const awaited = this.#pictures?.awaited ?? 'video';
    throw new CameraError('stream-silent', `the camera is connected but sent no ${awaited} for ${seconds} s`);
  }

  #isQuiet(nowMs: number): boolean {
    const isPicture = this.lastPacketMs - (this.#packetsSinceMs ?? nowMs) < PICTURE_MS;
    const pictures = this.#pictures;
    return (
      (isPicture || pictures?.lastPictureMs !== undefined) && pictures?.isQuiet(nowMs - this.lastPacketMs) === true
    );
  }

  #checkPictures(pictures: Pictures, lastMs: number, nowMs: number): void {
    const silentMs = nowMs - lastMs;
    if (silentMs < NO_PICTURE_MS) return;
    const error = pictures.explainSilence(silentMs);
    if (error.code === 'no-key-frame' && silentMs < this.#keyFrameLimitMs) return;
    throw error;
  }

  /** A new connection would deliver a key frame as soon as this one did, so waiting much longer gains nothing. */
  get #keyFrameLimitMs(): number {
    if (this.#joinedAfterMs === undefined) return NO_KEY_FRAME_MS;
    return Math.min(NO_KEY_FRAME_MS, NO_PICTURE_MS + 2 * this.#joinedAfterMs);
  }
}
