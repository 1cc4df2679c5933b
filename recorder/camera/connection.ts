// Opens the connection that a camera's address calls for: TCP, TLS, or a tunnel.

import type { Clock } from '../../base/clock.ts';
import type { CameraTls } from '../reach/connect.ts';
import type { Reach } from '../reach/reach.ts';
import type { Login } from '../rtsp/login.ts';
import type { RtspUrl } from '../rtsp/url.ts';
import { openHttpTunnel } from './http-tunnel.ts';
import { openTcp, type CameraConnection, type ConnectionHandler } from './tcp-transport.ts';
import { openWebSocketTunnel } from './websocket-tunnel.ts';

/** Rejects with `CameraError`, or with the signal's reason when it aborts. */
export function openConnection(
  url: RtspUrl,
  options: { readonly tls: CameraTls; readonly login: () => Login },
  handler: ConnectionHandler,
  deps: { readonly clock: Clock; readonly receiveBuffer: Buffer; readonly reach: Reach },
  signal: AbortSignal,
): Promise<CameraConnection> {
  const { host, port, secure } = url;
  const target = { host, shownHost: url.hostIsDoubtful ? undefined : host, port, secure, tls: options.tls };
  if (!url.tunnel) return openTcp(target, handler, deps, signal);
  const authority = url.request.slice('rtsp://'.length).split('/')[0] as string;
  const { kind, path } = url.tunnel;
  const open = kind === 'http' ? openHttpTunnel : openWebSocketTunnel;
  return open({ ...target, authority, path, login: options.login }, handler, deps, signal);
}
