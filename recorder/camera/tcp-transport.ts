// One TCP or TLS connection to a camera, read into a buffer that all cameras share: incoming data needs no allocation.

import { isIP, type Socket } from 'node:net';
import type { Clock, Timer } from '../../base/clock.ts';
import { isOutOfFiles, OUT_OF_FILES } from '../../base/open-files.ts';
import { CertificateRefused, connectCamera, type Destination } from '../reach/connect.ts';
import { AddressRefused } from '../reach/networks.ts';
import type { Reach } from '../reach/reach.ts';
import { CameraError, NoConnection } from './error.ts';

export interface TcpTarget extends Destination {
  /** The host for messages; undefined if it may contain a part of the password. */
  readonly shownHost: string | undefined;
}

/** The connection for RTSP and interleaved packets: TCP, TLS, or a tunnel. */
export interface CameraConnection {
  /** The actual addresses of the connection: of the camera, and of this end. */
  readonly remoteAddress: string;
  readonly localAddress: string;
  readonly destroyed: boolean;
  /** Throws `CameraError` if the camera does not read what it was sent. */
  send(data: string | Buffer): void;
  /** Reads no more until `resume`, so that the camera has to wait. */
  pause(): void;
  resume(): void;
  destroy(): void;
}

export interface ConnectionHandler {
  /** Bytes at `buffer[0, size)`; valid only during the call. */
  data(buffer: Buffer, size: number): void;
  /** The other side closed or the connection broke; called once, never after `destroy`. */
  closed(error: Error | undefined): void;
}

export const CONNECT_TIMEOUT_MS = 10_000;
const KNOCK_MS = 1_000;
/** A dead peer that sends nothing is detected by the watchdog; this is for connections that only wait. */
const KEEPALIVE_DELAY_MS = 15_000;
/** We send a request every half minute: more unsent bytes mean that the camera does not read. */
const MAX_UNSENT_BYTES = 64 * 1024;

class TcpConnection implements CameraConnection {
  readonly #socket: Socket;
  destroyed = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  get remoteAddress(): string {
    return this.#socket.remoteAddress ?? '';
  }

  get localAddress(): string {
    return this.#socket.localAddress ?? '';
  }

  send(data: string | Buffer): void {
    if (this.destroyed || !this.#socket.writable) return;
    this.#socket.write(data);
    checkUnsent(this.#socket.writableLength);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  destroy(): void {
    this.destroyed = true;
    this.#socket.destroy();
  }
}

/** Throws `CameraError` if this many bytes wait for the camera to read them. */
export function checkUnsent(bytes: number): void {
  if (bytes > MAX_UNSENT_BYTES) throw new CameraError('protocol', 'the camera asks but does not read the answers');
}

/**
 * Rejects with `CameraError` (`unreachable`), with `NoConnection` if nothing answered at the port, or with the signal's reason
 * when it aborts. While nothing answers, another socket tries to connect every second: the system repeats a lost SYN only after
 * 1, 2, 4 and more seconds, and a camera that is back after an outage should not have to wait for that.
 */
export function openTcp(
  target: TcpTarget,
  handler: ConnectionHandler,
  deps: TcpDeps,
  signal: AbortSignal,
): Promise<CameraConnection> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    new Knocking(target, handler, deps, signal, { resolve, reject }).start();
  });
}

interface TcpDeps {
  readonly clock: Clock;
  readonly receiveBuffer: Buffer;
  readonly reach: Reach;
}

interface Outcome {
  resolve(connection: CameraConnection): void;
  reject(error: unknown): void;
}

/** The sockets that try to connect, until one of them has connected or none may any more. */
class Knocking {
  readonly #target: TcpTarget;
  readonly #handler: ConnectionHandler;
  readonly #deps: TcpDeps;
  readonly #signal: AbortSignal;
  readonly #promise: Outcome;
  readonly #connections = new Set<TcpConnection>();
  readonly #limit: Timer;
  readonly #abort = (): void => this.#fail(this.#signal.reason);
  /** For further attempts: the address of the name; undefined until the name is resolved. */
  #host: string | undefined;
  #next: Timer | undefined;
  #answered = false;
  #settled = false;

  constructor(target: TcpTarget, handler: ConnectionHandler, deps: TcpDeps, signal: AbortSignal, promise: Outcome) {
    this.#target = target;
    this.#handler = handler;
    this.#deps = deps;
    this.#signal = signal;
    this.#promise = promise;
    this.#host = isIP(target.host) === 0 ? undefined : target.host;
    signal.addEventListener('abort', this.#abort, { once: true });
    this.#limit = deps.clock.after(CONNECT_TIMEOUT_MS, () => {
      const message = `no connection to ${shown(target)} within 10 s`;
      this.#fail(this.#answered ? new CameraError('unreachable', message) : new NoConnection(message));
    });
  }

  start(): void {
    this.#knock(this.#target.host);
    this.#knockLater();
  }

  #knockLater(): void {
    this.#next = this.#deps.clock.after(KNOCK_MS, () => {
      if (this.#settled || this.#answered) return;
      if (this.#host !== undefined) this.#knock(this.#host);
      this.#knockLater();
    });
  }

  #knock(host: string): void {
    const { receiveBuffer: buffer, reach } = this.#deps;
    const isFirst = this.#connections.size === 0;
    const socket = connectCamera({ ...this.#target, host }, reach.networks, this.#target.host, {
      buffer,
      callback: (size, data) => {
        if (!connection.destroyed) this.#handler.data(data as Buffer, size);
        return true;
      },
    });
    const connection = new TcpConnection(socket);
    this.#connections.add(connection);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEPALIVE_DELAY_MS);
    socket.once('lookup', (error: Error | null, address: string) => {
      if (!error) this.#host ??= address;
    });
    socket.once('connect', () => {
      if (!this.#settled && !connection.destroyed) this.#answeredBy(connection);
    });
    let isOpen = false;
    socket.once(this.#target.secure ? 'secureConnect' : 'connect', () => {
      if (this.#settled || connection.destroyed || socket.destroyed) return;
      isOpen = true;
      this.#settle(connection);
      this.#promise.resolve(connection);
    });
    // Kept for the life of the socket: an error without a listener would end the process.
    let failure: Error | undefined;
    socket.on('error', (error) => {
      failure = error;
      if (!connection.destroyed && !isOpen) this.#failed(error, isFirst);
    });
    socket.once('close', () => {
      if (connection.destroyed) return;
      connection.destroy();
      if (isOpen) this.#handler.closed(failure);
      else this.#failed(failure, isFirst);
    });
  }

  #answeredBy(connection: TcpConnection): void {
    this.#answered = true;
    this.#next?.cancel();
    for (const other of this.#connections) if (other !== connection) other.destroy();
  }

  /** The result of a later attempt adds nothing to that of the first one. */
  #failed(error: Error | undefined, isFirst: boolean): void {
    if (isFirst || this.#answered) this.#fail(unreachable(error, this.#target, this.#answered));
  }

  #fail(error: unknown): void {
    if (this.#settled) return;
    this.#settle();
    this.#promise.reject(error);
  }

  #settle(kept?: TcpConnection): void {
    this.#settled = true;
    this.#limit.cancel();
    this.#next?.cancel();
    this.#signal.removeEventListener('abort', this.#abort);
    for (const connection of this.#connections) if (connection !== kept) connection.destroy();
  }
}

/** Host and port for messages. */
export function shown({ shownHost, port }: TcpTarget): string {
  return `${shownHost ?? 'the host that the URL names'}, port ${port}`;
}

export function unreachable(
  error: (Error & { code?: string }) | undefined,
  target: TcpTarget,
  answered: boolean,
): CameraError {
  if (error instanceof AddressRefused) {
    const named =
      target.shownHost === undefined ? 'cameraNetworks does not allow the host that the URL names' : error.message;
    return new CameraError('address-refused', named, { cause: error });
  }
  if (isOutOfFiles(error)) return new CameraError(OUT_OF_FILES.code, OUT_OF_FILES.message, { cause: error });
  const detail = (error instanceof CertificateRefused ? error.message : error?.code) ?? error?.message ?? 'closed';
  const message = `the camera cannot be reached at ${shown(target)}: ${detail}`;
  // A name that cannot be resolved does not show that the camera is away, and resolving it every second would burden others.
  const isAway = !answered && !/^(ENOTFOUND|EAI_)/.test(detail);
  return isAway
    ? new NoConnection(message, { cause: error })
    : new CameraError('unreachable', message, { cause: error });
}
