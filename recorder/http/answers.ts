// Adds entity tags to answers that are text, and compresses them for clients that accept gzip. Media and files are sent
// elsewhere.

import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyInstance } from 'fastify';
import { listsTag } from './conditions.ts';

const pack = promisify(gzip);

/** Smaller answers fit into one packet without compression. */
const MIN_LENGTH = 1024;
/** `gzip` or `*`, unless its weight is 0 (RFC 9110 §12.5.3). */
const TAKES_GZIP = /(?:^|,)\s*(?:gzip|\*)\s*(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))(?:;[^,]*)?(?:,|$)/i;

/** Call it before the routes. Headers that a route sets stay. */
export function shortenAnswers(app: FastifyInstance): void {
  app.addHook('onSend', async ({ method, headers }, reply, payload: unknown) => {
    if (typeof payload !== 'string') return payload;
    if (method === 'GET' && reply.statusCode === 200 && !reply.hasHeader('etag')) {
      // Weak: the compressed and the uncompressed answer share the tag (RFC 9110 §8.8.1).
      const etag = `W/"${hash('sha1', payload, 'base64url')}"`;
      reply.header('etag', etag);
      if (listsTag(headers['if-none-match'], etag)) {
        reply.code(304).removeHeader('content-type').removeHeader('content-length');
        return null;
      }
    }
    if (payload.length < MIN_LENGTH || reply.hasHeader('content-encoding')) return payload;
    const { vary } = reply.getHeaders();
    reply.header('vary', vary === undefined ? 'accept-encoding' : `${String(vary)}, accept-encoding`);
    if (!TAKES_GZIP.test(headers['accept-encoding'] ?? '')) return payload;
    reply.header('content-encoding', 'gzip').removeHeader('content-length');
    // In a thread: the event loop is needed for the cameras.
    return pack(payload, { level: 4 });
  });
}
