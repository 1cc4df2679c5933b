// The credential of a request, as its headers or its address have it.

import type { FastifyRequest } from 'fastify';

/** `Bearer <token>`, or `Basic` with any user name and the token as password (RFC 7617). */
export function tokenInHeader(request: FastifyRequest): string | undefined {
  const match = /^(Bearer|Basic) +(\S+) *$/i.exec(request.headers.authorization ?? '');
  if (!match) return undefined;
  const value = match[2] as string;
  if ((match[1] as string).toLowerCase() === 'bearer') return value;
  const pair = Buffer.from(value, 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  return colon < 0 ? undefined : pair.slice(colon + 1);
}

/** For clients that cannot send headers: WebSocket and media elements of browsers (RFC 6750 §2.3). */
export function tokenInQuery(request: FastifyRequest): string | undefined {
  const token = (request.query as Record<string, unknown> | undefined)?.['access_token'];
  return typeof token === 'string' && token !== '' ? token : undefined;
}

/** The credential of a request as `Authorization`; undefined without one. */
export function credentialOf(request: FastifyRequest): string | undefined {
  const token = tokenInQuery(request);
  return request.headers.authorization ?? (token === undefined ? undefined : `Bearer ${token}`);
}
