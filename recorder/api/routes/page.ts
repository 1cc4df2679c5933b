// `GET /`: the page with every camera live, its state and its newest recordings, and the player module it uses; and
// `GET /reference`, the API for reading.

import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { readFile } from 'node:fs/promises';
import type { ApiDeps } from '../deps.ts';
import { isHost, playbackAddress } from '../playback-address.ts';

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
    const body = await readFile(new URL(`../page/${file}`, import.meta.url), 'utf8');
    app.get(url, { schema: { hide: true } }, async (request, reply) =>
      reply
        .type(`${TYPES[type]}; charset=utf-8`)
        .header('cache-control', 'no-cache')
        .header('content-security-policy', HEADER_POLICY)
        .send(type === 'html' ? body.replace(POLICY_PLACE, `$&\n    ${metaPolicy(policyFor(request, deps))}`) : body),
    );
  }
};

/** What a policy in a document cannot say, and what every page keeps to. */
const HEADER_POLICY =
  "default-src 'self'; connect-src 'self' http: https: ws: wss:; media-src 'self' blob: http: https:; " +
  "img-src 'self' data: http: https:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/** Before everything that the page loads. */
const POLICY_PLACE = '<meta charset="utf-8" />';

/** In the document: the origins of a hundred nodes would be more than proxies let through as a header. */
const metaPolicy = (policy: string): string => `<meta http-equiv="Content-Security-Policy" content="${policy}" />`;

/** Where the page may go with its token: here, and to the nodes that the cluster knows now. */
function policyFor(request: FastifyRequest, { cluster, playback }: Pick<ApiDeps, 'cluster' | 'playback'>): string {
  const nodes = cluster?.origins() ?? [];
  const playbacks = [playbackAddress(request, playback), ...(cluster?.playbackOrigins() ?? [])];
  const sockets = nodes.map((origin) => origin.replace(/^http/, 'ws'));
  // Browsers that do not count the sockets of 'self' to it are still in use.
  const own = isHost(request.host) ? [`ws://${request.host}`, `wss://${request.host}`] : [];
  const from = (...sources: readonly (string | undefined)[]): string =>
    [...new Set(["'self'", ...sources.filter((source) => source !== undefined)])].join(' ');
  return [
    `connect-src ${from(...own, ...nodes, ...sockets, ...playbacks)}`,
    `media-src ${from('blob:', ...playbacks)}`,
    `img-src ${from('data:', ...nodes)}`,
  ].join('; ');
}
