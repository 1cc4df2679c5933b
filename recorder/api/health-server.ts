// `/api/health/live` and `/ready` on a listener of their own, for the probes of an orchestrator: viewers who take all places
// of the API must not make it end a recorder that records. Nobody is asked for a token, and nobody is told why.

import type { FastifyInstance } from 'fastify';
import { buildServer } from '../http/server.ts';
import type { ApiDeps } from './deps.ts';
import { healthRoutes } from './routes/health.ts';

const MAX_CONNECTIONS = 64;

/** Not listening yet. */
export async function buildHealthServer(deps: ApiDeps): Promise<FastifyInstance> {
  const app = buildServer({ log: deps.log, maxConnections: MAX_CONNECTIONS });
  await app.register(healthRoutes, { deps });
  return app;
}
