// The HTTP server of a recorder: routes, who may call them, errors as problems, and the OpenAPI document of it all.

import fastifySwagger from '@fastify/swagger';
import fastifyWebsocket from '@fastify/websocket';
import type { FastifyInstance } from 'fastify';
import { installAccess, installKeepAwake, logAnswers } from '../http/access.ts';
import { installAudit } from '../http/audit.ts';
import { installCors, type Origins } from '../http/cors.ts';
import { aboutApi } from './about.ts';
import type { ApiDeps } from './deps.ts';
import { openApiOptions } from '../http/openapi.ts';
import { buildServer } from '../http/server.ts';
import { installRedirects } from './redirect.ts';
import { archiveRoutes } from './routes/archive.ts';
import { assembleRoutes } from './routes/assemble.ts';
import { cameraControlRoutes } from './routes/camera-control.ts';
import { cameraRoutes } from './routes/cameras.ts';
import { clusterRoutes } from './routes/cluster.ts';
import { gapRoutes } from './routes/gaps.ts';
import { healthRoutes } from './routes/health.ts';
import { jobRoutes } from './routes/jobs.ts';
import { liveRoutes } from './routes/live.ts';
import { logRoutes } from './routes/log.ts';
import { nodeMetricsRoutes } from './routes/node-metrics.ts';
import { pageRoutes } from './routes/page.ts';
import { protectionRoutes } from './routes/protections.ts';
import { ptzRoutes } from './routes/ptz.ts';
import { stillRoutes } from './routes/stills.ts';

/** Viewers have nothing to say. */
const VIEWER_MESSAGE_LIMIT_BYTES = 1024;
/** A thousand viewers and those who ask; a whole flood of idle ones must leave the cameras their files. */
const MAX_CONNECTIONS = 4096;

/** The server, not listening yet. Close it before the cameras, or after: it opens nothing that outlives it. */
export async function buildApi(deps: ApiDeps): Promise<FastifyInstance> {
  const { auth, log, tls, trustedProxies = [], origins = [] } = deps;
  const { cluster } = deps;
  const memberOrigins = cluster && ((): Origins => cluster.origins());
  const app = buildServer({ log, trustedProxies, maxConnections: MAX_CONNECTIONS, ...(tls ? { tls } : {}) });
  installAudit(app, { audit: deps.audit ?? log, clock: deps.clock });
  installCors(app, {
    origins,
    memberOrigins,
    path: '/*',
    methods: 'GET, POST, PUT, DELETE',
    requestHeaders: 'authorization, content-type, range, if-range',
    exposedHeaders: 'accept-ranges, content-length, content-range, etag, last-modified, retry-after, x-request-id',
    sameHost: false,
  });
  if (deps.keepAwake) installKeepAwake(app, deps.keepAwake);
  installAccess(app, auth);
  logAnswers(app, deps.log);

  await app.register(fastifyWebsocket, {
    options: { maxPayload: VIEWER_MESSAGE_LIMIT_BYTES, perMessageDeflate: false },
    errorHandler: (_error, socket) => socket.terminate(),
  });
  await app.register(fastifySwagger, openApiOptions(aboutApi(deps.version)));
  if (cluster) {
    installRedirects(app, { cluster, cameras: deps.cameras, auth });
    await app.register(clusterRoutes, { cluster });
  }
  await app.register(healthRoutes, { deps, auth });
  await app.register(nodeMetricsRoutes, { deps });
  await app.register(cameraRoutes, { deps });
  await app.register(archiveRoutes, { deps });
  await app.register(gapRoutes, { deps });
  const { protections, jobs, ptz, cameraSwitch, stills, logLevels } = deps;
  if (protections) await app.register(protectionRoutes, { deps: { ...deps, protections } });
  if (jobs) await app.register(jobRoutes, { deps: { ...deps, jobs } });
  if (jobs) await app.register(assembleRoutes, { jobs });
  if (ptz) await app.register(ptzRoutes, { ptz });
  if (cameraSwitch) await app.register(cameraControlRoutes, { cameraSwitch });
  if (stills) await app.register(stillRoutes, { stills });
  if (logLevels) await app.register(logRoutes, { deps: { logLevels, log } });
  await app.register(liveRoutes, { deps, auth, origins, memberOrigins });
  await app.register(pageRoutes, { deps });
  app.get('/openapi.json', { schema: { hide: true } }, async () => app.swagger());
  return app;
}
