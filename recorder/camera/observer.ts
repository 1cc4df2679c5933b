// The interface for watching a camera's connection besides recording it: the doctor and its captures.

import type { Presentation } from '../rtsp/sdp.ts';
import type { SampleSink } from '../contract/sink.ts';

/** One RTSP message, as sent except for the line ends of folded fields. */
export interface DialogueMessage {
  /** Monotonic. */
  readonly atMs: number;
  readonly from: 'recorder' | 'camera';
  readonly text: string;
}

/**
 * Gets what a camera sends and the samples made from it. All calls are synchronous, in the socket's read callback, and must
 * return at once. An observer added while a connection plays first gets the messages so far.
 */
export interface CameraObserver extends SampleSink {
  said(message: DialogueMessage): void;
  /** `chosen`: indices into `presentation.media`; a stream number below is an index into `chosen`. */
  selected(presentation: Presentation, chosen: readonly number[]): void;
  /** One packet, `buffer[start, end)`; valid only during the call. */
  rtp(stream: number, buffer: Buffer, start: number, end: number): void;
  rtcp(stream: number, buffer: Buffer, start: number, end: number): void;
}

/** How much of each connection is kept: its start, which shows what kind of camera it is. */
const MAX_SAID = 64;
const MAX_SAID_BYTES = 64 * 1024;

/** The messages since the start of a connection, for observers that are added later. */
export class Transcript {
  #said: DialogueMessage[] = [];
  #bytes = 0;

  get messages(): readonly DialogueMessage[] {
    return this.#said;
  }

  clear(): void {
    this.#said = [];
    this.#bytes = 0;
  }

  add(message: DialogueMessage): void {
    if (this.#said.length >= MAX_SAID || this.#bytes + message.text.length > MAX_SAID_BYTES) return;
    this.#said.push(message);
    this.#bytes += message.text.length;
  }
}
