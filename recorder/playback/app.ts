// Playback: serves files of the archive, playlists of them, and windows as one movie.

import fastifySwagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import { noAudit } from '../audit/entry.ts';
import { installAccess, logAnswers } from '../http/access.ts';
import { installAudit } from '../http/audit.ts';
import { installCors } from '../http/cors.ts';
import { openApiOptions } from '../http/openapi.ts';
import { buildServer } from '../http/server.ts';
import type { Asker } from '../peers/peer-requests.ts';
import { installRelay, ownAddress } from '../relay/relay.ts';
import { aboutPlayback } from './about.ts';
import type { PlaybackDeps } from './deps.ts';
import { Reading } from './reading.ts';
import { Recordings } from './recording.ts';
import { Responder } from './respond.ts';
import { keyFrameAt, type KeyFrame } from './key-frame.ts';
import { fileRoutes } from './routes/files.ts';
import { footageRoutes } from './routes/footage.ts';
import { hlsPartRoutes } from './routes/hls-parts.ts';
import { hlsRoutes } from './routes/hls.ts';
import { windowRoutes } from './routes/window.ts';
import { Sender } from './sender.ts';
import type { Registry } from 'prom-client';
import { scraped } from '../../base/scraped.ts';

/** A paused player stops reading; when it continues, its browser requests the rest again. */
const STALLED_CONNECTION_MS = 300_000;
/** Each may hold an open file and two chunks of memory. */
const MAX_CONNECTIONS = 512;

/** The server of the playback listener, not listening yet. */
export async function buildPlayback(deps: PlaybackDeps, { routes } = openPlayback(deps)): Promise<FastifyInstance> {
  const { log, tls, trustedProxies = [], origins = [] } = deps;
  const app = buildServer({
    name: 'playback',
    log,
    trustedProxies,
    maxConnections: MAX_CONNECTIONS,
    stalledMs: STALLED_CONNECTION_MS,
    rewriteUrl: deps.cluster && ownAddress(deps.cluster.nodeId),
    ...(tls ? { tls } : {}),
  });
  installAudit(app, { audit: noAudit, visits: deps.visits, clock: deps.clock });
  installCors(app, {
    origins,
    memberOrigins: deps.cluster && (() => deps.cluster?.origins() ?? []),
    path: '/*',
    methods: 'GET, HEAD',
    requestHeaders: 'authorization, if-modified-since, if-none-match, if-range, range, x-request-id',
    exposedHeaders:
      'accept-ranges, content-disposition, content-length, content-range, etag, last-modified, x-request-id, link, x-window-ends-at',
    sameHost: true,
  });
  installAccess(app, deps.auth);
  logAnswers(app, deps.log);

  await app.register(fastifySwagger, openApiOptions(aboutPlayback(deps.version)));
  await routes(app);
  app.get('/openapi.json', { schema: { hide: true } }, async () => app.swagger());
  return app;
}

interface Playback {
  /** For one listener or several. */
  readonly routes: (app: FastifyInstance) => Promise<void>;
  /** `atMs`: whole milliseconds. Without `by`: of this node. Undefined where nothing is recorded. Rejects with ApiError. */
  readonly keyFrameAt: (cameraId: string, atMs: number, by?: Asker) => Promise<KeyFrame | undefined>;
}

/** The objects that share what is known of the files. */
export function openPlayback(deps: PlaybackDeps): Playback {
  const { footage, cluster, clock, peers } = deps;
  const { archive, files, parts } = footage.own;
  const sender = new Sender({ clock, memory: deps.memory, ...(deps.keepAwake ? { keepAwake: deps.keepAwake } : {}) });
  const responder = new Responder(sender, deps.log);
  if (deps.registry) observePlayback(deps.registry, sender);
  const recordings = new Recordings(clock);
  const reading = new Reading(archive, clock);
  const routes = async (app: FastifyInstance): Promise<void> => {
    if (cluster && peers) {
      const places = () => cluster.places();
      installRelay(app, {
        nodeId: cluster.nodeId,
        listener: 'playback',
        peers,
        places,
        metrics: deps.relayMetrics,
        auth: deps.auth,
      });
    }
    const whole = { footage, cluster, clock };
    await app.register(footageRoutes, { deps: whole });
    await app.register(hlsRoutes, { deps: { ...whole, responder } });
    await app.register(hlsPartRoutes, { deps: { parts, files, reading, responder } });
    await app.register(windowRoutes, { deps: { ...whole, responder } });
    await app.register(fileRoutes, { deps: { archive, cluster, peers, files, reading, recordings, responder } });
  };
  return {
    routes,
    keyFrameAt: (cameraId, atMs, by) => keyFrameAt({ footage, clock }, cameraId, atMs, by),
  };
}

/** Values are read at each scrape. */
export function observePlayback(registry: Registry, sender: Sender): void {
  const { counter, gauge } = scraped(registry);
  counter('playback_bytes_total', 'Bytes of footage sent to players.', [], () => sender.bytesSent);
  gauge('playback_responses', 'Files, parts and windows that are being sent.', [], () => sender.active);
}
