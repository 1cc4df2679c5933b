// `WebSocket /websocket/{camera_id}`: a connection in, a viewer of the camera's live stream out.

import type { FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { WebSocket } from 'ws';
import { z } from 'zod';
import type { Timer } from '../../../base/clock.ts';
import { CLOSE } from '../../live/viewer.ts';
import type { ViewerSocket } from '../../live/viewer.ts';
import type { Authenticator } from '../../http/auth.ts';
import type { ApiDeps } from '../deps.ts';
import { ApiError } from '../../http/problem.ts';

/** A viewer that answers no ping for one interval is gone: its network would not say so for a quarter of an hour. */
const PING_INTERVAL_MS = 20_000;

const LiveParams = z.object({ camera_id: z.string() });
const LiveQuery = z.object({
  audio: z.enum(['true', 'false'], { error: 'expected true or false' }).optional(),
  access_token: z.string().optional(),
});

type Deps = Pick<ApiDeps, 'cameras' | 'clock' | 'log'>;

export const liveRoutes: FastifyPluginAsyncZod<{ deps: Deps; auth: Authenticator }> = async (app, { deps, auth }) => {
  app.route({
    method: 'GET',
    url: '/websocket/:camera_id',
    schema: { hide: true, params: LiveParams, querystring: LiveQuery },
    handler: async () => {
      throw new ApiError(426, 'upgrade-required', 'this is a WebSocket: connect with one');
    },
    // A browser learns nothing from a refused upgrade, so every refusal is a close code.
    wsHandler: (socket: WebSocket, request: FastifyRequest) => {
      const { camera_id: cameraId } = request.params as z.output<typeof LiveParams>;
      const { audio } = request.query as z.output<typeof LiveQuery>;
      const caller = auth.callerOf(request, 'header-or-query');
      const refusal = caller ? refusalOf(request) : NO_TOKEN;
      if (refusal) return socket.close(...refusal);
      const camera = caller?.sees(cameraId) ? deps.cameras.get(cameraId) : undefined;
      if (!camera) return socket.close(CLOSE.unknownCamera, 'unknown camera');
      if (!camera.live) return socket.close(CLOSE.offline, 'the camera is stopped');
      const { live } = camera;
      const viewer = live.add(viewerSocket(socket), { audio: audio !== 'false' });
      if (!viewer) return undefined;
      const stopPinging = keepAlive(socket, deps);
      socket.once('close', () => {
        stopPinging();
        live.remove(viewer);
      });
      return undefined;
    },
  });
};

type Refusal = [code: number, reason: string];
const NO_TOKEN: Refusal = [CLOSE.unauthorized, 'a token is needed'];

function refusalOf(request: FastifyRequest): Refusal | undefined {
  // A browser lets any page connect, and adds stored Basic credentials: a page of another origin shows a token of its
  // own, or it would see through what only the user may, or through cameras that only their network guards.
  const ownToken = (request.query as z.output<typeof LiveQuery>).access_token !== undefined;
  if (!ownToken && isForeign(request)) return [CLOSE.forbidden, 'pages of other origins need a token of their own'];
  return undefined;
}

/** Whether a page of another origin asks; programs send no Origin. No page can set the header of a proxy that renames us. */
function isForeign({ headers }: FastifyRequest): boolean {
  const { origin, host } = headers;
  if (origin === undefined) return false;
  if (!URL.canParse(origin)) return true;
  const from = new URL(origin).host;
  return from !== host && from !== headers['x-forwarded-host'];
}

function viewerSocket(socket: WebSocket): ViewerSocket {
  return {
    send(message) {
      // Without the callback a failed send would be an error event too many: closing says it as well.
      if (socket.readyState === socket.OPEN) socket.send(message, SEND_BINARY, ignoreError);
    },
    get bufferedBytes() {
      return socket.bufferedAmount;
    },
    close: (code, reason) => socket.close(code, reason),
  };
}
const SEND_BINARY = { binary: true };
const ignoreError = (): void => {};

function keepAlive(socket: WebSocket, { clock }: Pick<Deps, 'clock'>): () => void {
  let answered = true;
  let timer: Timer;
  const ping = (): void => {
    if (!answered) return socket.terminate();
    answered = false;
    socket.ping();
    timer = clock.after(PING_INTERVAL_MS, ping);
    return undefined;
  };
  socket.on('pong', () => {
    answered = true;
  });
  timer = clock.after(PING_INTERVAL_MS, ping);
  return () => timer.cancel();
}
