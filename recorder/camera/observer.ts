// What watches a camera's connection beside what records it: the doctor, and its captures.

import type { Presentation } from '../rtsp/sdp.ts';
import type { SampleSink } from './sink.ts';

/** One RTSP message, as it was on the wire but for the line ends of folded fields. */
export interface Said {
  /** Monotonic. */
  readonly atMs: number;
  readonly from: 'recorder' | 'camera';
  readonly text: string;
}

/**
 * Sees what a camera says and sends, and the samples that come of it. All calls are synchronous, in the socket's read
 * callback, and must return at once. An observer that comes while a connection plays is first told what was said on it.
 */
export interface CameraObserver extends SampleSink {
  said(message: Said): void;
  /** `chosen`: indices into `presentation.media`; the place in it is the number of the stream below. */
  selected(presentation: Presentation, chosen: readonly number[]): void;
  /** One packet at `buffer[start, end)`, valid only until the call returns. */
  rtp(stream: number, buffer: Buffer, start: number, end: number): void;
  rtcp(stream: number, buffer: Buffer, start: number, end: number): void;
}

/** Of each connection so much is kept: its beginning, which says what the camera is. */
const MAX_SAID = 64;
const MAX_SAID_BYTES = 64 * 1024;

/** What was said since a connection began, for an observer that comes later. */
export class Transcript {
  #said: Said[] = [];
  #bytes = 0;

  get messages(): readonly Said[] {
    return this.#said;
  }

  clear(): void {
    this.#said = [];
    this.#bytes = 0;
  }

  add(message: Said): void {
    if (this.#said.length >= MAX_SAID || this.#bytes + message.text.length > MAX_SAID_BYTES) return;
    this.#said.push(message);
    this.#bytes += message.text.length;
  }
}
