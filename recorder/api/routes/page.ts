// `GET /`: the page with the live picture, state and newest recordings of every camera, and the player module that it
// uses. `GET /reference`: the API documentation.

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

/** The policy of every page. `frame-ancestors` works in a header only. */
const HEADER_POLICY =
  "default-src 'self'; connect-src 'self' http: https: ws: wss:; media-src 'self' blob: http: https:; " +
  "img-src 'self' data: http: https:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/** The policy follows this element: it must come before everything that the page loads. */
const POLICY_PLACE = '<meta charset="utf-8" />';

/** In the document, not in a header: proxies limit the size of headers, and a cluster may have a hundred origins. */
const metaPolicy = (policy: string): string => `<meta http-equiv="Content-Security-Policy" content="${policy}" />`;

/** Lets the page connect to this node, and to the nodes that the cluster knows now. */
function policyFor(request: FastifyRequest, { cluster, playback }: Pick<ApiDeps, 'cluster' | 'playback'>): string {
  const nodes = cluster?.origins() ?? [];
  const playbacks = [playbackAddress(request, playback), ...(cluster?.playbackOrigins() ?? [])];
  const sockets = nodes.map((origin) => origin.replace(/^http/, 'ws'));
  // In some browsers still in use, 'self' does not include WebSockets of the same host.
  const own = isHost(request.host) ? [`ws://${request.host}`, `wss://${request.host}`] : [];
  const from = (...sources: readonly (string | undefined)[]): string =>
    [...new Set(["'self'", ...sources.filter((source) => source !== undefined)])].join(' ');
  return [
    `connect-src ${from(...own, ...nodes, ...sockets, ...playbacks)}`,
    `media-src ${from('blob:', ...playbacks)}`,
    `img-src ${from('data:', ...nodes)}`,
  ].join('; ');
}
