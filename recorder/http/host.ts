// Checks the host name of requests where no token is required. An attacker can make the host name of a page resolve to this
// machine (DNS rebinding): browsers then treat the recorder as the server of that page, and the page can use the API.

import { isIP } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { ApiError } from './problem.ts';
import { relayedBy } from './relayed.ts';

/**
 * Refuses requests for hosts other than addresses, `localhost` and `names` (lower case). An address cannot resolve to another
 * machine. Browsers always send `Host`, and no page can change it.
 */
export function installHostCheck(app: FastifyInstance, names: readonly string[]): void {
  const known = new Set(['localhost', ...names]);
  const isOurs = (host: string): boolean => isIP(host) !== 0 || known.has(host);
  app.addHook('onRequest', (request, _reply, done) => {
    // The member that sent it has checked the host at which the caller asked.
    if (relayedBy(request.raw)) return done();
    // A proxy may send the original host in X-Forwarded-Host.
    for (const host of [request.raw.headers.host, request.host]) {
      const name = nameOf(host ?? '');
      if (name === '' || isOurs(name)) continue;
      throw new ApiError(
        421,
        'unknown-host',
        'this recorder needs no token, so it accepts only host names that it knows: add this one to auth.allowedHosts',
      );
    }
    return done();
  });
}

/** The host of `host:port` in lower case, without a trailing dot. */
function nameOf(host: string): string {
  const name = host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1');
  return name.toLowerCase().replace(/\.$/, '');
}
