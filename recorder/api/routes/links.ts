// `/api/links`: addresses that open without a header and without a cookie, for some minutes.

import { z } from 'zod';
import type { ApiRoutes } from '../deps.ts';
import { tell } from '../../http/audit.ts';
import { LINK_PARAMETER } from '../../http/links.ts';
import { ApiError, problemResponse } from '../../http/problem.ts';
import { TIME } from '../examples.ts';
import { isoTime } from '../times.ts';

const EXPECTED = 'expected a path with its query, such as /playback/window/gate.mp4?from=1795253100&to=1795253160';
const SECRETS = ['access_token', LINK_PARAMETER];

const Link = z
  .object({
    url: z.string().describe('The path, with the link as last parameter. Append it to the address of the API.'),
    expires_at: z.string(),
    expires_ms: z.number().int(),
  })
  .meta({ id: 'Link', description: 'An address that opens without a token.' });

const path = '/api/archive/jobs/e1/download';

export const linkRoutes: ApiRoutes = async (app, { deps: { auth } }) => {
  app.post(
    '/api/links',
    {
      config: {
        role: 'viewer',
        cameras: 'none',
        audit: 'link',
        examples: {
          body: { path },
          201: { url: `${path}?${LINK_PARAMETER}=q83v…`, expires_at: TIME, expires_ms: Date.parse(TIME) },
        },
      },
      schema: {
        operationId: 'createLink',
        summary: 'An address that opens without a token, for five minutes',
        description:
          'For programs that can send neither a header nor a cookie: a player, a download on another machine. The link opens exactly this path with this query, with GET and HEAD, on every node of a cluster, and has the rights of the caller. It becomes invalid with the session or the token that made it. A download that began in time may last longer.',
        tags: ['session'],
        body: z.object({ path: z.string(EXPECTED).min(1, EXPECTED).max(2048, EXPECTED) }),
        response: {
          201: Link,
          400: problemResponse('path is not an address that a link can open; the detail says why.'),
        },
      },
    },
    async (request, reply) => {
      const asked = addressIn(request.body.path);
      if (!app.routeList.mayBeLinked(asked.pathname.replace(OTHER_NODE, '$1'))) {
        throw refused('links are for single files and pictures: windows, files, results of jobs, stills');
      }
      const { url, expiresMs } = auth.linkTo(request.body.path, request) ?? {};
      if (url === undefined || expiresMs === undefined) {
        throw new ApiError(403, 'forbidden', 'links are made for callers who show a token or a session');
      }
      tell(request, { link: asked.pathname + asked.search });
      return reply
        .code(201)
        .header('cache-control', 'no-store')
        .send({ url, expires_at: isoTime(expiresMs), expires_ms: expiresMs });
    },
  );
};

/** The prefix of a request that another node is to answer. */
const OTHER_NODE = /^(\/playback)?\/node\/[^/]+(?=\/)/;

/** Throws ApiError unless a client would send `text` as it is. */
function addressIn(text: string): URL {
  const url = text.startsWith('/') && URL.canParse(text, 'http://node') ? new URL(text, 'http://node') : undefined;
  if (!url || url.pathname + url.search !== text) throw refused(EXPECTED);
  if (SECRETS.some((name) => url.searchParams.has(name))) throw refused('expected a path without a token and a link');
  return url;
}

const refused = (detail: string): ApiError => new ApiError(400, 'invalid-parameter', `path: ${detail}`);
