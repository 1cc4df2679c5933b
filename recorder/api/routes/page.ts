// `GET /`: the console. `GET /page/…`: its scripts, styles and libraries. `GET /reference`: the API documentation.

import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { dirname, join } from 'node:path';
import { listsTag } from '../../http/conditions.ts';
import { ApiError } from '../../http/problem.ts';
import type { ApiDeps } from '../deps.ts';
import { preloadsOf, readPage, type PageFiles } from '../page-files.ts';
import { isHost, playbackAddress } from '../playback-address.ts';

/** Beside the package's description, as in the repository: a bundle of the recorder has both, too. */
const DIRECTORY = join(dirname(findPackageJSON(import.meta.url) as string), 'console');

const PAGES = [
  { url: '/', file: 'index.html', entry: 'app/main.ts' },
  { url: '/reference', file: 'reference.html', entry: undefined },
] as const;

/** Of the page of a package: after the cameras of a recorder that starts. */
const READ_MS = 10_000;
/** A year: the address changes with the content. */
const FOR_GOOD = 'public, max-age=31536000, immutable';
const VERSIONED = /^(?:([\w-]{16})\/)?(.*)$/;

/** The page holds no secret and asks people to sign in itself, so it needs no credentials. */
export const pageRoutes: FastifyPluginAsync<{
  deps: Pick<ApiDeps, 'cluster' | 'playback'>;
  /** Of the page's files. */
  directory?: string;
}> = async (app, { deps, directory = DIRECTORY }) => {
  let reading: Promise<Page> | undefined;
  // When it is first asked for: a recorder that starts has cameras to record.
  const page = (): Promise<Page> =>
    (reading ??= pageIn(directory).catch((err: unknown) => {
      // The next request tries again.
      reading = undefined;
      throw err;
    }));

  // A package that is installed meanwhile replaces the files, and this process goes on: it serves its own.
  if (existsSync(join(directory, 'vendor'))) {
    app.addHook('onListen', (done) => {
      // A request that needs the page reads it again, and gets the error.
      setTimeout(() => void page().catch(() => {}), READ_MS).unref();
      done();
    });
  }

  for (const { url } of PAGES) {
    app.get(url, { schema: { hide: true } }, async (request, reply) => {
      const { documents, bootPolicy } = await page();
      const body = documents.get(url) ?? '';
      return reply
        .type('text/html; charset=utf-8')
        .header('cache-control', 'no-cache')
        .header('content-security-policy', `${HEADER_POLICY}; ${bootPolicy}`)
        .send(body.replace(POLICY_PLACE, `$&\n    ${metaPolicy(policyFor(request, deps))}`));
    });
  }

  app.get<{ Params: { '*': string } }>('/page/*', { schema: { hide: true } }, async (request, reply) => {
    const [, asked, path = ''] = VERSIONED.exec(request.params['*']) ?? [];
    const { files, version } = await page();
    const file = files.get(path);
    if (!file || path.endsWith('.html')) throw new ApiError(404, 'not-found', `there is no GET ${request.url}`);
    const etag = `"${file.digest}"`;
    reply
      .header('cache-control', asked === version ? FOR_GOOD : 'no-cache')
      .header('content-security-policy', HEADER_POLICY)
      .header('etag', etag);
    if (listsTag(request.headers['if-none-match'], etag)) return reply.code(304).send();
    return reply.type(file.type).send(file.body);
  });
};

interface Page extends PageFiles {
  /** The HTML, by the path at which it is served. */
  readonly documents: ReadonlyMap<string, string>;
  /** Allows the one script that is in the HTML. */
  readonly bootPolicy: string;
}

const BOOT = 'boot.js';

async function pageIn(directory: string): Promise<Page> {
  const { files, version } = await readPage(directory);
  const boot = files.get(BOOT)?.body ?? '';
  const bootTag = new RegExp(`<script src="[^"]*/${BOOT}"([^>]*>)`);
  const documents = PAGES.map(({ url, file, entry }): [string, string] => {
    const source = files.get(file)?.body.replaceAll('"/page/', `"/page/${version}/`) ?? '';
    const preloads = entry ? preloadsOf(files, entry).map((path) => preload(`/page/${version}/${path}`)) : [];
    const document = source.replace('</title>', ['</title>', ...preloads].join('\n    '));
    // What loads the page again when a script did not arrive must not be such a script itself.
    return [url, document.replace(bootTag, (_tag, rest: string) => `<script${rest}${boot}`)];
  });
  const digest = createHash('sha256').update(boot).digest('base64');
  return { files, version, documents: new Map(documents), bootPolicy: `script-src 'self' 'sha256-${digest}'` };
}

const preload = (url: string): string => `<link rel="modulepreload" href="${url}" />`;

/** The policy of every page. `frame-ancestors` works in a header only. */
const HEADER_POLICY =
  "default-src 'self'; connect-src 'self' http: https: ws: wss:; media-src 'self' blob: http: https:; " +
  "img-src 'self' data: blob: http: https:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

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
    `img-src ${from('data:', 'blob:', ...nodes)}`,
  ].join('; ');
}
