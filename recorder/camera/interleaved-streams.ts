// Receives RTP and RTCP of one session between the messages of its RTSP connection (RFC 2326 §10.12), and maps channels to
// streams.

import type { EstablishedStream } from '../rtsp/stream-setups.ts';
import type { RtspFraming } from '../rtsp/framing.ts';
import { ReceiverReports } from './streams.ts';
import type { MediaHandler, MediaStreams } from './streams.ts';

const NO_STREAM = -1;

export class InterleavedStreams implements MediaStreams {
  readonly #framing: RtspFraming;
  readonly #connection: { send(data: Buffer): void };
  readonly #handler: MediaHandler;
  readonly #reports = new ReceiverReports();
  /** By channel: 2 × stream, + 1 for RTCP. */
  readonly #routes = new Int16Array(256).fill(NO_STREAM);
  /** By stream: the channel for its RTCP. */
  readonly #reportChannels: (number | undefined)[] = [];

  constructor(framing: RtspFraming, connection: { send(data: Buffer): void }, handler: MediaHandler) {
    this.#framing = framing;
    this.#connection = connection;
    this.#handler = handler;
  }

  setup(): Record<string, never> {
    return {};
  }

  establish({ streamIndex, channels, media }: EstablishedStream): void {
    if (!channels) return;
    const payloadTypes = media.formats.map((format) => format.payloadType);
    this.#framing.expect(channels[0], channels[1], payloadTypes);
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
      this.#connection.send(Buffer.concat([Buffer.from([0x24, channel, 0, packet.length]), packet]));
    }
  }

  close(): void {
    this.#routes.fill(NO_STREAM);
  }

  interleaved(channel: number, buffer: Buffer, start: number, end: number): boolean {
    const route = this.#routes[channel] as number;
    if (route === NO_STREAM) return false;
    if ((route & 1) === 0) this.#handler.rtp(route >> 1, buffer, start, end);
    else this.#handler.rtcp(route >> 1, buffer, start, end);
    return true;
  }
}
