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
    for (const socket of [client, server]) socket.on('close', () => this.#sockets.delete(socket));
    this.#carry(server, client, this.#down);
    // SYN, and the answer to it.
    setTimeout(() => this.#carry(client, server, this.#up), this.#options.roundTripMs);
  }

  #carry(from: Socket, to: Socket, direction: Direction): void {
    const { bitsPerSecond, roundTripMs } = this.#options;
    // Timers of unequal length may fire in another order than they were set: what is on the way leaves in its own.
    const onTheWay: { readonly atMs: number; readonly arrive: () => void }[] = [];
    const arrivals = (): void => {
      while (onTheWay[0] && onTheWay[0].atMs <= performance.now()) onTheWay.shift()?.arrive();
      if (onTheWay[0]) setTimeout(arrivals, Math.ceil(onTheWay[0].atMs - performance.now()));
    };
    const send = (arrive: () => void): void => {
      const atMs = Math.max(performance.now(), direction.freeAtMs) + roundTripMs / 2;
      if (onTheWay.push({ atMs, arrive }) === 1) setTimeout(arrivals, Math.ceil(atMs - performance.now()));
    };
    from.on('data', (chunk: Buffer) => {
      const nowMs = performance.now();
      direction.freeAtMs = Math.max(nowMs, direction.freeAtMs) + (chunk.length * 8_000) / bitsPerSecond;
      direction.bytes += chunk.length;
      send(() => to.write(chunk));
      const queueMs = direction.freeAtMs - nowMs;
      if (queueMs <= QUEUE_MS) return;
      from.pause();
      setTimeout(() => from.resume(), queueMs - QUEUE_MS);
    });
    from.on('end', () => send(() => to.end()));
    from.on('close', () => send(() => to.destroySoon()));
    from.resume();
  }
}
