// The HTTP server of a recorder: routes, who may call them, errors as problems, and the OpenAPI document of it all.

import fastifySwagger from '@fastify/swagger';
import fastifyWebsocket from '@fastify/websocket';
import fastify from 'fastify';
import type { FastifyInstance } from 'fastify';
import {
  jsonSchemaTransform,
  jsonSchemaTransformObject,
  serializerCompiler,
  validatorCompiler,
} from 'fastify-type-provider-zod';
import { installAccess, installKeepAwake, logAnswers } from '../http/access.ts';
import { installCors } from '../http/cors.ts';
import type { ApiDeps } from './deps.ts';
import { answerFrameworkError, installProblems } from '../http/problem.ts';
import { archiveRoutes } from './routes/archive.ts';
import { assembleRoutes } from './routes/assemble.ts';
import { cameraRoutes } from './routes/cameras.ts';
import { gapRoutes } from './routes/gaps.ts';
import { healthRoutes } from './routes/health.ts';
import { jobRoutes } from './routes/jobs.ts';
import { liveRoutes } from './routes/live.ts';
import { nodeMetricsRoutes } from './routes/node-metrics.ts';
import { pageRoutes } from './routes/page.ts';
import { protectionRoutes } from './routes/protections.ts';
import { ptzRoutes } from './routes/ptz.ts';

const BODY_LIMIT_BYTES = 64 * 1024;
/** Viewers have nothing to say. */
const VIEWER_MESSAGE_LIMIT_BYTES = 1024;
const REQUEST_TIMEOUT_MS = 30_000;

/** The server, not listening yet. Close it before the cameras, or after: it opens nothing that outlives it. */
export async function buildApi(deps: ApiDeps): Promise<FastifyInstance> {
  const options = {
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Downloads and viewers end with the server: a stop does not wait for them.
    forceCloseConnections: true,
    frameworkErrors: answerFrameworkError,
    routerOptions: { maxParamLength: 1024, ignoreTrailingSlash: false },
  };
  const app: FastifyInstance = deps.tls
    ? fastify({ ...options, https: { cert: deps.tls.certificate, key: deps.tls.key } })
    : fastify(options);
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  installProblems(app, deps.log);

  const { auth } = deps;
  if (!auth.isOpen) {
    installCors(app, {
      path: '/api/*',
      methods: 'GET, POST, DELETE',
      requestHeaders: 'authorization, content-type',
      pages: 'anyone',
    });
  }
  if (deps.keepAwake) installKeepAwake(app, deps.keepAwake);
  installAccess(app, auth);
  logAnswers(app, deps.log);

  await app.register(fastifyWebsocket, {
    options: { maxPayload: VIEWER_MESSAGE_LIMIT_BYTES, perMessageDeflate: false },
    errorHandler: (_error, socket) => socket.terminate(),
  });
  await app.register(fastifySwagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Recorder', version: deps.version },
      components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
      security: [{ token: [] }],
    },
    transform: jsonSchemaTransform,
    transformObject: jsonSchemaTransformObject,
  });
  await app.register(healthRoutes, { deps, auth });
  await app.register(nodeMetricsRoutes, { deps });
  await app.register(cameraRoutes, { deps });
  await app.register(archiveRoutes, { deps });
  await app.register(gapRoutes, { deps });
  const { protections, jobs, ptz } = deps;
  if (protections) await app.register(protectionRoutes, { deps: { ...deps, protections } });
  if (jobs) await app.register(jobRoutes, { deps: { ...deps, jobs } });
  if (jobs) await app.register(assembleRoutes, { jobs });
  if (ptz) await app.register(ptzRoutes, { ptz });
  await app.register(liveRoutes, { deps, auth });
  await app.register(pageRoutes, { deps });
  app.get('/openapi.json', { schema: { hide: true } }, async () => app.swagger());
  return app;
}
