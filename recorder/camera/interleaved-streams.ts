// Reads one RTSP connection: its messages, and between them the RTP and RTCP packets of its session (RFC 2326 §10.12), whose
// channels it maps to streams.

import type { EstablishedStream } from '../rtsp/stream-setups.ts';
import { RtspFraming, type FramingHandler } from '../rtsp/framing.ts';
import type { RtspMessage } from '../rtsp/message.ts';
import { ReceiverReports, type MediaHandler, type MediaStreams } from './streams.ts';

const NO_STREAM = -1;

interface InterleavedHandler extends MediaHandler {
  message(message: RtspMessage): void;
  /** Bytes that were neither a packet nor a message. */
  skipped(bytes: number): void;
  /** Called once: a packet arrived on a channel that was not set up. */
  stray(channel: number): void;
  send(data: Buffer): void;
}

export class InterleavedStreams implements MediaStreams, FramingHandler {
  readonly framing = new RtspFraming(this);
  readonly #handler: InterleavedHandler;
  readonly #reports = new ReceiverReports();
  /** By channel: 2 × stream, + 1 for RTCP. */
  readonly #routes = new Int16Array(256).fill(NO_STREAM);
  /** By stream: the channel for its RTCP. */
  readonly #reportChannels: (number | undefined)[] = [];
  #sawStray = false;

  constructor(handler: InterleavedHandler) {
    this.#handler = handler;
  }

  setup(): Record<string, never> {
    return {};
  }

  establish({ streamIndex, channels, media }: EstablishedStream): void {
    if (!channels) return;
    const payloadTypes = media.formats.map((format) => format.payloadType);
    this.framing.expect(channels[0], channels[1], payloadTypes);
    this.#routes[channels[0]] = streamIndex * 2;
    this.#routes[channels[1]] = streamIndex * 2 + 1;
    this.#reportChannels[streamIndex] = channels[1];
  }

  start(nowMs: number): void {
    this.#reports.start(nowMs);
  }

  tick(nowMs: number): void {
    if (!this.#reports.takeDue(nowMs)) return;
    for (const [stream, channel] of this.#reportChannels.entries()) {
      if (channel === undefined) continue;
      const packet = this.#reports.format(this.#handler.receptionReport(stream));
      this.#handler.send(Buffer.concat([Buffer.from([0x24, channel, 0, packet.length]), packet]));
    }
  }

  close(): void {
    this.#routes.fill(NO_STREAM);
  }

  message(message: RtspMessage): void {
    this.#handler.message(message);
  }

  skipped(bytes: number): void {
    this.#handler.skipped(bytes);
  }

  interleaved(channel: number, buffer: Buffer, start: number, end: number): void {
    const route = this.#routes[channel] as number;
    if (route === NO_STREAM) {
      if (!this.#sawStray) this.#handler.stray(channel);
      this.#sawStray = true;
    } else if ((route & 1) === 0) this.#handler.rtp(route >> 1, buffer, start, end);
    else this.#handler.rtcp(route >> 1, buffer, start, end);
  }
}
