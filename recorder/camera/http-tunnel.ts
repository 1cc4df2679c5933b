// RTSP over HTTP (Apple, "Tunnelling RTSP and RTP over HTTP"; ONVIF Streaming Specification): data from the camera is the endless
// body of a GET, data to the camera is base64 in the endless body of a POST. A cookie connects the two.

import { randomBytes } from 'node:crypto';
import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import type { Reach } from '../reach/reach.ts';
import type { Login } from '../rtsp/login.ts';
import { checkUnsent, unreachable, type CameraConnection, type ConnectionHandler } from './tcp-transport.ts';
import { authorizationOf, HttpRefusal, openTunnel, type TunnelTarget } from './tunnel.ts';

const CONTENT_TYPE = 'application/x-rtsp-tunnelled';
/** The length of an endless body. Every client states this value, and no camera checks it. */
const POST_LENGTH = '32767';

/** Rejects with `CameraError`, or with the signal's reason when it aborts. */
export function openHttpTunnel(
  target: TunnelTarget,
  handler: ConnectionHandler,
  deps: { readonly clock: Clock; readonly reach: Reach },
  signal: AbortSignal,
): Promise<CameraConnection> {
  return openTunnel(target, deps, signal, async (connect, login) => {
    const cookie = randomBytes(11).toString('hex');
    let isLenient = false;
    const get = (): Promise<IncomingMessage> => {
      const headers = { 'x-sessioncookie': cookie, accept: CONTENT_TYPE };
      return answerOf(ask(target, 'GET', headers, { connect, login, isLenient }).end(), target);
    };
    const response = await get().catch((err: unknown) => {
      if (!isMalformed(err)) throw err;
      // Some cameras end lines without CR. Only these are read by rules under which a forged answer is harder to tell.
      isLenient = true;
      return get();
    });
    if (response.statusCode !== 200) {
      throw new HttpRefusal(response.statusCode ?? 0, response.headers['www-authenticate']);
    }
    const headers = { 'x-sessioncookie': cookie, 'content-type': CONTENT_TYPE, 'content-length': POST_LENGTH };
    const post = ask(target, 'POST', headers, { connect, login, isLenient });
    post.flushHeaders();
    return new HttpTunnel(response, post, handler);
  });
}

function ask(
  target: TunnelTarget,
  method: 'GET' | 'POST',
  headers: Record<string, string>,
  { connect, login, isLenient }: { readonly connect: () => Socket; readonly login: Login; readonly isLenient: boolean },
): ClientRequest {
  return httpRequest({
    method,
    path: target.path,
    headers: {
      host: target.authority,
      'user-agent': 'kube-nvr',
      'cache-control': 'no-cache',
      ...headers,
      ...authorizationOf(login, method, target.path),
    },
    createConnection: connect,
    insecureHTTPParser: isLenient,
  });
}

function answerOf(request: ClientRequest, target: TunnelTarget): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve);
    // Kept for the life of the request: an error without a listener would end the process.
    request.on('error', (error) => reject(unreachable(error, target, request.socket?.connecting === false)));
  });
}

/** The answer was not HTTP by RFC 9112. */
const isMalformed = (err: unknown): boolean =>
  err instanceof Error && String((err.cause as { readonly code?: string } | undefined)?.code).startsWith('HPE_');

class HttpTunnel implements CameraConnection {
  readonly remoteAddress: string;
  readonly localAddress: string;
  readonly #response: IncomingMessage;
  readonly #post: ClientRequest;
  destroyed = false;

  constructor(response: IncomingMessage, post: ClientRequest, handler: ConnectionHandler) {
    this.remoteAddress = response.socket.remoteAddress ?? '';
    this.localAddress = response.socket.localAddress ?? '';
    this.#response = response;
    this.#post = post;
    let failure: Error | undefined;
    const closed = (): void => {
      if (this.destroyed) return;
      this.destroy();
      handler.closed(failure);
    };
    const failed = (error: Error): void => void (failure ??= error);
    response.on('data', (chunk: Buffer) => {
      if (!this.destroyed) handler.data(chunk, chunk.length);
    });
    response.on('error', failed).once('close', closed);
    post.on('error', failed).once('close', closed);
    // Most cameras never answer the POST.
    post.once('response', (answer) => answer.resume());
  }

  send(data: string | Buffer): void {
    if (this.destroyed) return;
    this.#post.write((typeof data === 'string' ? Buffer.from(data) : data).toString('base64'));
    checkUnsent(this.#post.writableLength);
  }

  pause(): void {
    this.#response.pause();
  }

  resume(): void {
    this.#response.resume();
  }

  destroy(): void {
    this.destroyed = true;
    this.#response.destroy();
    this.#post.destroy();
  }
}
