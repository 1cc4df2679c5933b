// The HTTP server of a recorder: routes, who may call them, errors as problems, and the OpenAPI document of it all.

import fastifySwagger from '@fastify/swagger';
import fastifyWebsocket from '@fastify/websocket';
import type { FastifyInstance } from 'fastify';
import { installAccess, installKeepAwake, logAnswers } from '../http/access.ts';
import { shortenAnswers } from '../http/answers.ts';
import { installAudit } from '../http/audit.ts';
import { installCors } from '../http/cors.ts';
import { installRelay, ownAddress } from '../relay/relay.ts';
import { aboutApi } from './about.ts';
import type { ClusterAccess } from './cluster-access.ts';
import type { ApiDeps, ApiRoutes } from './deps.ts';
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
import { bookmarkRoutes } from './routes/bookmarks.ts';
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

/** Viewers send no messages of their own. */
const VIEWER_MESSAGE_LIMIT_BYTES = 1024;
/** Enough for 1000 viewers and their requests. A flood of idle clients must leave file descriptors for the cameras. */
const MAX_CONNECTIONS = 4096;

/** In the order of the OpenAPI document. */
const ROUTES: readonly ApiRoutes[] = [
  clusterRoutes,
  clusterMembershipRoutes,
  sessionRoutes,
  signInRoutes,
  sessionListRoutes,
  accountRoutes,
  userRoutes,
  linkRoutes,
  healthRoutes,
  nodeMetricsRoutes,
  objectRoutes,
  eventRoutes,
  bookmarkRoutes,
  happeningRoutes,
  activityRoutes,
  alarmRoutes,
  logRoutes,
  auditRoutes,
  archiveRoutes,
  gapRoutes,
  timelineRoutes,
  dayRoutes,
  reportRoutes,
  protectionRoutes,
  archiveStillRoutes,
  exportRoutes,
  jobRoutes,
  assembleRoutes,
  caseRoutes,
  keyRoutes,
  cameraRoutes,
  liveRoutes,
  ptzRoutes,
  cameraControlRoutes,
  tryLoginRoutes,
  cameraSettingsRoutes,
  stillRoutes,
  probeRoutes,
  discoverRoutes,
];

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
  if (cluster) installCluster(app, deps, cluster);
  for (const routes of ROUTES) await app.register(routes, { deps });
  await addPageRoutes(app, deps);
  return app;
}

/** What applies to every route. The audit comes first, because it records refused requests, too. */
function installHooks(app: FastifyInstance, deps: ApiDeps): void {
  const { audit, auth, origins, cluster } = deps;
  installAudit(app, { audit: audit.sink, visits: audit.visits, clock: deps.clock });
  installCors(app, {
    origins,
    memberOrigins: cluster && (() => cluster.origins()),
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

/** Redirects and relayed requests to other nodes. */
function installCluster(app: FastifyInstance, deps: ApiDeps, cluster: ClusterAccess): void {
  const { cameras, auth, peers, relayMetrics: metrics } = deps;
  installRedirects(app, { cluster, cameras, auth, peers });
  const places = () => cluster.places();
  if (peers) installRelay(app, { nodeId: cluster.nodeId, listener: 'api', peers, places, metrics, auth });
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
