// Cookies of the recorder's own page (RFC 6265): scripts cannot read them, and pages of other sites do not send them. One that is Lax comes
// along when a page of another site leads the browser here.

import type { FastifyRequest } from 'fastify';

/** Browsers let nobody but this origin set a cookie with this prefix, so no other server below its domain can (RFC 6265bis §4.1.3.2). */
const SECURE_PREFIX = '__Host-';

const nameFor = (name: string, { protocol }: Pick<FastifyRequest, 'protocol'>): string =>
  protocol === 'https' ? `${SECURE_PREFIX}${name}` : name;

/** The header `Set-Cookie`. With an age of 0, the browser forgets the cookie. */
export const setCookie = (
  name: string,
  value: string,
  ageMs: number,
  request: Pick<FastifyRequest, 'protocol'>,
  sameSite: 'Strict' | 'Lax' = 'Strict',
): string =>
  `${nameFor(name, request)}=${value}; Path=/; Max-Age=${Math.floor(ageMs / 1000)}; HttpOnly; SameSite=${sameSite}${request.protocol === 'https' ? '; Secure' : ''}`;

/** The value of a cookie of a request; undefined without one. */
export function cookieIn(request: Pick<FastifyRequest, 'headers' | 'protocol'>, name: string): string | undefined {
  const header = request.headers.cookie;
  const wanted = nameFor(name, request);
  if (header === undefined || !header.includes(wanted)) return undefined;
  for (const pair of header.split(';')) {
    const [found = '', value] = pair.split('=', 2);
    if (found.trim() === wanted && value) return value.trim();
  }
  return undefined;
}
