// `GET /`: the page with every camera live, its state and its newest recordings, and the player module it uses; and
// `GET /reference`, the API for reading.

import type { FastifyPluginAsync } from 'fastify';
import { readFile } from 'node:fs/promises';
import type { ApiDeps } from '../deps.ts';
import { playbackAddress } from '../playback-address.ts';

const FILES = [
  { url: '/', file: 'index.html', type: 'text/html; charset=utf-8' },
  { url: '/page/page.css', file: 'page.css', type: 'text/css; charset=utf-8' },
  { url: '/page/ptz.css', file: 'ptz.css', type: 'text/css; charset=utf-8' },
  { url: '/page/page.js', file: 'page.js', type: 'text/javascript; charset=utf-8' },
  { url: '/page/ptz.js', file: 'ptz.js', type: 'text/javascript; charset=utf-8' },
  { url: '/page/api.js', file: 'api.js', type: 'text/javascript; charset=utf-8' },
  { url: '/page/player.js', file: 'player.js', type: 'text/javascript; charset=utf-8' },
  { url: '/reference', file: 'reference.html', type: 'text/html; charset=utf-8' },
  { url: '/page/reference.css', file: 'reference.css', type: 'text/css; charset=utf-8' },
  { url: '/page/reference.js', file: 'reference.js', type: 'text/javascript; charset=utf-8' },
] as const;

/** The page holds no secret and asks for the token itself, so it needs no credentials. */
export const pageRoutes: FastifyPluginAsync<{ deps: Pick<ApiDeps, 'playback'> }> = async (app, { deps }) => {
  for (const { url, file, type } of FILES) {
    const body = await readFile(new URL(`../page/${file}`, import.meta.url));
    app.get(url, { schema: { hide: true } }, async (request, reply) =>
      reply
        .type(type)
        .header('cache-control', 'no-cache')
        .header('content-security-policy', policy(playbackAddress(request, deps.playback)))
        .send(body),
    );
  }
};

const policy = (playback = ''): string =>
  `default-src 'self'; connect-src 'self' ws: wss:; media-src 'self' blob: ${playback}; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'`;
