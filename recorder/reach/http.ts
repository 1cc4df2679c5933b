// The HTTP client for cameras: over the connections of this room, one for each request, because cameras close idle ones silently.

import { Agent, errors } from 'undici';
import { connectCamera, type Destination } from './connect.ts';
import type { CameraNetworks } from './networks.ts';

/** For a camera that is gone: the next request must not wait for this connection. */
export const CONNECT_TIMEOUT_MS = 9_000;

/**
 * A client whose connections go where `destinationOf` says for the origin of a request. The caller's signal limits the total time
 * of a request; a connection that takes too long fails with `ConnectTimeoutError`. Destroy it when it is no longer needed.
 */
export const openCameraClient = (
  destinationOf: (origin: {
    readonly hostname: string;
    readonly port: string;
    readonly protocol: string;
  }) => Destination,
  networks: CameraNetworks,
): Agent =>
  new Agent({
    pipelining: 0,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect(origin, callback) {
      const destination = destinationOf(origin);
      const socket = connectCamera(destination, networks);
      const timer = setTimeout(() => socket.destroy(new errors.ConnectTimeoutError()), CONNECT_TIMEOUT_MS);
      const settle = (error: Error | null): void => {
        clearTimeout(timer);
        socket.off('error', settle);
        if (error) callback(error, null);
        else callback(null, socket);
      };
      socket.once('error', settle).once(destination.secure ? 'secureConnect' : 'connect', () => {
        if (!socket.destroyed) settle(null);
      });
    },
  });
