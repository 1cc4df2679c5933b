// One viewer: takes the messages of its camera in order, and decides what its connection is too slow for.

import { assertNever } from '../../base/assert.ts';

/** A connection that takes messages: the live room's view of a WebSocket. */
export interface ViewerSocket {
  /** Sends one binary message. Never throws; a dead connection swallows it. */
  send(message: Buffer): void;
  /** Bytes given to `send` that have not left yet. */
  readonly bufferedBytes: number;
  close(code: number, reason: string): void;
}

export interface ViewerOptions {
  /** False: video only, as for a wall of silent tiles. */
  readonly audio: boolean;
}

/** How a stream begins for a viewer. */
export interface StreamStart {
  readonly init: Buffer;
  /** Names the codec of each track: a SourceBuffer takes another initialization segment only with the same ones. */
  readonly tracks: string;
}

/** Why the server ends a live stream: WebSocket close codes of the range for applications (RFC 6455 §7.4.2). */
export const CLOSE = {
  unauthorized: 4401,
  forbidden: 4403,
  unknownCamera: 4404,
  tooSlow: 4408,
  codecsChanged: 4409,
  tooManyViewers: 4429,
  offline: 4503,
  /** RFC 6455 §7.4.1: the server goes away. */
  goingAway: 1001,
} as const;

/** A connection that does not take half of its buffer in this time will not become one that takes video. */
const STUCK_MS = 30_000;

/** `waiting`: for a key frame, after connecting without one or after falling behind. */
type State = 'waiting' | 'live' | 'closed';

export class Viewer {
  readonly audio: boolean;
  readonly #socket: ViewerSocket;
  readonly #maxBufferedBytes: number;
  #state: State = 'waiting';
  /** Since when more waits for the connection than it may, in monotonic milliseconds. */
  #fellBehindMs: number | undefined;
  /** What this viewer has been told to decode with. */
  #stream: StreamStart | undefined;
  sentBytes = 0;
  droppedFrames = 0;

  constructor(socket: ViewerSocket, options: ViewerOptions, maxBufferedBytes: number) {
    this.#socket = socket;
    this.audio = options.audio;
    this.#maxBufferedBytes = maxBufferedBytes;
  }

  get closed(): boolean {
    return this.#state === 'closed';
  }

  /** Sends the initialization segment unless the viewer has this one; what follows starts at a key frame. */
  start(stream: StreamStart): void {
    if (this.#state === 'closed') return;
    const before = this.#stream;
    if (before && before.tracks !== stream.tracks) {
      this.close(CLOSE.codecsChanged, 'the codecs changed: connect again');
      return;
    }
    this.#state = 'waiting';
    this.#stream = stream;
    if (!before?.init.equals(stream.init)) this.#send(stream.init);
  }

  /** Hands on one message, or drops it when the viewer is behind. */
  push(message: Buffer, video: boolean, sync: boolean, nowMs: number): void {
    switch (this.#state) {
      case 'closed':
        return;
      case 'waiting':
        this.#checkProgress(nowMs);
        if (this.#fellBehindMs === undefined && video && sync) {
          this.#state = 'live';
          this.#send(message);
        } else if (video) this.droppedFrames++;
        return;
      case 'live':
        if (this.#socket.bufferedBytes + message.length > this.#maxBufferedBytes) {
          // The next key frame is the first thing that such a viewer can use again.
          this.#state = 'waiting';
          this.#fellBehindMs = nowMs;
          if (video) this.droppedFrames++;
          return;
        }
        if (video || this.audio) this.#send(message);
        return;
      default:
        assertNever(this.#state);
    }
  }

  close(code: number, reason: string): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#socket.close(code, reason);
  }

  /** The connection is gone: nothing is sent any more. */
  gone(): void {
    this.#state = 'closed';
  }

  /** A viewer that fell behind goes on once half of what waits for it has left, and is let go when that takes too long. */
  #checkProgress(nowMs: number): void {
    if (this.#fellBehindMs === undefined) return;
    if (this.#socket.bufferedBytes <= this.#maxBufferedBytes / 2) this.#fellBehindMs = undefined;
    else if (nowMs - this.#fellBehindMs > STUCK_MS)
      this.close(CLOSE.tooSlow, 'the connection is too slow for this camera');
  }

  #send(message: Buffer): void {
    this.sentBytes += message.length;
    this.#socket.send(message);
  }
}
