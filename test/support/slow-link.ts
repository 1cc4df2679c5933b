// A slow link in front of a port of this machine: all connections share its rate, and every byte is later by its delay. Kernels
// have netem for this only where its module is there, and tests need no privileges this way.

import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

interface SlowLinkOptions {
  readonly port: number;
  readonly bitsPerSecond: number;
  /** From one end to the other and back. */
  readonly roundTripMs: number;
}

/** More than this does not wait on the link: the sender is held up, as by a router with a small queue. */
const QUEUE_MS = 200;

/** When the last byte that was taken leaves the link, for one direction. */
interface Direction {
  freeAtMs: number;
  bytes: number;
}

export class SlowLink {
  readonly #server: Server;
  readonly #options: SlowLinkOptions;
  readonly #sockets = new Set<Socket>();
  readonly #up: Direction = { freeAtMs: 0, bytes: 0 };
  readonly #down: Direction = { freeAtMs: 0, bytes: 0 };

  private constructor(server: Server, options: SlowLinkOptions) {
    this.#server = server;
    this.#options = options;
  }

  static async to(options: SlowLinkOptions): Promise<SlowLink> {
    // The pause of a connection is for its handshake.
    const server = createServer({ pauseOnConnect: true });
    const link = new SlowLink(server, options);
    server.on('connection', (client) => link.#accept(client));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return link;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Bytes that have passed towards the clients. */
  get received(): number {
    return this.#down.bytes;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(client: Socket): void {
    const server = connect(this.#options.port, '127.0.0.1');
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => {});
    }
    client.on('close', () => server.destroy());
    server.on('close', () => setTimeout(() => client.destroy(), this.#options.roundTripMs));
    for (const socket of [client, server]) socket.on('close', () => this.#sockets.delete(socket));
    this.#carry(server, client, this.#down);
    // SYN, and the answer to it.
    setTimeout(() => this.#carry(client, server, this.#up), this.#options.roundTripMs);
  }

  #carry(from: Socket, to: Socket, direction: Direction): void {
    from.on('data', (chunk: Buffer) => {
      const nowMs = performance.now();
      const { bitsPerSecond, roundTripMs } = this.#options;
      direction.freeAtMs = Math.max(nowMs, direction.freeAtMs) + (chunk.length * 8_000) / bitsPerSecond;
      direction.bytes += chunk.length;
      setTimeout(() => to.write(chunk), direction.freeAtMs - nowMs + roundTripMs / 2);
      const queueMs = direction.freeAtMs - nowMs;
      if (queueMs <= QUEUE_MS) return;
      from.pause();
      setTimeout(() => from.resume(), queueMs - QUEUE_MS);
    });
    from.on('end', () => {
      setTimeout(() => to.end(), Math.max(0, direction.freeAtMs - performance.now()) + this.#options.roundTripMs / 2);
    });
    from.resume();
  }
}
