// A capture as a camera: it answers as the captured camera did, as late as that did, and sends its packets at their times.
// What must differ are numbers that the client chooses (CSeq), addresses, and the login, of which a capture has none.

import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { Clock, Timer } from '../../base/clock.ts';
import { systemClock } from '../../base/clock.ts';
import type { Capture, CapturedPacket, Message } from '../../recorder/probe/capture.ts';
import { MessageReader, header } from './message.ts';
import type { Incoming } from './message.ts';

interface ReplayOptions {
  readonly host?: string;
  readonly port?: number;
  readonly clock?: Clock;
  /** So many times faster; 1 when absent. */
  readonly speed?: number;
}

/** How long a packet may be late before it is sent: timers are not exact. */
const TICK_MS = 5;

interface Answer {
  readonly method: string;
  readonly delayMs: number;
  readonly text: string;
}

/** A captured dialogue as the answers to each method, in order; refusals of a login are left out. */
function answersOf(capture: Capture): Answer[] {
  const answers: Answer[] = [];
  const open = new Map<string, { method: string; ms: number }>();
  for (const line of capture.lines) {
    if (!('text' in line)) continue;
    const sequence = /^CSeq:\s*(\d+)/im.exec(line.text)?.[1] ?? '';
    if (line.from === 'recorder') {
      const method = /^[A-Z_]+(?= )/.exec(line.text)?.[0];
      if (method !== undefined) open.set(sequence, { method, ms: line.ms });
      continue;
    }
    const request = open.get(sequence) ?? [...open.values()].at(-1);
    if (!request || !line.text.startsWith('RTSP/') || line.text.startsWith('RTSP/1.0 401')) continue;
    open.delete(sequence);
    answers.push({ method: request.method, delayMs: line.ms - request.ms, text: line.text });
  }
  return answers;
}

const isPacket = (line: Message | CapturedPacket): line is CapturedPacket => 'stream' in line;

class Replay {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #timers = new Set<Timer>();
  readonly #clock: Clock;
  readonly #speed: number;
  readonly #packets: readonly CapturedPacket[];
  readonly #answers: readonly Answer[];
  #host = '';

  constructor(capture: Capture, options: ReplayOptions) {
    this.#clock = options.clock ?? systemClock;
    this.#speed = options.speed ?? 1;
    this.#packets = capture.lines.filter((line) => isPacket(line));
    this.#answers = answersOf(capture);
    this.#server = createServer((socket) => this.#serve(socket));
  }

  async listen({ host = '127.0.0.1', port = 0 }: ReplayOptions): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, resolve);
    });
    this.#host = `${host}:${(this.#server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return `rtsp://${this.#host}/stream`;
  }

  /** Packets of a stream in the capture, RTP only. */
  packets(stream: number): number {
    return this.#packets.filter((packet) => packet.stream === stream && packet.rtp !== undefined).length;
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) timer.cancel();
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
    const reader = new MessageReader();
    const used = new Map<string, number>();
    const channels: (readonly [number, number])[] = [];
    socket.on('data', (bytes: Buffer) => {
      for (const message of reader.push(bytes)) this.#take(message, socket, used, channels);
    });
  }

  #take(message: Incoming, socket: Socket, used: Map<string, number>, channels: (readonly [number, number])[]): void {
    if (message.kind !== 'request') return;
    const { request } = message;
    const { method } = request;
    const nth = used.get(method) ?? 0;
    used.set(method, nth + 1);
    const ofMethod = this.#answers.filter((one) => one.method === method);
    const answer = ofMethod[Math.min(nth, ofMethod.length - 1)];
    if (method === 'SETUP') channels.push(channelsOf(header(request, 'Transport') ?? '', answer?.text));
    this.#after(answer?.delayMs ?? 0, () => {
      socket.write(
        this.#fit(answer?.text ?? 'RTSP/1.0 200 OK\r\n\r\n', header(request, 'CSeq') ?? '', channels.at(-1)),
      );
      if (method === 'PLAY' && nth === 0) this.#play(socket, channels);
      if (method === 'TEARDOWN') socket.end();
    });
  }

  /** The captured answer with the client's number, our address, the channels in use, and the right length. */
  #fit(text: string, sequence: string, channels: readonly [number, number] | undefined): string {
    const [head = '', ...rest] = text.split('\r\n\r\n');
    const here = (part: string): string => part.replaceAll(/(rtsps?:\/\/)camera(?::\d+)?/gi, `rtsp://${this.#host}`);
    const body = here(rest.join('\r\n\r\n'));
    const lines = here(head)
      .split('\r\n')
      .filter((line) => !/^Content-Length:/i.test(line))
      .map((line) =>
        line.replace(/^(CSeq)(\s*:\s*)\d+/i, (_, name: string, colon: string) => `${name}${colon}${sequence}`),
      )
      .map((line) =>
        channels && /^Transport:/i.test(line)
          ? `Transport: RTP/AVP/TCP;unicast;interleaved=${channels.join('-')}${/;ssrc=\w+/i.exec(line)?.[0] ?? ''}`
          : line,
      );
    if (body !== '') lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
    return `${lines.join('\r\n')}\r\n\r\n${body}`;
  }

  /** From the first packet on, at the distances of the capture; then the connection stays silent. */
  #play(socket: Socket, channels: readonly (readonly [number, number])[]): void {
    const startMs = this.#clock.monotonicMs();
    const firstMs = this.#packets[0]?.ms ?? 0;
    let next = 0;
    const send = (): void => {
      const until = firstMs + (this.#clock.monotonicMs() - startMs) * this.#speed;
      for (; next < this.#packets.length; next++) {
        const packet = this.#packets[next] as CapturedPacket;
        if (packet.ms > until) return this.#after(TICK_MS / this.#speed, send);
        const pair = channels[packet.stream];
        if (!pair || socket.destroyed) continue;
        const data = Buffer.from(packet.rtp ?? packet.rtcp ?? '', 'base64');
        const channel = packet.rtp === undefined ? pair[1] : pair[0];
        socket.write(Buffer.concat([Buffer.from([0x24, channel, data.length >> 8, data.length & 0xff]), data]));
      }
    };
    send();
  }

  #after(delayMs: number, act: () => void): void {
    const timer = this.#clock.after(delayMs, () => {
      this.#timers.delete(timer);
      act();
    });
    this.#timers.add(timer);
  }
}

/** As the captured camera chose them over TCP, else as the client asks. */
function channelsOf(asked: string, answer: string | undefined): readonly [number, number] {
  const pair = /interleaved=(\d+)-(\d+)/i.exec(answer ?? '') ?? /interleaved=(\d+)-(\d+)/i.exec(asked);
  return [Number(pair?.[1] ?? 0), Number(pair?.[2] ?? 1)];
}

export async function startReplay(capture: Capture, options: ReplayOptions = {}): Promise<Replay> {
  const replay = new Replay(capture, options);
  await replay.listen(options);
  return replay;
}
