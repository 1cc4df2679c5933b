// RTSP over WebSocket (ONVIF Streaming Specification): messages and interleaved packets in binary frames of the sub-protocol
// `rtsp.onvif.org`, in the same sequence as over TCP.

import type { Socket } from 'node:net';
import { WebSocket } from 'ws';
import type { Clock } from '../../base/clock.ts';
import type { Reach } from '../reach/reach.ts';
import type { Login } from '../rtsp/login.ts';
import { checkUnsent, unreachable, type CameraConnection, type ConnectionHandler } from './tcp-transport.ts';
import { authorizationOf, HttpRefusal, openTunnel, type TunnelTarget } from './tunnel.ts';

const SUB_PROTOCOL = 'rtsp.onvif.org';
/** Size of one message. Interleaved packets have at most 64 KiB; a camera may combine several. */
const MAX_MESSAGE_BYTES = 1024 * 1024;

/** Rejects with `CameraError`, or with the signal's reason when it aborts. */
export function openWebSocketTunnel(
  target: TunnelTarget,
  handler: ConnectionHandler,
  deps: { readonly clock: Clock; readonly reach: Reach },
  signal: AbortSignal,
): Promise<CameraConnection> {
  return openTunnel(target, deps, signal, (connect, login) => handshake(target, handler, connect, login));
}

function handshake(
  target: TunnelTarget,
  handler: ConnectionHandler,
  connect: () => Socket,
  login: Login,
): Promise<CameraConnection> {
  return new Promise((resolve, reject) => {
    const socket = connect();
    // The socket determines TLS and the host, so only the path and query of this URL matter.
    const webSocket = new WebSocket(new URL(target.path, 'ws://camera'), [SUB_PROTOCOL], {
      createConnection: () => socket,
      headers: {
        host: target.authority,
        'user-agent': 'kube-nvr',
        ...authorizationOf(login, 'GET', target.path),
      },
      perMessageDeflate: false,
      maxPayload: MAX_MESSAGE_BYTES,
    });
    const tunnel = new WebSocketTunnel(webSocket, socket);
    let failure: Error | undefined;
    let open = false;
    webSocket.on('message', (data: Buffer) => {
      if (!tunnel.destroyed) handler.data(data, data.length);
    });
    webSocket.once('open', () => {
      open = true;
      resolve(tunnel);
    });
    webSocket.once('unexpected-response', (request, response) => {
      request.destroy();
      reject(new HttpRefusal(response.statusCode ?? 0, response.headers['www-authenticate']));
    });
    // Kept for the life of the socket: an error without a listener would end the process.
    webSocket.on('error', (error) => {
      failure ??= error;
      if (!open) reject(unreachable(error, target, !socket.connecting));
    });
    webSocket.once('close', () => {
      if (!open) return reject(unreachable(failure, target, true));
      if (tunnel.destroyed) return;
      tunnel.destroy();
      handler.closed(failure);
    });
  });
}

class WebSocketTunnel implements CameraConnection {
  readonly #webSocket: WebSocket;
  readonly #socket: Socket;
  destroyed = false;

  constructor(webSocket: WebSocket, socket: Socket) {
    this.#webSocket = webSocket;
    this.#socket = socket;
  }

  get remoteAddress(): string {
    return this.#socket.remoteAddress ?? '';
  }

  get localAddress(): string {
    return this.#socket.localAddress ?? '';
  }

  send(data: string | Buffer): void {
    if (this.destroyed || this.#webSocket.readyState !== WebSocket.OPEN) return;
    this.#webSocket.send(data, { binary: true });
    checkUnsent(this.#webSocket.bufferedAmount);
  }

  pause(): void {
    this.#webSocket.pause();
  }

  resume(): void {
    this.#webSocket.resume();
  }

  destroy(): void {
    this.destroyed = true;
    this.#webSocket.terminate();
  }
}
