// Adds entity tags to answers that are text, and compresses them for clients that accept gzip. Media and files are sent
// elsewhere.

import { hash } from 'node:crypto';
import { gzip } from 'node:zlib';
import type { FastifyInstance } from 'fastify';
import { listsTag } from './conditions.ts';
import { routeConfigOf } from './route-config.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Its answer differs from request to request: a tag would cost a hash and never match. */
    changesAlways?: boolean;
  }
}

/** Smaller answers fit into one packet without compression. */
const MIN_LENGTH = 1024;
/** `gzip` or `*`, unless its weight is 0 (RFC 9110 §12.5.3). */
const TAKES_GZIP = /(?:^|,)\s*(?:gzip|\*)\s*(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))(?:;[^,]*)?(?:,|$)/i;

/**
 * For lists of many rows that their route has just formed field by field: to validate each takes longer than all the rest
 * of the request. test/e2e/openapi.test.ts validates them.
 */
export const asFormed = (): ((answer: unknown) => string) => JSON.stringify;

/** Call it before the routes. Headers that a route sets stay. */
export function shortenAnswers(app: FastifyInstance): void {
  app.addHook('onSend', (request, reply, payload: unknown, done) => {
    if (typeof payload !== 'string' || payload.length < MIN_LENGTH) return done();
    const { method, headers } = request;
    const { changesAlways = false } = routeConfigOf(request);
    if (method === 'GET' && reply.statusCode === 200 && !changesAlways && !reply.hasHeader('etag')) {
      // Weak: the compressed and the uncompressed answer share the tag (RFC 9110 §8.8.1).
      const etag = `W/"${hash('sha1', payload, 'base64url')}"`;
      reply.header('etag', etag);
      if (listsTag(headers['if-none-match'], etag)) {
        reply.code(304).removeHeader('content-type').removeHeader('content-length');
        return done(null, null);
      }
    }
    if (reply.hasHeader('content-encoding')) return done();
    const vary = reply.getHeader('vary');
    reply.header('vary', vary === undefined ? 'accept-encoding' : `${String(vary)}, accept-encoding`);
    if (!TAKES_GZIP.test(headers['accept-encoding'] ?? '')) return done();
    reply.header('content-encoding', 'gzip').removeHeader('content-length');
    // In a thread: the event loop is needed for the cameras.
    return gzip(payload, { level: 4 }, done);
  });
}
