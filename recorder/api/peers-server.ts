// What other recorders of the pool ask this one, on a listener that lets nobody else in: both sides show a certificate of
// the pool's CA. They fetch results of jobs, whose ids only who was given one knows; nothing else is served.

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
import { jobResultRoutes } from './routes/jobs.ts';

/** An export is fetched over one connection; a node has some dozens of peers. */
const MAX_CONNECTIONS = 256;

export interface PeersDeps {
  readonly pair: CertificatePair;
  /** PEM. Without it, nobody is let in. */
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
    // It has asked its own caller, who is an administrator, and joins parts of his camera only.
    request.caller = { name, role: 'viewer', seesAll: true, sees: () => true };
    app.connections.identify(request.raw.socket, name);
  });
  logAnswers(app, log);
  await app.register(jobResultRoutes, { deps: { jobs, clock } });
  return app;
}
