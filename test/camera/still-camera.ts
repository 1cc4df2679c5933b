// A scripted camera for still images: an HTTP server that asks for logins and answers well or badly, as told, and
// remembers everything that clients did.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { selfSignedCertificate } from './certificate.ts';
import { challengeHeaders, verify, type Credentials } from './credentials.ts';

/** Answers one request that was let in. */
export type StillAnswer = (request: IncomingMessage, response: ServerResponse) => void;

export interface StillCameraOptions {
  readonly credentials?: Credentials;
  /** So many good logins are told that their nonce was stale, and get another one. */
  readonly staleNonces?: number;
  /** The connection ends behind each answer, which does not say so. */
  readonly closesSilently?: boolean;
  readonly tls?: boolean;
  readonly answer?: StillAnswer;
}

/** The shortest bytes that begin as a JPEG does; `text` tells pictures apart. */
export const jpeg = (text = 'picture'): Buffer =>
  Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0]), Buffer.from(text.padEnd(32, '.')), Buffer.from([0xff, 0xd9])]);

export const image =
  (body: Buffer = jpeg(), type = 'image/jpeg'): StillAnswer =>
  (_request, response) => {
    response.writeHead(200, { 'content-type': type, 'content-length': body.length }).end(body);
  };

/** What many cameras do instead of 401. */
export const loginPage: StillAnswer = (_request, response) => {
  response.writeHead(200, { 'content-type': 'image/jpeg' }).end('<!DOCTYPE html><html><body>Log in</body></html>');
};

export const status =
  (code: number): StillAnswer =>
  (_request, response) => {
    response.writeHead(code).end('no');
  };

export const redirect =
  (location: string, code = 302): StillAnswer =>
  (_request, response) => {
    response.writeHead(code, { location }).end();
  };

/** Takes the request and says nothing. */
export const silence: StillAnswer = () => {};

/** Begins a picture and never ends it. */
export const stalledBody: StillAnswer = (_request, response) => {
  response.writeHead(200, { 'content-type': 'image/jpeg' }).write(jpeg());
};

/** A picture without an end, as fast as it is taken. */
export const endlessBody: StillAnswer = (_request, response) => {
  response.writeHead(200, { 'content-type': 'image/jpeg' }).write(jpeg());
  const more = Buffer.alloc(256 * 1024, 0x55);
  const send = (): void => {
    while (!response.destroyed && response.write(more));
  };
  response.on('drain', send);
  send();
};

/** Motion JPEG where a still image was asked for: parts without an end. */
export const motionJpeg: StillAnswer = (_request, response) => {
  response.writeHead(200, { 'content-type': 'multipart/x-mixed-replace; boundary=x' });
  response.write('--x\r\nContent-Type: image/jpeg\r\n\r\n');
  response.write(jpeg());
};

/** Breaks the connection before it answers. */
export const reset: StillAnswer = (request) => request.socket.resetAndDestroy();

/** Breaks it within the picture. */
export const resetInBody: StillAnswer = (request, response) => {
  response.writeHead(200, { 'content-type': 'image/jpeg', 'content-length': 10_000 });
  response.write(jpeg(), () => request.socket.resetAndDestroy());
};

/** Ends within the picture, with fewer bytes than it announced. */
export const cutBody: StillAnswer = (request, response) => {
  response.writeHead(200, { 'content-type': 'image/jpeg', 'content-length': 10_000 });
  response.write(jpeg(), () => request.socket.end());
};

/** No HTTP at all. */
export const garbage: StillAnswer = (request) => void request.socket.end('220 FTP server ready\r\n');

export async function startStillCamera(options: StillCameraOptions = {}): Promise<StillCamera> {
  const camera = new StillCamera(options);
  await camera.listen();
  return camera;
}

export class StillCamera {
  readonly options: { -readonly [K in keyof StillCameraOptions]: StillCameraOptions[K] };
  /** Method and path of every request, in order. */
  readonly requests: string[] = [];
  /** Authorization of every request that had one. */
  readonly authorizations: string[] = [];
  /** Why logins were refused. */
  readonly refusals: string[] = [];
  /** Requests that were let in. */
  served = 0;
  readonly #server: Server;
  #nonce = 0;
  #stale = 0;

  constructor(options: StillCameraOptions) {
    this.options = { ...options };
    const listener: RequestListener = (request, response) => this.#request(request, response);
    this.#server = options.tls ? createTlsServer(selfSignedCertificate('camera'), listener) : createServer(listener);
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Without user and password. */
  get url(): string {
    return `http${this.options.tls ? 's' : ''}://127.0.0.1:${this.port}/snap.jpg?channel=1`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #request(request: IncomingMessage, response: ServerResponse): void {
    const { method = '', url = '', headers, socket } = request;
    this.requests.push(`${method} ${url}`);
    if (headers.authorization !== undefined) this.authorizations.push(headers.authorization);
    if (this.options.closesSilently) {
      response.shouldKeepAlive = true;
      response.on('finish', () => socket.end());
    }
    if (!this.#letsIn(request, response)) return;
    this.served++;
    (this.options.answer ?? image())(request, response);
  }

  #letsIn({ method = '', url = '', headers }: IncomingMessage, response: ServerResponse): boolean {
    const { credentials, staleNonces = 0 } = this.options;
    if (!credentials) return true;
    const verdict = verify(headers.authorization, method, url, this.#credentials(credentials));
    let isStale = false;
    if (verdict.ok) {
      if (this.#stale >= staleNonces) return true;
      this.#stale++;
      this.#nonce++;
      isStale = true;
    } else if (headers.authorization !== undefined) this.refusals.push(verdict.why);
    const challenges = challengeHeaders(this.#credentials(credentials));
    response
      .writeHead(
        401,
        challenges.flatMap(([name, value]) => [name, isStale ? `${value}, stale=true` : value]),
      )
      .end('who are you?');
    return false;
  }

  /** The same, asked for with the nonce of now. */
  #credentials(credentials: Credentials): Credentials {
    const challenges = credentials.challenges ?? [{ scheme: 'digest' }];
    return { ...credentials, challenges: challenges.map((one) => ({ nonce: `nonce-${this.#nonce}`, ...one })) };
  }
}
