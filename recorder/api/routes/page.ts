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
  { url: '/page/cluster.js', file: 'cluster.js', type: 'text/javascript; charset=utf-8' },
  { url: '/page/player.js', file: 'player.js', type: 'text/javascript; charset=utf-8' },
  { url: '/reference', file: 'reference.html', type: 'text/html; charset=utf-8' },
  { url: '/page/reference.css', file: 'reference.css', type: 'text/css; charset=utf-8' },
  { url: '/page/reference.js', file: 'reference.js', type: 'text/javascript; charset=utf-8' },
] as const;

/** The page holds no secret and asks for the token itself, so it needs no credentials. */
export const pageRoutes: FastifyPluginAsync<{ deps: Pick<ApiDeps, 'cluster' | 'playback'> }> = async (
  app,
  { deps },
) => {
  for (const { url, file, type } of FILES) {
    const body = await readFile(new URL(`../page/${file}`, import.meta.url));
    app.get(url, { schema: { hide: true } }, async (request, reply) =>
      reply
        .type(type)
        .header('cache-control', 'no-cache')
        .header(
          'content-security-policy',
          deps.cluster ? CLUSTER_POLICY : policy(playbackAddress(request, deps.playback)),
        )
        .send(body),
    );
  }
};

function policy(playback: string | undefined, nodes?: string): string {
  const from = (...sources: readonly (string | undefined)[]): string =>
    ["'self'", ...sources].filter(Boolean).join(' ');
  return [
    `default-src ${from()}`,
    `connect-src ${from('ws: wss:', nodes)}`,
    `media-src ${from('blob:', playback, nodes)}`,
    `img-src ${from('data:', nodes)}`,
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
  ].join('; ');
}

// Nodes come and change their addresses while the page is open. It runs nothing that they send.
const CLUSTER_POLICY = policy(undefined, 'http: https:');
