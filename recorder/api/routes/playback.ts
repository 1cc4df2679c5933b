// `/playback/…`: the routes of the playback listener at the origin of the API, for pages: one address, one certificate, one
// cookie.

import { Socket } from 'node:net';
import type { FastifyPluginAsync } from 'fastify';
import type { PlaybackListener } from '../playback-address.ts';

/** As on the playback listener: a paused player stops reading; when it continues, its browser requests the rest again. */
const STALLED_MS = 300_000;

type Options = Pick<Required<PlaybackListener>, 'routes'>;

/** To be registered with a prefix. The OpenAPI document has these routes once, those of the playback listener. */
export const playbackUnderApi: FastifyPluginAsync<Options> = async (app, { routes }) => {
  app.addHook('onRoute', (route) => {
    route.schema = { ...route.schema, hide: true };
    // A paused player may keep its request for hours. Reads of files keep the event loop awake themselves.
    route.config = { ...route.config, isStanding: true };
  });
  app.addHook('onRequest', ({ raw: { socket } }, _reply, done) => {
    // After the answer, Node sets the time limit of idle connections instead.
    if (socket instanceof Socket) socket.setTimeout(STALLED_MS);
    done();
  });
  await routes(app);
};
