// A Redis that is the test's, beside the recorder: it keeps nothing.

import { Child } from './child.ts';

/** Listens on a port of the loopback address; 0: on none but what `settings` name. Whoever starts it ends it. */
export const startRedis = (port: number, directory: string, settings: readonly string[] = []): Child =>
  new Child(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', directory].concat(settings),
  );
