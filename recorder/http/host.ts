// Which host names a listener answers to where no token is required. An attacker can make the host name of their page resolve
// to this machine (DNS rebinding): browsers then take the recorder for the page's own server, and let the page do everything.

import { isIP } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { ApiError } from './problem.ts';

/**
 * Refuses requests for hosts other than addresses, `localhost` and `names` (lower case). An address cannot resolve to another
 * machine. Browsers always send `Host`, and no page can change it.
 */
export function installHostCheck(app: FastifyInstance, names: readonly string[]): void {
  const known = new Set(['localhost', ...names]);
  const isOurs = (host: string): boolean => isIP(host) !== 0 || known.has(host);
  app.addHook('onRequest', async (request) => {
    // A proxy may send the original host in a header of its own.
    for (const host of [request.raw.headers.host, request.host]) {
      const name = nameOf(host ?? '');
      if (name === '' || isOurs(name)) continue;
      throw new ApiError(
        421,
        'unknown-host',
        'no token is needed here, so only known names are answered: name it in auth.allowedHosts',
      );
    }
  });
}

/** The host of `host:port` for comparison: without the dot that may end a name. */
function nameOf(host: string): string {
  const name = host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1');
  return name.toLowerCase().replace(/\.$/, '');
}
