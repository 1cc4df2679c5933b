// What the front is sent of a live stream that somebody watches. Each stream is sent once, however many watch it.

export type LiveQuality = 'main' | 'preview';

/** How a stream starts for a viewer. */
export interface StreamStart {
  readonly init: Buffer;
  /** The codecs of the tracks: a SourceBuffer accepts another initialization segment only if they are the same. */
  readonly tracks: string;
}

/** The start of a stream for all its viewers. */
export interface LiveStart {
  readonly all: StreamStart;
  /** For viewers that do not want audio. */
  readonly leadOnly: StreamStart;
}

export type LiveNews =
  /**
   * A stream begins, or its parameters change: what follows begins at a key frame. `isAnswer`: for those that have begun to watch, and
   * the group of pictures that is there follows at once, of `cachedBytes`.
   */
  | ({ readonly kind: 'start'; readonly isAnswer: boolean; readonly cachedBytes: number } & LiveStart)
  /** One fragment. `isCached`: it follows an answer. */
  | { readonly kind: 'key-frame' | 'picture' | 'audio'; readonly bytes: Buffer; readonly isCached: boolean }
  /** The stream is over; the next one may begin at any time. */
  | { readonly kind: 'end' }
  /** Nothing more is sent until it is watched again. A close code of a WebSocket (`live/close.ts`), and why. */
  | { readonly kind: 'closed'; readonly code: number; readonly reason: string };

/** Neither throws nor takes time. */
export type TellLive = (news: LiveNews) => void;

/** A live stream on the side that records. */
export interface LiveFeed {
  /** Sends the stream from now on; sends the start again if it is watched already. */
  watch(tell: TellLive): void;
  unwatch(): void;
}
