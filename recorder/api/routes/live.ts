// `WebSocket /websocket/{camera_id}`: the live stream of a camera.

import { TLSSocket } from 'node:tls';
import type { FastifyRequest } from 'fastify';
import type { WebSocket } from 'ws';
import { z } from 'zod';
import type { Clock, Timer } from '../../../base/clock.ts';
import { CLOSE, STOPPED } from '../../live/close.ts';
import type { ViewerSocket } from '../../live/viewer.ts';
import { beginVisit } from '../../http/audit.ts';
import { requireRole } from '../../http/auth.ts';
import { hasRole, type Caller } from '../../http/caller.ts';
import { isMember, isNamed, isOwnPage } from '../../http/cors.ts';
import type { ApiDeps, ApiRoutes } from '../deps.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import { flag, TokenQuery } from '../../http/query.ts';

/** A viewer that answers no ping for one interval is gone: TCP would report that only after about 15 minutes. */
const PING_INTERVAL_MS = 20_000;

/** Time for a viewer to read what was sent before, and to answer a close. */
const CLOSE_GRACE_MS = 5_000;
/** For a caller who was refused, and may be a stranger who holds a place. */
const REFUSED_GRACE_MS = 1_000;

const LiveParams = z.object({ camera_id: z.string() });
const LiveQuery = TokenQuery.extend({
  audio: flag().optional().describe('false: video only.'),
  quality: z
    .enum(['main', 'preview'])
    .optional()
    .describe(
      "preview: the camera's second, smaller stream. The recorder connects it for its first viewer, so that the first message may take a second or two. Default: main, the stream that is recorded.",
    ),
});

export const liveRoutes: ApiRoutes = async (app, { deps }) => {
  const { auth } = deps;

  app.route({
    method: 'GET',
    url: '/websocket/:camera_id',
    config: { follows: { param: 'camera_id' } },
    schema: {
      operationId: 'watchLive',
      summary: 'The live stream of a camera, as a WebSocket',
      description:
        'An initialization segment of fragmented MP4, then fragments as they are made, all as binary messages. A refusal is a close code after the upgrade, because browsers do not show why an upgrade was refused; docs/live.md lists the codes.',
      tags: ['live'],
      'x-websocket': {
        messages: {
          received: [
            'An initialization segment (ftyp and moov), sent again when the parameters change.',
            'A fragment (moof and mdat) with one frame.',
          ],
          sent: [],
          type: 'binary',
        },
        close_codes: Object.fromEntries(
          Object.entries(CLOSE).map(([name, code]) => [code, CLOSED[name as keyof typeof CLOSE]]),
        ),
      },
      security: [{ bearer: [] }, { basic: [] }, { session: [] }, { query: [] }],
      params: LiveParams,
      querystring: LiveQuery,
      response: {
        101: z.null().describe('The WebSocket is open.'),
        426: problemResponse('This is a WebSocket: connect with one.'),
      },
    },
    handler: async () => {
      throw new ApiError(426, 'upgrade-required', 'this is a WebSocket: connect with one');
    },
    // A browser does not show why an upgrade was refused, so every refusal is a close code.
    wsHandler: (socket: WebSocket, request: FastifyRequest) => {
      try {
        const found = request.identified ?? auth.identify(request, 'header-or-query');
        if (!(found instanceof Promise)) return watch(socket, request, found);
        found.then((caller) => watch(socket, request, caller)).catch((err: unknown) => refuse(socket, request, err));
      } catch (err) {
        refuse(socket, request, err);
      }
      return undefined;
    },
  });

  function watch(socket: WebSocket, request: FastifyRequest, caller: Caller): void {
    // The connection may have closed while its token was checked.
    if (socket.readyState !== socket.OPEN) return undefined;
    requireRole(caller, 'viewer');
    app.connections.identify(request.raw.socket, auth.isOpen ? undefined : caller);
    const { camera_id: cameraId } = request.params as z.output<typeof LiveParams>;
    const { audio, quality } = request.query as z.output<typeof LiveQuery>;
    const refuseWith = (...refusal: Refusal): void => closeWithin(REFUSED_GRACE_MS, socket, refusal, deps.clock);
    if (!mayWatch(request, deps)) return refuseWith(...FOREIGN_PAGE);
    const streams = caller.sees(cameraId) ? deps.cameras.streams(cameraId) : undefined;
    if (!streams) return refuseWith(...UNKNOWN_CAMERA);
    if (!streams.live) return refuseWith(STOPPED.code, STOPPED.reason);
    const live = quality === 'preview' ? streams.preview : streams.live;
    if (!live) return refuseWith(CLOSE.noPreview, 'the camera has no preview');
    const watcher = auth.isOpen ? undefined : { name: caller.name, isOperator: hasRole(caller, 'operator') };
    const viewer = live.add(viewerSocket(socket, request, deps.clock), { audio: audio !== false, watcher });
    if (!viewer) return undefined;
    const pings = new Pings(socket, deps.clock);
    const end = (...refusal: Refusal): void => {
      // Before the close: a viewer that does not answer it must not receive the stream until the timeout.
      live.remove(viewer);
      closeWithin(CLOSE_GRACE_MS, socket, refusal, deps.clock);
    };
    const letGo = auth.lease(caller, {
      changed: (renewed) => (renewed.sees(cameraId) ? undefined : end(...UNKNOWN_CAMERA)),
      ended: () => end(CLOSE.unauthorized, 'the token is no longer valid'),
    });
    const endVisit = beginVisit(request, caller, 'live', { camera: cameraId });
    socket.once('close', () => {
      letGo();
      pings.stop();
      live.remove(viewer);
      endVisit(viewer.sentBytes);
    });
    return undefined;
  }

  function refuse(socket: WebSocket, request: FastifyRequest, err: unknown): void {
    if (err instanceof ApiError) return closeWithin(REFUSED_GRACE_MS, socket, refusalOf(err), deps.clock);
    deps.log.error({ err, requestId: request.id }, 'a live stream could not be opened');
    return socket.terminate();
  }
};

/** Why a stream ended, for clients generated from the OpenAPI document. */
const CLOSED: Readonly<Record<keyof typeof CLOSE, string>> = {
  unauthorized: 'No token, a wrong one, or one that is no longer valid.',
  forbidden: 'The page has a foreign origin, or the token has no role here.',
  unknownCamera: 'The node does not know this camera, or the token does not cover it.',
  noPreview: 'quality=preview, and the camera has no preview.',
  tooSlow: 'The viewer read nothing for 30 seconds, or it is slow and memory is short. Try again later.',
  codecsChanged: 'The camera changed its codecs. Connect again with the new codec string.',
  tooManyViewers: 'Too many viewers, or too many wrong tokens. Try again later.',
  offline:
    'The camera is stopped, sends no video or does not deliver its preview, or the token cannot be checked at the moment. Try again later.',
  goingAway: "The node stops, or the camera's settings changed. Connect again.",
};

type Refusal = [code: number, reason: string];
const UNKNOWN_CAMERA: Refusal = [CLOSE.unknownCamera, 'unknown camera'];
const FOREIGN_PAGE: Refusal = [CLOSE.forbidden, 'pages of this origin may not watch: name it in cors.origins'];

function refusalOf({ status, code }: ApiError): Refusal {
  switch (status) {
    case 403:
      if (code === 'foreign-origin') return FOREIGN_PAGE;
      return [
        CLOSE.forbidden,
        code === 'tls-required' ? 'tokens are accepted over HTTPS only' : 'the token has no role here',
      ];
    case 429:
      return [CLOSE.tooManyViewers, code === 'too-many-connections' ? 'too many connections' : 'too many wrong tokens'];
    case 503:
      return [CLOSE.offline, 'the token cannot be checked now'];
    default:
      return [CLOSE.unauthorized, 'a token is needed'];
  }
}

/**
 * A browser lets any page connect and adds stored Basic credentials. So pages of other origins may watch only if
 * cors.origins allows them; if it allows every origin, they also need a token of their own.
 */
function mayWatch(request: FastifyRequest, { origins, cluster }: ApiDeps) {
  const { origin } = request.headers;
  if (origin === undefined || isOwnPage(request) || origins.includes(origin)) return true;
  if (isMember(cluster && (() => cluster.origins()), origin)) return true;
  const ownToken = (request.query as z.output<typeof LiveQuery>).access_token !== undefined;
  return ownToken && isNamed(origins, origin);
}

function viewerSocket(socket: WebSocket, request: FastifyRequest, clock: Clock): ViewerSocket {
  return {
    isCopying: request.raw.socket instanceof TLSSocket,
    send(message, sent) {
      // With a callback, a failed send emits no error event; the close event follows anyway.
      if (socket.readyState === socket.OPEN) socket.send(message, SEND_BINARY, () => sent());
    },
    get bufferedBytes() {
      return socket.bufferedAmount;
    },
    close(code, reason) {
      closeWithin(CLOSE_GRACE_MS, socket, [code, reason], clock);
    },
    terminate: () => socket.terminate(),
  };
}
const SEND_BINARY = { binary: true };

/** A caller that does not read does not answer the close either: its connection and its buffers would stay until then. */
function closeWithin(graceMs: number, socket: WebSocket, refusal: Refusal, clock: Clock): void {
  socket.close(...refusal);
  const timer = clock.after(graceMs, () => socket.terminate());
  socket.once('close', () => timer.cancel());
}

/** Pings a viewer, and ends its connection when it does not answer before the next ping. */
class Pings {
  readonly #socket: WebSocket;
  readonly #clock: Clock;
  #timer: Timer;
  #isAnswered = true;

  constructor(socket: WebSocket, clock: Clock) {
    this.#socket = socket;
    this.#clock = clock;
    this.#timer = this.#later();
    socket.on('pong', () => {
      this.#isAnswered = true;
    });
  }

  stop(): void {
    this.#timer.cancel();
  }

  #later(): Timer {
    return this.#clock.after(PING_INTERVAL_MS, () => this.#ping());
  }

  #ping(): void {
    if (!this.#isAnswered) return this.#socket.terminate();
    this.#isAnswered = false;
    this.#socket.ping();
    this.#timer = this.#later();
  }
}
