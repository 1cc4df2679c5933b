// The HTTP server of a recorder: routes, who may call them, errors as problems, and the OpenAPI document of it all.

import fastifySwagger from '@fastify/swagger';
import fastifyWebsocket from '@fastify/websocket';
import type { FastifyInstance } from 'fastify';
import { installAccess, installKeepAwake, logAnswers } from '../http/access.ts';
import { shortenAnswers } from '../http/answers.ts';
import { installAudit } from '../http/audit.ts';
import { installCors, type Origins } from '../http/cors.ts';
import { installRelay, ownAddress } from '../relay/relay.ts';
import { aboutApi } from './about.ts';
import type { ClusterAccess } from './cluster-access.ts';
import type { ApiDeps } from './deps.ts';
import { joined, openApiOptions, type OpenApiDocument } from '../http/openapi.ts';
import { answerFailedUpgrade } from '../http/problem.ts';
import { buildServer } from '../http/server.ts';
import { playbackAddress } from './playback-address.ts';
import { installRedirects } from './redirect.ts';
import { accountRoutes } from './routes/accounts.ts';
import { alarmRoutes } from './routes/alarms.ts';
import { archiveRoutes } from './routes/archive.ts';
import { archiveStillRoutes } from './routes/archive-still.ts';
import { auditRoutes } from './routes/audit.ts';
import { assembleRoutes } from './routes/assemble.ts';
import { cameraControlRoutes } from './routes/camera-control.ts';
import { cameraSettingsRoutes } from './routes/camera-settings.ts';
import { cameraRoutes } from './routes/cameras.ts';
import { caseRoutes } from './routes/cases.ts';
import { clusterMembershipRoutes } from './routes/cluster-membership.ts';
import { clusterRoutes } from './routes/cluster.ts';
import { dayRoutes } from './routes/days.ts';
import { discoverRoutes } from './routes/discover.ts';
import { eventRoutes } from './routes/events.ts';
import { activityRoutes } from './routes/activity.ts';
import { happeningRoutes } from './routes/happenings.ts';
import { gapRoutes } from './routes/gaps.ts';
import { healthRoutes } from './routes/health.ts';
import { exportRoutes } from './routes/exports.ts';
import { jobRoutes } from './routes/jobs.ts';
import { keyRoutes } from './routes/keys.ts';
import { linkRoutes } from './routes/links.ts';
import { liveRoutes } from './routes/live.ts';
import { logRoutes } from './routes/log.ts';
import { nodeMetricsRoutes } from './routes/node-metrics.ts';
import { objectRoutes } from './routes/objects.ts';
import { pageRoutes } from './routes/page.ts';
import { playbackUnderApi } from './routes/playback.ts';
import { probeRoutes } from './routes/probe.ts';
import { protectionRoutes } from './routes/protections.ts';
import { ptzRoutes } from './routes/ptz.ts';
import { reportRoutes } from './routes/reports.ts';
import { sessionRoutes } from './routes/session.ts';
import { sessionListRoutes } from './routes/sessions.ts';
import { signInRoutes } from './routes/sign-in.ts';
import { stillRoutes } from './routes/stills.ts';
import { timelineRoutes } from './routes/timeline.ts';
import { tryLoginRoutes } from './routes/try-login.ts';
import { userRoutes } from './routes/users.ts';
import { Timelines } from './timelines.ts';

/** Viewers send no messages of their own. */
const VIEWER_MESSAGE_LIMIT_BYTES = 1024;
/** Enough for 1000 viewers and their requests. A flood of idle clients must leave file descriptors for the cameras. */
const MAX_CONNECTIONS = 4096;

/** The server, not listening yet. It may be closed before or after the cameras: it opens nothing that outlives it. */
export async function buildApi(deps: ApiDeps): Promise<FastifyInstance> {
  const { cluster, log, tls, trustedProxies } = deps;
  const app = buildServer({
    log,
    trustedProxies,
    maxConnections: MAX_CONNECTIONS,
    rewriteUrl: cluster && ownAddress(cluster.nodeId),
    ...(tls ? { tls } : {}),
  });
  // Before any hook that may refuse a request: otherwise nothing would close the connection of a refused upgrade.
  await app.register(fastifyWebsocket, {
    options: { maxPayload: VIEWER_MESSAGE_LIMIT_BYTES, perMessageDeflate: false },
    errorHandler: (_error, socket) => socket.terminate(),
  });
  app.websocketServer.on('wsClientError', answerFailedUpgrade);
  installHooks(app, deps);
  await app.register(fastifySwagger, openApiOptions(aboutApi(deps.version)));
  if (cluster) await installCluster(app, deps, cluster);
  await addNodeRoutes(app, deps);
  await addFootageRoutes(app, deps);
  await addJobRoutes(app, deps);
  await addCameraRoutes(app, deps);
  await addPageRoutes(app, deps);
  return app;
}

/** What applies to every route. The audit comes first, because it records refused requests, too. */
function installHooks(app: FastifyInstance, deps: ApiDeps): void {
  const { audit, auth, origins } = deps;
  installAudit(app, { audit: audit.sink, visits: audit.visits, clock: deps.clock });
  installCors(app, {
    origins,
    memberOrigins: memberOriginsOf(deps),
    path: '/*',
    methods: 'GET, POST, PUT, DELETE',
    requestHeaders:
      'authorization, content-type, if-match, if-none-match, if-range, last-event-id, range, x-request-id',
    exposedHeaders:
      'accept-ranges, content-disposition, content-length, content-range, etag, last-modified, link, retry-after, x-picture-time-ms, x-request-id, x-window-ends-at',
    sameHost: false,
  });
  installKeepAwake(app, deps.keepAwake);
  installAccess(app, auth);
  logAnswers(app, deps.log);
  shortenAnswers(app);
}

const memberOriginsOf = ({ cluster }: ApiDeps): (() => Origins) | undefined => cluster && (() => cluster.origins());

/** Redirects and relayed requests to other nodes, and the routes of the cluster. */
async function installCluster(app: FastifyInstance, deps: ApiDeps, cluster: ClusterAccess): Promise<void> {
  const { cameras, auth, peers, relayMetrics: metrics } = deps;
  installRedirects(app, { cluster, cameras, auth, peers });
  await app.register(clusterRoutes, { cluster });
  await app.register(clusterMembershipRoutes, { cluster });
  const places = () => cluster.places();
  if (peers) installRelay(app, { nodeId: cluster.nodeId, listener: 'api', peers, places, metrics, auth });
}

/** Callers, health, load, log, audit and events of the node; objects of a cluster of servers. */
async function addNodeRoutes(app: FastifyInstance, deps: ApiDeps): Promise<void> {
  const { auth, store, events, log, logLevels, audit, clock } = deps;
  await app.register(sessionRoutes, { deps, auth });
  await app.register(signInRoutes, { deps, auth });
  await app.register(sessionListRoutes, { deps, auth });
  await app.register(accountRoutes, { auth });
  await app.register(userRoutes, { auth });
  await app.register(linkRoutes, { auth });
  await app.register(healthRoutes, { deps, auth });
  await app.register(nodeMetricsRoutes, { deps });
  if (store) await app.register(objectRoutes, { store });
  await app.register(eventRoutes, { events, clock });
  await app.register(happeningRoutes, { deps });
  await app.register(activityRoutes, { deps });
  await app.register(alarmRoutes, { deps });
  await app.register(logRoutes, { deps: { logLevels, log } });
  await app.register(auditRoutes, { deps: { reader: audit.reader } });
}

/** What is recorded, what is missing, and what is kept. */
async function addFootageRoutes(app: FastifyInstance, deps: ApiDeps): Promise<void> {
  const { protections } = deps;
  const timelines = new Timelines(deps);
  await app.register(archiveRoutes, { deps });
  await app.register(gapRoutes, { deps });
  await app.register(timelineRoutes, { deps: { ...deps, timelines } });
  await app.register(dayRoutes, { deps: { ...deps, timelines } });
  await app.register(reportRoutes, { deps: { ...deps, timelines } });
  if (protections) await app.register(protectionRoutes, { deps: { ...deps, protections } });
  await app.register(archiveStillRoutes, { deps });
}

/** Exports, time-lapses, cases and assemblies. */
async function addJobRoutes(app: FastifyInstance, deps: ApiDeps): Promise<void> {
  const { jobs, nodeName } = deps;
  await app.register(exportRoutes, { deps });
  await app.register(jobRoutes, { deps });
  await app.register(assembleRoutes, { jobs });
  await app.register(caseRoutes, { deps });
  await app.register(keyRoutes, { jobs, nodeName });
}

/** The state and settings of cameras, their live streams and pictures, and commands to them. */
async function addCameraRoutes(app: FastifyInstance, deps: ApiDeps): Promise<void> {
  const { auth, origins, cameras, ptz, cameraSwitch, tryLogins, cameraEditor, stills, doctor, discoverer } = deps;
  await app.register(cameraRoutes, { deps });
  await app.register(liveRoutes, { deps, auth, origins, memberOrigins: memberOriginsOf(deps) });
  await app.register(ptzRoutes, { cameras, ptz });
  await app.register(cameraControlRoutes, { cameraSwitch });
  await app.register(tryLoginRoutes, { deps: { cameras, tryLogins } });
  if (cameraEditor) await app.register(cameraSettingsRoutes, { cameraEditor });
  await app.register(stillRoutes, { stills });
  await app.register(probeRoutes, { deps: { cameras, doctor, cameraEditor } });
  await app.register(discoverRoutes, { discoverer });
}

/** The console, playback at the same address, and the OpenAPI document. */
async function addPageRoutes(app: FastifyInstance, deps: ApiDeps): Promise<void> {
  const { playback } = deps;
  await app.register(playbackUnderApi, { prefix: '/playback', routes: playback.routes });
  await app.register(pageRoutes, { deps });
  app.get('/openapi.json', { schema: { hide: true } }, async (request) => {
    const own = app.swagger() as OpenApiDocument;
    const at = playbackAddress(request, playback);
    return at === undefined ? own : joined(own, playback.document(), at);
  });
}
