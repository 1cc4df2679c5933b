// Watches that a session that plays brings pictures: times and counts in, the error that is to end it out.

import { CameraError } from './error.ts';
import type { Patience } from './patience.ts';

/** No packet of the video for so long: the camera is gone, whatever it answers. */
const SILENCE_MS = 10_000;
/** Packets, but not one picture for so long: the connection brings none, a new one may. */
const NO_PICTURE_MS = 12_000;
/** Whole pictures and no key frame before them: the longest groups of pictures of smart codecs are about a minute. */
const NO_KEY_FRAME_MS = 130_000;
/** A goodbye that no packet follows for so long is meant. */
const GOODBYE_MS = 500;

/** What has become of the packets of the stream that leads. Times are monotonic, in milliseconds. */
export interface Pictures {
  /** What leads: video, or the sound of a camera that offers nothing else, whose frames are its pictures. */
  readonly awaited: 'video' | 'sound';
  /** When the last picture of this connection went on to archive and live; undefined before the first. */
  readonly lastPictureMs: number | undefined;
  /** When the source of the video said goodbye (RTCP BYE); undefined again when a packet of it follows. */
  readonly byeMs: number | undefined;
  /**
   * Why there was no picture for `silentMs`: `stream-silent`, `not-decodable` with what came instead, or `no-key-frame`
   * where pictures came and only the one that a decoder could begin with is missing.
   */
  explainSilence(silentMs: number): CameraError;
}

export class Watchdog {
  readonly #sinceMs: number;
  readonly #pictures: Pictures | undefined;
  readonly #start: Patience;
  #firstPacketMs: number | undefined;
  #lastPacketMs: number;
  /** From PLAY to the first picture. */
  #joinedAfterMs: number | undefined;

  /** `start`: for how long the first packet is waited for. */
  constructor(options: { readonly nowMs: number; readonly pictures: Pictures | undefined; readonly start: Patience }) {
    this.#sinceMs = options.nowMs;
    this.#lastPacketMs = options.nowMs;
    this.#pictures = options.pictures;
    this.#start = options.start;
  }

  get lastPacketMs(): number {
    return this.#lastPacketMs;
  }

  /**
   * To be called every half second or so; `sawVideo`: packets of the video came since the last call. Says once that the
   * first picture was there. Throws `CameraError`.
   */
  check(nowMs: number, sawVideo: boolean): 'joined' | undefined {
    if (sawVideo) {
      this.#firstPacketMs ??= nowMs;
      this.#lastPacketMs = nowMs;
    }
    this.#checkPackets(nowMs);
    if (!this.#pictures || this.#firstPacketMs === undefined) return undefined;
    const lastMs = this.#pictures.lastPictureMs;
    this.#checkPictures(this.#pictures, Math.max(lastMs ?? 0, this.#firstPacketMs), nowMs);
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
    const silentMs = nowMs - this.#lastPacketMs;
    if (silentMs < (this.#firstPacketMs === undefined ? this.#start.limitMs : SILENCE_MS)) return;
    if (this.#firstPacketMs === undefined) this.#start.exceeded();
    const seconds = Math.round(silentMs / 1000);
    const awaited = this.#pictures?.awaited ?? 'video';
    throw new CameraError('stream-silent', `the camera is connected but sent no ${awaited} for ${seconds} s`);
  }

  #checkPictures(pictures: Pictures, lastMs: number, nowMs: number): void {
    const silentMs = nowMs - lastMs;
    if (silentMs < NO_PICTURE_MS) return;
    const error = pictures.explainSilence(silentMs);
    if (error.code === 'no-key-frame' && silentMs < this.#keyFrameLimitMs) return;
    throw error;
  }

  /** A new connection would bring a key frame as soon as this one did: to wait for much longer gains nothing. */
  get #keyFrameLimitMs(): number {
    if (this.#joinedAfterMs === undefined) return NO_KEY_FRAME_MS;
    return Math.min(NO_KEY_FRAME_MS, NO_PICTURE_MS + 2 * this.#joinedAfterMs);
  }
}
