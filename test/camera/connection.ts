// One TCP connection of a client to the camera: bytes in and out, and what was seen on it.

import type { Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import { MessageReader, header } from './message.ts';
import type { Incoming, RtspRequest } from './message.ts';
import type { CameraSession } from './session.ts';

interface ConnectionEvents {
  request(request: RtspRequest, connection: CameraConnection): void;
  closed(connection: CameraConnection): void;
  /** Without it, what no client of ours may send fails the test. */
  readonly mistaken?: ((err: unknown) => void) | undefined;
}

export class CameraConnection {
  readonly index: number;
  /** Answers of the client to requests that the camera sent: status codes, in order. */
  readonly clientReplies: number[] = [];
  /** `$` frames of the client: RTCP. */
  readonly clientFrames: { readonly channel: number; readonly data: Buffer; readonly atMs: number }[] = [];
  readonly sessions: CameraSession[] = [];
  closed = false;
  /** True: what comes is not even read, as of a camera that hangs with its sockets open. */
  deaf = false;
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #reader = new MessageReader();

  constructor(index: number, socket: Socket, clock: Clock, events: ConnectionEvents) {
    this.index = index;
    this.#socket = socket;
    this.#clock = clock;
    socket.setNoDelay(true);
    socket.on('data', (bytes: Buffer) => {
      if (this.deaf) return;
      try {
        for (const message of this.#reader.push(bytes)) this.#take(message, events);
      } catch (err) {
        if (!events.mistaken) throw err;
        events.mistaken(err);
        socket.destroy();
      }
    });
    // A client that is gone is no news; what it did is in the log.
    socket.on('error', () => {});
    socket.on('close', () => {
      this.closed = true;
      events.closed(this);
    });
  }

  get localAddress(): string {
    return this.#socket.localAddress ?? '';
  }

  get remoteAddress(): string {
    return this.#socket.remoteAddress ?? '';
  }

  /** Bytes that the socket has not taken yet. */
  get waitingBytes(): number {
    return this.#socket.writableLength;
  }

  nowMs(): number {
    return this.#clock.monotonicMs();
  }

  write(bytes: Buffer | string): void {
    if (!this.closed && !this.#socket.destroyed) this.#socket.write(bytes);
  }

  writeFrame(channel: number, data: Buffer): void {
    this.write(Buffer.concat([Buffer.from([0x24, channel, data.length >> 8, data.length & 0xff]), data]));
  }

  /** Ends the connection: with FIN after what was written, or at once with RST. */
  close(how: 'fin' | 'reset' = 'fin'): void {
    if (how === 'fin') this.#socket.end();
    else this.#socket.resetAndDestroy();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #take(message: Incoming, events: ConnectionEvents): void {
    if (message.kind === 'reply') this.clientReplies.push(message.status);
    else if (message.kind === 'frame') {
      this.clientFrames.push({ channel: message.channel, data: Buffer.from(message.data), atMs: this.nowMs() });
    } else {
      const session = header(message.request, 'Session');
      for (const own of this.sessions) if (session?.startsWith(own.id)) own.lastRequestMs = this.nowMs();
      events.request({ ...message.request, atMs: this.nowMs(), connectionIndex: this.index }, this);
    }
  }
}
