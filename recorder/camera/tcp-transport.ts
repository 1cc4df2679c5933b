// One TCP or TLS connection to a camera, read into a buffer that all cameras share: incoming data needs no allocation.

import { isIP } from 'node:net';
import type { Socket } from 'node:net';
import type { Clock, Timer } from '../../base/clock.ts';
import { CertificateRefused, connectCamera } from '../reach/connect.ts';
import type { Destination } from '../reach/connect.ts';
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
  destroy(): void;
}

/** A connection whose reads can be paused, so that the camera has to wait. */
export interface PausableConnection extends CameraConnection {
  pause(): void;
  resume(): void;
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

class TcpConnection implements PausableConnection {
  readonly #socket: Socket;
  #destroyed = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  get remoteAddress(): string {
    return this.#socket.remoteAddress ?? '';
  }

  get localAddress(): string {
    return this.#socket.localAddress ?? '';
  }

  get destroyed(): boolean {
    return this.#destroyed;
  }

  send(data: string | Buffer): void {
    if (this.#destroyed || !this.#socket.writable) return;
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
    this.#destroyed = true;
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
  deps: { readonly clock: Clock; readonly receiveBuffer: Buffer; readonly reach: Reach },
  signal: AbortSignal,
): Promise<PausableConnection> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const knocking = new Set<TcpConnection>();
    let answered = false;
    let settled = false;
    /** Another attempt every second, to the address of the name; none before the name has been resolved. */
    let host = isIP(target.host) === 0 ? undefined : target.host;

    const settle = (kept?: TcpConnection): void => {
      settled = true;
      limit.cancel();
      next?.cancel();
      signal.removeEventListener('abort', abort);
      for (const connection of knocking) if (connection !== kept) connection.destroy();
    };
    const fail = (error: unknown): void => {
      if (settled) return;
      settle();
      reject(error);
    };
    const abort = (): void => fail(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    const limit = deps.clock.after(CONNECT_TIMEOUT_MS, () => {
      const message = `no connection to ${shown(target)} within 10 s`;
      fail(answered ? new CameraError('unreachable', message) : new NoConnection(message));
    });

    const knock = (at: string): void => {
      const isFirst = knocking.size === 0;
      const socket = connectCamera({ ...target, host: at }, deps.reach.networks, target.host, {
        buffer: deps.receiveBuffer,
        callback: (size, buffer) => {
          if (!connection.destroyed) handler.data(buffer as Buffer, size);
          return true;
        },
      });
      const connection = new TcpConnection(socket);
      knocking.add(connection);
      let isOpen = false;
      let failure: Error | undefined;
      socket.setNoDelay(true);
      socket.setKeepAlive(true, KEEPALIVE_DELAY_MS);
      socket.once('lookup', (error: Error | null, address: string) => {
        if (!error) host ??= address;
      });
      socket.once('connect', () => {
        if (settled || connection.destroyed) return;
        answered = true;
        next?.cancel();
        for (const other of knocking) if (other !== connection) other.destroy();
      });
      socket.once(target.secure ? 'secureConnect' : 'connect', () => {
        if (settled || connection.destroyed || socket.destroyed) return;
        isOpen = true;
        settle(connection);
        resolve(connection);
      });
      // Kept for the life of the socket: an error without a listener would end the process.
      socket.on('error', (error) => {
        failure = error;
        // The result of a later attempt adds nothing to that of the first one.
        if (!connection.destroyed && !isOpen && (isFirst || answered)) fail(unreachable(error, target, answered));
      });
      socket.once('close', () => {
        if (connection.destroyed) return;
        connection.destroy();
        if (isOpen) handler.closed(failure);
        else if (isFirst || answered) fail(unreachable(failure, target, answered));
      });
    };
    let next: Timer | undefined;
    const again = (): void => {
      next = deps.clock.after(KNOCK_MS, () => {
        if (settled || answered) return;
        if (host !== undefined) knock(host);
        again();
      });
    };
    knock(target.host);
    again();
  });
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
  const detail = (error instanceof CertificateRefused ? error.message : error?.code) ?? error?.message ?? 'closed';
  const message = `the camera cannot be reached at ${shown(target)}: ${detail}`;
  // A name that cannot be resolved does not show that the camera is away, and resolving it every second would burden others.
  const isAway = !answered && !/^(ENOTFOUND|EAI_)/.test(detail);
  return isAway
    ? new NoConnection(message, { cause: error })
    : new CameraError('unreachable', message, { cause: error });
}
