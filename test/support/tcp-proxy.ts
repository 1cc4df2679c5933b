// A TCP proxy in a test: it can be cut, or become silent like an unplugged link.

import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export class TcpProxy {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  /** Connections made while the link was silent: as if their first packet were still on its way. */
  readonly #held = new Set<Socket>();
  readonly #port: number;
  readonly #host: string;
  #isSilent = false;
  /** The number of connections since the start. */
  accepted = 0;

  private constructor(server: Server, port: number, host: string) {
    this.#server = server;
    this.#port = port;
    this.#host = host;
  }

  /** Listens on another port of the same address. */
  static async to(port: number, host = '127.0.0.1', at = host): Promise<TcpProxy> {
    const server = createServer();
    const proxy = new TcpProxy(server, port, host);
    server.on('connection', (client) => proxy.#accept(client));
    server.listen(0, at);
    await once(server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** The number of open connections. */
  get open(): number {
    return this.#pairs.size;
  }

  /** Resets every connection. New ones are passed on. */
  reset(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.resetAndDestroy();
  }

  /** From now on nothing passes in either direction, and no side notices: open connections stay open. */
  silence(): void {
    this.#isSilent = true;
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  /** New connections pass again; those that were open stay silent for ever, as after a change of the route. */
  heal(): void {
    this.#isSilent = false;
    for (const client of this.#held) this.#pass(client);
    this.#held.clear();
  }

  async close(): Promise<void> {
    for (const socket of [...this.#pairs].flat().concat([...this.#held])) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(client: Socket): void {
    this.accepted++;
    client.on('error', () => {});
    if (!this.#isSilent) return this.#pass(client);
    this.#held.add(client);
    client.on('close', () => this.#held.delete(client));
  }

  #pass(client: Socket): void {
    const server = connect(this.#port, this.#host);
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    for (const [from, to] of [pair, [server, client] as const]) {
      from.on('data', (chunk) => to.write(chunk));
      from.on('end', () => to.end());
      from.on('error', () => {});
      from.on('close', () => {
        to.destroy();
        this.#pairs.delete(pair);
      });
    }
  }
}
