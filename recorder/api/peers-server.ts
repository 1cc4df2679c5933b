// The listener for other recorders of the pool. Both sides authenticate with a certificate of the pool's CA. It serves only
// results of jobs, whose ids cannot be guessed.

import type { FastifyInstance } from 'fastify';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { noAudit } from '../audit/entry.ts';
import type { Visits } from '../audit/visits.ts';
import { logAnswers } from '../http/access.ts';
import { installAudit } from '../http/audit.ts';
import type { CertificatePair } from '../http/certificate.ts';
import { buildServer } from '../http/server.ts';
import type { JobKeeper } from './deps.ts';
import { jobResultRoutes } from './routes/job-results.ts';

/** An export is fetched over one connection; a node has some dozens of peers. */
const MAX_CONNECTIONS = 256;

interface PeersDeps {
  readonly pair: CertificatePair;
  /** CA certificates, PEM. Without them, no client is accepted. */
  readonly authorities: string | undefined;
  readonly jobs: JobKeeper;
  readonly visits?: Visits | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** Not listening yet. */
export async function buildPeersServer({
  pair,
  authorities,
  jobs,
  visits,
  clock,
  log,
}: PeersDeps): Promise<FastifyInstance> {
  const app = buildServer({
    log,
    tls: pair,
    clientAuthorities: authorities ?? pair.certificate,
    maxConnections: MAX_CONNECTIONS,
  });
  installAudit(app, { audit: noAudit, visits, clock });
  app.decorateRequest('caller', undefined);
  app.addHook('onRequest', async (request) => {
    const { subject } = (request.raw.socket as TLSSocket).getPeerCertificate();
    const name = `recorder ${String(subject?.CN ?? '')}`;
    // The other recorder has authenticated its own caller as an admin, and fetches parts of one camera only.
    request.caller = { name, role: 'viewer', seesAll: true, sees: () => true };
    app.connections.identify(request.raw.socket, name);
  });
  logAnswers(app, log);
  await app.register(jobResultRoutes, { deps: { jobs, clock } });
  return app;
}
