// The listener for other recorders of the pool. Both sides authenticate with a certificate of the pool's CA. It serves
// results of jobs, whose ids cannot be guessed, and passes requests on to the listeners for clients: `/listener/api/…`
// and `/listener/playback/…`. There they need the credential of a caller, or have a caller that the member states, who
// may read, request exports, and remove jobs. A command on the machine of
// this node states that it may do everything. Where servers can join, clients without a certificate get what they need
// for that, and nothing else.

import type { FastifyInstance } from 'fastify';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { noAudit, type AuditSink } from '../audit/entry.ts';
import type { Visits } from '../audit/visits.ts';
import { logAnswers } from '../http/access.ts';
import { installAudit } from '../http/audit.ts';
import type { CertificatePair } from '../http/certificate.ts';
import { memberIn, strangerIn } from '../http/member-certificate.ts';
import { ApiError } from '../http/problem.ts';
import { markRelayed, statedCaller, type StatedCaller } from '../http/relayed.ts';
import { buildServer } from '../http/server.ts';
import type { PeerListener } from '../contract/other-node.ts';
import { CALLER_HEADER, RELAYED_HEADER } from '../peers/peer-requests.ts';
import type { JobKeeper } from './deps.ts';
import { joinRoutes, type Joining } from './routes/join.ts';
import { jobResultRoutes } from './routes/job-results.ts';
import { routeConfigOf } from '../http/route-config.ts';

/**
 * A peer may use a quarter of them: enough for the live streams of a thousand viewers that it passes on, and some
 * dozens of requests.
 */
const MAX_CONNECTIONS = 8192;

interface PeersDeps {
  readonly nodeId: string;
  readonly pair: CertificatePair;
  /** CA certificates, PEM. Without them, no client is accepted. */
  readonly authorities: string | undefined;
  readonly jobs: JobKeeper;
  /** The listeners for clients, to which requests of members are passed on. */
  readonly listeners: Readonly<Record<PeerListener, FastifyInstance>>;
  /** Which nodes are members, of those with a certificate of the CA; without it, all are. */
  readonly members?: Members | undefined;
  /** Where other servers can join the cluster. */
  readonly joining?: Joining | undefined;
  readonly audit?: AuditSink;
  readonly visits?: Visits | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

interface Members {
  has(nodeId: string): boolean;
  /** To be awaited before a node that is none is refused: it may be new. Never rejects. */
  look(): Promise<void>;
}

const EVERYBODY: Members = { has: () => true, look: () => Promise.resolve() };

/** Not listening yet. */
export async function buildPeersServer({
  nodeId,
  pair,
  authorities,
  jobs,
  listeners,
  members = EVERYBODY,
  joining,
  audit = noAudit,
  visits,
  clock,
  log,
}: PeersDeps): Promise<FastifyInstance> {
  const app = buildServer({
    log,
    tls: pair,
    clientAuthorities: authorities ?? pair.certificate,
    admitsStrangers: joining !== undefined,
    maxConnections: MAX_CONNECTIONS,
  });
  // Commands on the machine of this node come from the node itself.
  const isShutOut = (member: string): boolean => member !== nodeId && !members.has(member);
  installAudit(app, { audit, visits, clock });
  app.decorateRequest('caller', undefined);
  app.addHook('onRequest', async (request, reply) => {
    const { raw } = request;
    const member = memberIn(raw);
    if (member === undefined) {
      if (routeConfigOf(request).isForStrangers) return;
      reply.header('connection', 'close');
      throw new ApiError(403, 'not-a-member', strangerIn(raw));
    }
    if (isShutOut(member)) await members.look();
    if (isShutOut(member)) throw new ApiError(403, 'not-a-member', 'the cluster has no such node, or removed it');
    const name = `recorder ${member}`;
    // Not one of the viewers: a member asks for all of its callers.
    app.connections.identify(raw.socket, { name, role: 'admin' });
    const passed = passedOn(raw, member, nodeId);
    if (passed === 'refused') throw new ApiError(400, 'invalid-request', 'the statement of the caller cannot be read');
    if (passed) {
      reply.hijack();
      listeners[passed].server.emit('request', raw, reply.raw);
      return;
    }
    // The other recorder has authenticated its own caller as an admin, and fetches parts of one camera only.
    request.caller = { name, role: 'viewer', seesAll: true, sees: () => true };
  });
  app.server.on('upgrade', (raw: IncomingMessage, socket: Duplex, head: Buffer) => {
    const member = memberIn(raw);
    const passed = member === undefined || isShutOut(member) ? 'refused' : passedOn(raw, member, nodeId);
    if (passed === undefined || passed === 'refused') socket.destroy();
    else listeners[passed].server.emit('upgrade', raw, socket, head);
  });
  logAnswers(app, log);
  await app.register(jobResultRoutes, { deps: { jobs, clock } });
  if (joining) await app.register(joinRoutes, { joining, clock });
  return app;
}

const LISTENER = /^\/listener\/(api|playback)(?=\/)/;
const SAFE: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD']);
/** What a stated caller may do besides reading. */
const ALSO = {
  export: { method: 'POST', path: /^\/listener\/api\/api\/archive\/[^/?]+\/export(?:\?|$)/ },
  'remove-jobs': { method: 'DELETE', path: /^\/listener\/api\/api\/archive\/jobs\/[^/?]+$/ },
} as const;

function isStatedFor({ may, of, statedBy }: StatedCaller, { method, url = '' }: IncomingMessage, own: string): boolean {
  if (may === 'everything') return statedBy === own;
  // The listener decides by its own list.
  if (of) return true;
  if (may === undefined) return SAFE.has(method);
  return method === ALSO[may].method && ALSO[may].path.test(url);
}

/**
 * The listener that answers this request; `raw` is then the request as that listener must see it. Undefined when this
 * listener answers itself.
 */
function passedOn(raw: IncomingMessage, nodeId: string, own: string): PeerListener | 'refused' | undefined {
  const found = LISTENER.exec(raw.url ?? '');
  if (!found) return undefined;
  const statement = raw.headers[CALLER_HEADER];
  const viewer = typeof statement === 'string' ? statedCaller(statement, nodeId) : undefined;
  if (statement !== undefined && (!viewer || !isStatedFor(viewer, raw, own))) return 'refused';
  raw.url = (raw.url as string).slice(found[0].length);
  if (viewer?.may !== 'everything') raw.headers[RELAYED_HEADER] ??= nodeId;
  markRelayed(raw, { nodeId, viewer });
  return found[1] as PeerListener;
}
