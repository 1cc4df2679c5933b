// The common part of both kinds of tunnel: an HTTP request that may need a login, within the time limit of a connection.

import type { Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import { LoginError, type Login } from '../rtsp/login.ts';
import { connectCamera } from '../reach/connect.ts';
import type { Reach } from '../reach/reach.ts';
import { CameraError } from './error.ts';
import { CONNECT_TIMEOUT_MS, shown, type TcpTarget } from './tcp-transport.ts';

export interface TunnelTarget extends TcpTarget {
  /** Host and port as in a URL, for the Host header. */
  readonly authority: string;
  readonly path: string;
  readonly login: () => Login;
}

/** The camera's response instead of a tunnel. */
export class HttpRefusal extends Error {
  readonly status: number;
  /** The `WWW-Authenticate` headers. */
  readonly challenges: string;

  constructor(status: number, challenges: string | undefined) {
    super(`HTTP ${status}`);
    this.status = status;
    this.challenges = challenges ?? '';
  }
}

/**
 * Opens a tunnel with `attempt`, and a second time with a login if the camera requires one. `attempt` must pass each socket to
 * `onSocket`, to be closed if everything fails. Rejects with `CameraError`, or the signal's reason.
 */
export async function openTunnel<T>(
  target: TunnelTarget,
  { clock, reach }: { readonly clock: Clock; readonly reach: Reach },
  signal: AbortSignal,
  attempt: (connect: () => Socket, login: Login) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const sockets: Socket[] = [];
  const connect = (): Socket => {
    const socket = connectCamera(target, reach.networks);
    socket.setNoDelay(true);
    // An error without a listener would end the process.
    socket.on('error', () => {});
    sockets.push(socket);
    return socket;
  };
  const given = Promise.withResolvers<never>();
  const timer = clock.after(CONNECT_TIMEOUT_MS, () => {
    given.reject(new CameraError('unreachable', `no tunnel to ${shown(target)} within 10 s`));
  });
  const abort = (): void => given.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([logIn(target.login(), (login) => attempt(connect, login)), given.promise]);
  } catch (error) {
    for (const socket of sockets) socket.destroy();
    throw error;
  } finally {
    timer.cancel();
    signal.removeEventListener('abort', abort);
  }
}

/** The Authorization header of a request, if there is one to send. */
export function authorizationOf(login: Login, method: string, path: string): { authorization?: string } {
  const authorization = login.authorize(method, path);
  return authorization === undefined ? {} : { authorization };
}

async function logIn<T>(login: Login, attempt: (login: Login) => Promise<T>): Promise<T> {
  try {
    return await attempt(login);
  } catch (error) {
    if (!(error instanceof HttpRefusal)) throw error;
    if (error.status !== 401) throw explain(error);
    take(login, error);
    const opened = await attempt(login).catch((again: unknown) => {
      if (!(again instanceof HttpRefusal)) throw again;
      if (again.status === 401) login.refused();
      throw explain(again);
    });
    login.accepted();
    return opened;
  }
}

function take(login: Login, { challenges }: HttpRefusal): void {
  try {
    login.take([challenges]);
  } catch (error) {
    if (!(error instanceof LoginError)) throw error;
    const code = error.code === 'downgraded' ? 'login-downgraded' : 'refused-login';
    throw new CameraError(code, error.message, { cause: error });
  }
}

function explain({ status }: HttpRefusal): CameraError {
  if (status === 401 || status === 403) {
    return new CameraError('refused-login', 'the camera refuses the configured user and password');
  }
  if (status === 404) return new CameraError('not-found', 'the camera has no tunnel at this path (404)');
  if (status === 503) return new CameraError('too-many-streams', 'the camera answered the tunnel with 503');
  return new CameraError('transport-refused', `the camera answered the tunnel with ${status}`);
}
