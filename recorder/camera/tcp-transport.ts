// One TCP or TLS connection to a camera, read into a buffer that all cameras share: no allocation for what arrives.

import { isIP, connect as connectTcp } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Clock } from '../../base/clock.ts';
import { CameraError } from './error.ts';

export interface TcpTarget {
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  /** TLS: refuse a certificate that no authority vouches for. */
  readonly verify: boolean;
}

export interface TcpHandler {
  /** Bytes at `buffer[0, size)`, valid only until the call returns. */
  data(buffer: Buffer, size: number): void;
  /** The other side closed, or the connection broke; called once, never after `destroy`. */
  closed(error: Error | undefined): void;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** A dead peer that sends nothing is found by the watchdog; this is for connections that only wait. */
const KEEPALIVE_DELAY_MS = 15_000;
/** We send a request every half minute: more than this means that the camera does not read. */
const MAX_UNSENT_BYTES = 64 * 1024;

export class TcpConnection {
  readonly #socket: Socket;
  #destroyed = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Address of the camera, as connected. */
  get remoteAddress(): string {
    return this.#socket.remoteAddress ?? '';
  }

  get localAddress(): string {
    return this.#socket.localAddress ?? '';
  }

  get destroyed(): boolean {
    return this.#destroyed;
  }

  /** Throws `CameraError` when the camera leaves what it was sent lying. */
  send(text: string): void {
    if (this.#destroyed || !this.#socket.writable) return;
    this.#socket.write(text);
    if (this.#socket.writableLength > MAX_UNSENT_BYTES) {
      throw new CameraError('protocol', 'the camera asks but does not read the answers');
    }
  }

  destroy(): void {
    this.#destroyed = true;
    this.#socket.destroy();
  }
}

function open(target: TcpTarget, receiveBuffer: Buffer, data: (size: number, buffer: Uint8Array) => void): Socket {
  const onread = {
    buffer: receiveBuffer,
    callback: (size: number, buffer: Uint8Array) => {
      data(size, buffer);
      return true;
    },
  };
  const common = { host: target.host, port: target.port, onread };
  if (!target.secure) return connectTcp(common);
  return connectTls({
    ...common,
    // A name indication must be a name (RFC 6066 §3).
    ...(isIP(target.host.split('%')[0] ?? '') === 0 ? { servername: target.host } : {}),
    rejectUnauthorized: target.verify,
    // Cameras with TLS 1.0 and 1024-bit keys are still better off with TLS than without.
    ...(target.verify ? {} : { minVersion: 'TLSv1' as const, ciphers: 'DEFAULT:@SECLEVEL=0' }),
  });
}

/** Rejects with `CameraError` (`unreachable`), or with the signal's reason when it aborts. */
export function openTcp(
  target: TcpTarget,
  handler: TcpHandler,
  deps: { readonly clock: Clock; readonly receiveBuffer: Buffer },
  signal: AbortSignal,
): Promise<TcpConnection> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = open(target, deps.receiveBuffer, (size, buffer) => {
      if (!connection.destroyed) handler.data(buffer as Buffer, size);
    });
    const connection = new TcpConnection(socket);
    let connected = false;
    let failure: Error | undefined;
    const fail = (error: unknown): void => {
      settle();
      connection.destroy();
      reject(error);
    };
    const timer = deps.clock.after(CONNECT_TIMEOUT_MS, () => {
      fail(new CameraError('unreachable', `no connection to port ${target.port} within 10 s`));
    });
    const abort = (): void => fail(signal.reason);
    const settle = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', abort);
    };
    signal.addEventListener('abort', abort, { once: true });
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEPALIVE_DELAY_MS);
    socket.once(target.secure ? 'secureConnect' : 'connect', () => {
      if (connection.destroyed) return;
      connected = true;
      settle();
      resolve(connection);
    });
    // Stays for the life of the socket: an error without a listener would end the process.
    socket.on('error', (error) => {
      failure = error;
      if (!connected) fail(unreachable(error));
    });
    socket.once('close', () => {
      if (connection.destroyed) return;
      connection.destroy();
      if (connected) handler.closed(failure);
      else fail(unreachable(failure));
    });
  });
}

function unreachable(error: (Error & { code?: string }) | undefined): CameraError {
  const detail = error?.code ?? error?.message ?? 'closed';
  return new CameraError('unreachable', `the camera cannot be reached: ${detail}`, { cause: error });
}
