// A Redis server of the test, besides that of the recorder; it stores nothing.

import { Child } from './child.ts';

/** Listens on a port of the loopback address; with 0 only where `settings` says. The caller has to stop it. */
export const startRedis = (port: number, directory: string, settings: readonly string[] = []): Child =>
  new Child(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', directory].concat(settings),
  );
