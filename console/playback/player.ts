// The recorded video of one camera, which follows the wall clock of the view: it loads the stretch of the archive around the
// shown moment, seeks and plays where there is footage, and waits where there is none.

import { signal } from '@preact/signals';
import type Hls from 'hls.js';
import type { Fragment } from 'hls.js';
import { mediaAddress } from '../app/api.ts';
import { now } from '../app/clock.ts';
import { correctionOf } from './follow.ts';
import { footageIdOf, type Stream } from './stream.ts';
import { mediaTimeOf, wallTimeOf, type MediaPart } from './media-time.ts';

/** How much of the archive a playlist has: before the shown moment, and after it. */
const BEFORE_MS = 5 * 60_000;
const AFTER_MS = 25 * 60_000;
/** The next playlist is loaded this long before the end of the current one. */
const AHEAD_MS = 20_000;
/** A part is listed when the next one has begun, so newer footage is listed later. */
const WRITTEN_MS = 15_000;
const RETRY_MS = 2_000;
/** A slow computer, or a file that is damaged at one place, is no reason to give up: so many failures without a picture are. */
const MAX_FAILURES = 3;
/** Then stills are shown for this long before the video is tried again, and longer after each further failure. */
const UNPLAYABLE_MS = 20_000;
/** How long a decoder needs after a seek; no other seek starts before. */
const SETTLE_MS = 1_000;
/** Seeks go this far into a picture, so that it is clear which one is shown. */
const INTO_PICTURE_MS = 1;
/** A paused video is positioned with this precision, a fraction of a picture. */
const PRECISION_MS = 5;
/** Browsers do not play faster. */
export const MAX_VIDEO_SPEED = 16;

/** The answer for a part that was removed. */
const NOT_FOUND = 404;

/** Errors of the library that no other attempt mends. */
const CODEC_ERRORS: ReadonlySet<string> = new Set([
  'manifestIncompatibleCodecsError',
  'bufferAddCodecError',
  'bufferIncompatibleCodecsError',
]);

export type PlayerState = 'idle' | 'loading' | 'ready' | 'unplayable';

interface Stretch {
  readonly fromMs: number;
  readonly toMs: number;
  /** When it was asked for: the recording went on. */
  readonly askedMs: number;
}

interface Follow {
  readonly atMs: number;
  /** Whether the clock runs; `speed` is its speed relative to real time. */
  readonly isRunning: boolean;
  readonly speed: number;
}

export class CameraPlayer {
  readonly cameraId: string;
  readonly state = signal<PlayerState>('idle');
  /** Whose footage is played. */
  readonly stream = signal<Stream>('main');
  readonly video: HTMLVideoElement;
  readonly #Hls: typeof Hls;
  #hls: Hls | undefined;
  #stretch: Stretch | undefined;
  #parts: readonly MediaPart[] = [];
  #factor = 1;
  #seekedMs = -Infinity;
  #wantedMs = 0;
  #soughtMs: number | undefined;
  #retryMs = -Infinity;
  /** In a row, without a picture between them. */
  #failures = 0;

  readonly #onFailure: () => void;

  /** `onFailure` is called when footage could not be loaded or decoded: it may have been removed. */
  constructor(cameraId: string, video: HTMLVideoElement, Library: typeof Hls, onFailure: () => void) {
    this.cameraId = cameraId;
    this.video = video;
    this.#Hls = Library;
    this.#onFailure = onFailure;
    if (!Library.isSupported()) this.#giveUp(Infinity);
  }

  /** Wall time of the picture on screen; undefined if there is none. */
  get shownMs(): number | undefined {
    if (this.video.readyState < HTMLMediaElement.HAVE_CURRENT_DATA) return undefined;
    return wallTimeOf(this.#parts, this.video.currentTime);
  }

  /** Whether it shows the wanted moment, or can play on from there. */
  get isReady(): boolean {
    return (
      this.state.peek() === 'ready' && !this.video.seeking && this.video.readyState >= HTMLMediaElement.HAVE_FUTURE_DATA
    );
  }

  /** Whether stills take its place: it cannot be played, or not until it is tried again. */
  get isGivenUp(): boolean {
    return this.state.peek() === 'unplayable' && performance.now() < this.#retryMs;
  }

  /** Called some ten times a second, and after each jump of the clock, while there is footage. */
  follow({ atMs, isRunning, speed }: Follow): void {
    this.#wantedMs = atMs;
    if (this.#hls && this.video.error) this.#fail(true);
    else if (this.isReady) this.#failures = 0;
    if (!this.#covers(atMs)) {
      this.#load(atMs);
      return;
    }
    const { video } = this;
    const media = mediaTimeOf(this.#parts, atMs);
    if (media === undefined || this.state.peek() === 'loading') {
      this.#stop();
      return;
    }
    if (!isRunning) {
      this.#stop();
      const isRecent = performance.now() - this.#seekedMs < SETTLE_MS;
      // While the user scrubs, the next seek waits until the picture of the previous one is shown.
      const isNext = this.#soughtMs !== atMs && !(video.seeking && isRecent);
      // The library starts at the position that it was given first, and times of parts are exact only once they are decoded.
      const isElsewhere = !video.seeking && !isRecent && this.#offsetMs(media) > PRECISION_MS;
      if (isNext || isElsewhere) this.#seek(media, atMs);
      return;
    }
    const shownMs = wallTimeOf(this.#parts, video.currentTime);
    const errorMs = shownMs === undefined ? Infinity : shownMs - atMs;
    const correction = correctionOf(errorMs, speed, this.#factor);
    if (correction.kind === 'rate') this.#factor = correction.factor;
    else if (!video.seeking || performance.now() - this.#seekedMs > SETTLE_MS) {
      this.#factor = 1;
      if (performance.now() - this.#seekedMs > SETTLE_MS || this.#soughtMs === undefined) this.#seek(media, atMs);
    }
    this.#soughtMs = undefined;
    const rate = Math.min(MAX_VIDEO_SPEED, speed * this.#factor);
    if (video.playbackRate !== rate) video.playbackRate = rate;
    // The browser plays nothing yet: the next `follow` tries again.
    if (video.paused) video.play().catch(() => {});
  }

  /** Plays the footage of this stream from the next `follow` on. */
  use(stream: Stream): void {
    if (stream === this.stream.peek()) return;
    this.stream.value = stream;
    if (!this.#Hls.isSupported()) return;
    this.destroy();
    this.#failures = 0;
    this.#retryMs = -Infinity;
    this.state.value = 'idle';
  }

  /** Waits in a gap. Decoded data stays, because footage may follow at once. */
  rest(): void {
    this.#stop();
    this.#soughtMs = undefined;
  }

  /** How long a buffer lasts depends on the speed. */
  setSpeed(speed: number): void {
    if (this.#hls) this.#hls.config.maxBufferLength = bufferSeconds(speed);
  }

  /** Whether the page is visible: a hidden one receives nothing. */
  setSeen(isSeen: boolean): void {
    if (this.state.peek() !== 'ready') return;
    if (isSeen) this.#hls?.startLoad();
    else this.#hls?.stopLoad();
  }

  destroy(): void {
    this.#hls?.destroy();
    this.#hls = undefined;
    this.#stretch = undefined;
    this.#parts = [];
  }

  #stop(): void {
    if (!this.video.paused) this.video.pause();
  }

  #seek(media: number, atMs: number): void {
    this.#soughtMs = atMs;
    this.#seekedMs = performance.now();
    this.video.currentTime = this.#placeOf(media);
  }

  /** Limits a position to the video, which may end a little earlier than its last part says. */
  #placeOf(media: number): number {
    const { duration } = this.video;
    return Math.min(media + INTO_PICTURE_MS / 1000, Number.isNaN(duration) ? Infinity : duration);
  }

  /** How far the video is away from a moment. */
  #offsetMs(media: number): number {
    return Math.abs(this.video.currentTime - this.#placeOf(media)) * 1000;
  }

  /** Whether the loaded playlist has this moment, or will have it without another request. */
  #covers(atMs: number): boolean {
    const stretch = this.#stretch;
    if (!stretch) return false;
    if (atMs < stretch.fromMs || atMs >= stretch.toMs) return false;
    const isPresent = stretch.toMs > stretch.askedMs;
    return isPresent || atMs < stretch.toMs - AHEAD_MS;
  }

  #load(atMs: number): void {
    if (performance.now() < this.#retryMs) return;
    this.destroy();
    const nowMs = now();
    const fromMs = Math.floor(Math.min(atMs, nowMs - WRITTEN_MS) - BEFORE_MS);
    const toMs = Math.ceil(atMs + AFTER_MS);
    this.#stretch = { fromMs, toMs, askedMs: nowMs };
    this.#soughtMs = undefined;
    this.#factor = 1;
    this.state.value = 'loading';
    const { Events, ErrorTypes } = this.#Hls;
    const hls = new this.#Hls({
      autoStartLoad: false,
      // The policy of the page allows no workers from blobs.
      enableWorker: false,
      maxBufferLength: bufferSeconds(1),
      maxMaxBufferLength: 120,
      maxBufferSize: 24_000_000,
      backBufferLength: 20,
    });
    this.#hls = hls;
    hls.on(Events.LEVEL_UPDATED, (_event, { details }) => this.#take(details.fragments));
    hls.on(Events.LEVEL_LOADED, (_event, { details }) => {
      this.#take(details.fragments);
      if (this.state.peek() !== 'loading') return;
      this.state.value = 'ready';
      // While the playlist was loaded, the clock may have advanced, or the user may have jumped to another time.
      hls.startLoad(mediaTimeOf(this.#parts, this.#wantedMs) ?? nearest(this.#parts, this.#wantedMs));
    });
    // The exact times of parts are known only once they are decoded.
    hls.on(Events.FRAG_PARSED, () => this.#take(hls.levels[0]?.details?.fragments ?? []));
    hls.on(Events.ERROR, (_event, { fatal, type, details, response }) => {
      // The library repeats such a request for half a minute before it gives up.
      if (!fatal && response?.code === NOT_FOUND) this.#onFailure();
      if (!fatal) return;
      if (CODEC_ERRORS.has(details)) this.#giveUp(Infinity);
      else this.#fail(type === ErrorTypes.MEDIA_ERROR);
    });
    const query = `from=${fromMs / 1000}&to=${toMs / 1000}`;
    const id = encodeURIComponent(footageIdOf(this.cameraId, this.stream.peek()));
    hls.loadSource(mediaAddress(`/playback/hls/${id}/index.m3u8?${query}`));
    hls.attachMedia(this.video);
  }

  /** Loads again soon. The library takes a decoder for broken that stands still for some seconds, because the computer is busy. */
  #fail(isMedia: boolean): void {
    this.#onFailure();
    if (isMedia) this.#failures++;
    if (this.#failures >= MAX_FAILURES) {
      this.#giveUp(UNPLAYABLE_MS * (this.#failures - MAX_FAILURES + 1));
      return;
    }
    this.destroy();
    this.state.value = 'loading';
    this.#retryMs = performance.now() + RETRY_MS;
  }

  #giveUp(ms: number): void {
    this.destroy();
    this.state.value = 'unplayable';
    this.#retryMs = performance.now() + ms;
  }

  #take(fragments: readonly Fragment[]): void {
    this.#parts = fragments.flatMap(({ programDateTime, start, duration, gap }) =>
      programDateTime === null || gap ? [] : [{ wallMs: programDateTime, start, duration }],
    );
  }
}

const bufferSeconds = (speed: number): number => Math.min(90, Math.max(15, speed * 6));

/** The start of the first part after a moment: nothing is recorded at the moment itself. */
const nearest = (parts: readonly MediaPart[], atMs: number): number =>
  (parts.find(({ wallMs }) => wallMs >= atMs) ?? parts.at(-1))?.start ?? 0;
