// `GET /`: the page with every camera live, its state and its newest recordings, and the player module it uses; and
// `GET /reference`, the API for reading.

import type { FastifyPluginAsync } from 'fastify';
import { readFile } from 'node:fs/promises';
import type { ApiDeps } from '../deps.ts';
import { playbackAddress } from '../playback-address.ts';

const TYPES = { html: 'text/html', css: 'text/css', js: 'text/javascript' } as const;

const PAGES = [
  { url: '/', file: 'index.html', type: 'html' },
  { url: '/reference', file: 'reference.html', type: 'html' },
] as const;

const STYLES = ['page', 'ptz', 'reference'].map((name) => ({ file: `${name}.css`, type: 'css' }) as const);
const SCRIPTS = ['api', 'cluster', 'format', 'nodes', 'page', 'player', 'ptz', 'recordings', 'reference', 'tile'].map(
  (name) => ({ file: `${name}.js`, type: 'js' }) as const,
);
const PARTS = [...STYLES, ...SCRIPTS].map((part) => ({ ...part, url: `/page/${part.file}` }));

/** The page holds no secret and asks for the token itself, so it needs no credentials. */
export const pageRoutes: FastifyPluginAsync<{ deps: Pick<ApiDeps, 'cluster' | 'playback'> }> = async (
  app,
  { deps },
) => {
  for (const { url, file, type } of [...PAGES, ...PARTS]) {
    const body = await readFile(new URL(`../page/${file}`, import.meta.url));
    app.get(url, { schema: { hide: true } }, async (request, reply) =>
      reply
        .type(`${TYPES[type]}; charset=utf-8`)
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
