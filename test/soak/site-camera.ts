// A camera of a site: an RTSP server on a loopback port that keeps nothing of what was, so that days of it cost no memory.
// It sends when it is told to, and everything a real one does wrong is a word to it.

import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { videoFmtp } from '../camera/tracks.ts';
import type { VideoMedia } from '../camera/media.ts';
import { interleaved, packetizeH264 } from '../support/packetize.ts';

const TICKS_PER_MS = 90;
const RTP_CHANNEL = 0;

interface Viewer {
  readonly socket: Socket;
  playing: boolean;
  ssrc: number;
  sequenceNumber: number;
  firstTimestamp: number;
}

export class SiteCamera {
  readonly id: string;
  readonly #intervalMs: number;
  readonly #groupLength: number;
  readonly #random: () => number;
  readonly #viewers = new Set<Viewer>();
  #server: Server | undefined;
  #port = 0;
  #media: VideoMedia;
  #pictures = 0;
  #timestampMs = 0;
  /** Share of packets that are lost on their way. */
  loss = 0;
  /** The encoder hangs: the connection lives. */
  silent = false;
  /** Answers nothing, and does not close. */
  mute = false;

  constructor(
    id: string,
    media: VideoMedia,
    options: { intervalMs: number; groupLength: number; random: () => number },
  ) {
    this.id = id;
    this.#media = media;
    this.#intervalMs = options.intervalMs;
    this.#groupLength = options.groupLength;
    this.#random = options.random;
  }

  get url(): string {
    return `rtsp://127.0.0.1:${this.#port}/stream`;
  }

  get isUp(): boolean {
    return this.#server !== undefined;
  }

  get isPlaying(): boolean {
    for (const viewer of this.#viewers) if (viewer.playing) return true;
    return false;
  }

  /** Somebody is in the middle of a dialogue with it. */
  get isTalking(): boolean {
    if (this.mute) return false;
    for (const viewer of this.#viewers) if (!viewer.playing) return true;
    return false;
  }

  async start(): Promise<void> {
    // Small packets must not wait for acknowledgements: their 40 ms of real time are many seconds of the virtual clock.
    const server = createServer({ noDelay: true }, (socket) => this.#serve(socket));
    server.listen(this.#port, '127.0.0.1');
    await once(server, 'listening');
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** As at a reboot: connections are cut, the port is closed. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.cut();
    if (server) await new Promise((resolve) => server.close(resolve));
  }

  cut(): void {
    for (const { socket } of this.#viewers) socket.destroy();
    this.#viewers.clear();
  }

  /** Another resolution, from the next picture on, which is a key frame. */
  show(media: VideoMedia): void {
    this.#media = media;
    this.#pictures = 0;
  }

  /** Its clock jumps. */
  jump(ms: number): void {
    this.#timestampMs += ms;
  }

  /** One picture, `intervalMs` after the one before. */
  send(): void {
    const frame = this.#media.frames[this.#pictures++ % this.#groupLength];
    this.#timestampMs += this.#intervalMs;
    if (this.silent || !frame) return;
    for (const viewer of this.#viewers) {
      if (!viewer.playing) continue;
      const timestamp = (viewer.firstTimestamp + this.#timestampMs * TICKS_PER_MS) >>> 0;
      const { ssrc, sequenceNumber } = viewer;
      const packets = packetizeH264(frame.nals, { timestamp, sequenceNumber, ssrc, payloadType: 96 });
      viewer.sequenceNumber = (sequenceNumber + packets.length) & 0xffff;
      const kept = this.loss > 0 ? packets.filter(() => this.#random() >= this.loss) : packets;
      if (kept.length > 0) viewer.socket.write(Buffer.concat(kept.map((packet) => interleaved(RTP_CHANNEL, packet))));
    }
  }

  #serve(socket: Socket): void {
    if (!this.isUp) return void socket.destroy();
    const random32 = (): number => Math.floor(this.#random() * 2 ** 32);
    const viewer: Viewer = {
      socket,
      playing: false,
      ssrc: random32(),
      sequenceNumber: random32() & 0xffff,
      firstTimestamp: random32(),
    };
    this.#viewers.add(viewer);
    socket.on('error', () => {});
    socket.on('close', () => this.#viewers.delete(viewer));
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      // Receiver reports come in between, as binary.
      for (;;) {
        if (text.startsWith('$')) {
          if (text.length < 4) return;
          const length = 4 + (text.charCodeAt(2) << 8) + text.charCodeAt(3);
          if (text.length < length) return;
          text = text.slice(length);
          continue;
        }
        const end = text.indexOf('\r\n\r\n');
        if (end < 0) return;
        const request = text.slice(0, end);
        text = text.slice(end + 4);
        if (!this.mute) this.#answer(request, viewer);
      }
    });
  }

  #answer(request: string, viewer: Viewer): void {
    const [method = ''] = request.split(' ', 1);
    const sequence = /CSeq: (\d+)/i.exec(request)?.[1] ?? '';
    const lines = [`RTSP/1.0 200 OK`, `CSeq: ${sequence}`];
    let body = '';
    if (method === 'OPTIONS') lines.push('Public: OPTIONS, DESCRIBE, SETUP, PLAY, GET_PARAMETER, TEARDOWN');
    if (method === 'DESCRIBE') {
      body = ['v=0', 'o=- 1 1 IN IP4 127.0.0.1', 's=-', 't=0 0', 'm=video 0 RTP/AVP 96', 'a=rtpmap:96 H264/90000']
        .concat([`a=fmtp:96 ${videoFmtp(this.#media)}`, 'a=control:trackID=1', ''])
        .join('\r\n');
      lines.push('Content-Type: application/sdp', `Content-Length: ${body.length}`);
    }
    if (method === 'SETUP') lines.push('Transport: RTP/AVP/TCP;unicast;interleaved=0-1', 'Session: 1;timeout=60');
    if (method === 'PLAY' || method === 'GET_PARAMETER' || method === 'TEARDOWN') lines.push('Session: 1');
    viewer.socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`);
    if (method === 'PLAY') viewer.playing = true;
    if (method === 'TEARDOWN') viewer.playing = false;
  }
}
