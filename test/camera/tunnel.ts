// A camera's front for tunnels: RTSP over HTTP and over WebSocket in, its own RTSP port out. Works before any server.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { WebSocketServer } from 'ws';
import { selfSignedCertificate } from './certificate.ts';

export interface TunnelOptions {
  readonly tls?: boolean;
  /** True: the front answers it (as with a refusal), and nothing opens. */
  readonly refuse?: (request: IncomingMessage, response: ServerResponse) => boolean;
}

export class TunnelFront {
  /** Method, path and `Authorization` of each request. */
  readonly asked: { readonly method: string; readonly path: string; readonly authorization: string | undefined }[] = [];
  /** Port of the server behind. */
  behindPort = 0;
  readonly #options: TunnelOptions;
  readonly #server;
  readonly #webSockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (protocols) => (protocols.has('rtsp.onvif.org') ? 'rtsp.onvif.org' : false),
  });
  readonly #sockets = new Set<Socket>();
  /** To the server behind, by cookie. */
  readonly #behind = new Map<string, Socket>();

  constructor(options: TunnelOptions) {
    this.#options = options;
    const listener = (request: IncomingMessage, response: ServerResponse): void => this.#answer(request, response);
    this.#server = options.tls ? createTlsServer(selfSignedCertificate('camera'), listener) : createServer(listener);
    this.#server.on('connection', (socket: Socket) => this.#keep(socket));
    this.#server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      this.#note(request);
      const refused = this.#options.refuse && refusalText(request, this.#options.refuse);
      if (refused !== undefined) {
        if (refused !== '') socket.end(refused);
        return;
      }
      this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => {
        const behind = this.#connectBehind();
        behind.on('data', (data: Buffer) => webSocket.send(data));
        behind.on('close', () => webSocket.close());
        webSocket.on('message', (data: Buffer) => behind.write(data));
        webSocket.on('close', () => behind.destroy());
      });
    });
  }

  static async start(options: TunnelOptions = {}): Promise<TunnelFront> {
    const front = new TunnelFront(options);
    front.#server.listen(0, '127.0.0.1');
    await once(front.#server, 'listening');
    return front;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  /** Ends what is open, as a camera that restarts. */
  drop(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Sends one message of so many bytes through each WebSocket. */
  flood(bytes: number): void {
    for (const webSocket of this.#webSockets.clients) webSocket.send(Buffer.alloc(bytes));
  }

  #keep(socket: Socket): Socket {
    this.#sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
    return socket;
  }

  #connectBehind(): Socket {
    return this.#keep(connect(this.behindPort, '127.0.0.1'));
  }

  #note({ method = '', url = '', headers }: IncomingMessage): void {
    this.asked.push({ method, path: url, authorization: headers.authorization });
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    this.#note(request);
    if (this.#options.refuse?.(request, response)) return;
    const cookie = String(request.headers['x-sessioncookie']);
    if (request.method === 'GET') {
      const behind = this.#connectBehind();
      this.#behind.set(cookie, behind);
      response.writeHead(200, { 'content-type': 'application/x-rtsp-tunnelled' });
      response.flushHeaders();
      behind.pipe(response);
      behind.on('close', () => response.destroy());
      response.on('close', () => behind.destroy());
      return;
    }
    const behind = this.#behind.get(cookie);
    if (!behind) return void response.writeHead(400).end();
    let rest = '';
    request.on('data', (chunk: Buffer) => {
      rest += chunk.toString('latin1');
      // Each message is padded for itself.
      for (let whole = rest.length - (rest.length % 4); whole > 0; whole = 0) {
        for (const part of rest.slice(0, whole).match(/[^=]+=*/g) ?? []) behind.write(Buffer.from(part, 'base64'));
        rest = rest.slice(whole);
      }
    });
    request.on('close', () => behind.destroy());
  }
}

/** What `refuse` would answer, as text for a socket that is being upgraded; empty: nothing. */
function refusalText(request: IncomingMessage, refuse: NonNullable<TunnelOptions['refuse']>): string | undefined {
  let text: string | undefined;
  const response = {
    writeHead(status: number, headers: Record<string, string> = {}) {
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      text = `HTTP/1.1 ${status} Refused\r\n${lines.join('')}connection: close\r\n\r\n`;
      return { end: () => {} };
    },
  };
  return refuse(request, response as unknown as ServerResponse) ? (text ?? '') : undefined;
}
