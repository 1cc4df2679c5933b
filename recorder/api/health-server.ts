// `/api/health/live` and `/ready` on a separate listener, for the probes of an orchestrator: it must not restart a working
// recorder because viewers use all connections of the API. Needs no token and does not show the checks.

import type { FastifyInstance } from 'fastify';
import { buildServer } from '../http/server.ts';
import type { ApiDeps } from './deps.ts';
import { healthRoutes } from './routes/health.ts';

const MAX_CONNECTIONS = 64;

/** Not listening yet. */
export async function buildHealthServer(deps: ApiDeps): Promise<FastifyInstance> {
  const app = buildServer({ log: deps.log, maxConnections: MAX_CONNECTIONS });
  await app.register(healthRoutes, { deps: { ...deps, auth: undefined } });
  return app;
}
