// Builds the server of a listener, with the limits and headers that all listeners share.

import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import fastify from 'fastify';
import type { FastifyInstance } from 'fastify';
import { serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod';
import type { Log } from '../../base/log.ts';
import { openFileLimit } from '../../base/open-files.ts';
import type { ListenerName } from './auth-failures.ts';
import { Connections, connectionLimits } from './connections.ts';
import {
  ApiError,
  answerClientError,
  answerFrameworkError,
  commonHeaders,
  hasBegunToAnswer,
  installProblems,
  MAX_PARAMETER_LENGTH,
} from './problem.ts';
import { refuseMisspelt } from './query.ts';
import { RouteList } from './route-list.ts';
import { MIN_TLS_VERSION, type CertificatePair } from './certificate.ts';
import { routeConfigOf } from './route-config.ts';

declare module 'fastify' {
  interface FastifyInstance {
    readonly connections: Connections;
    readonly listenerName: ListenerName;
  }
}

export interface ServerOptions {
  /** Its name in metrics. */
  readonly name?: ListenerName;
  readonly log: Log;
  /** If set, the server speaks HTTPS only. */
  readonly tls?: CertificatePair;
  /** If set, a client needs a certificate of one of these CAs. PEM. */
  readonly clientAuthorities?: string;
  /** Clients without such a certificate are let in, too: the routes tell them apart (`memberIn`). */
  readonly admitsStrangers?: boolean;
  /** Addresses and networks of proxies whose X-Forwarded-For, -Host and -Proto are trusted. */
  readonly trustedProxies?: readonly string[];
  /** When it is reached, a connection without a valid token is closed: the longest idle, else the oldest; if there is none, the new one. */
  readonly maxConnections: number;
  /** The address that a request is for, if it asks with another one. */
  readonly rewriteUrl?: ((request: IncomingMessage) => string) | undefined;
  /** A connection without a byte in either direction is closed after this time. */
  readonly stalledMs?: number;
  readonly timeouts?: Timeouts;
}

interface Timeouts {
  /** For the whole request. */
  readonly requestMs: number;
  /** For its first line and headers; also for a connection that sends nothing. */
  readonly headersMs: number;
  /** For the body, from the end of the headers, where the route asks nobody for a token. */
  readonly strangerBodyMs: number;
  /** For the TLS handshake, from the start of the connection. */
  readonly handshakeMs: number;
  /** How often these times are checked. */
  readonly checkMs: number;
}

const TIMEOUTS: Timeouts = {
  requestMs: 30_000,
  headersMs: 10_000,
  strangerBodyMs: 3_000,
  handshakeMs: 10_000,
  checkMs: 2_000,
};

/** Of the files and connections that the process may open: however low the limit is, strangers leave enough for cameras and disks. */
const MAX_SHARE_OF_FILES = 1 / 4;

const BODY_LIMIT_BYTES = 64 * 1024;
/** First line and headers together. */
const MAX_HEADER_BYTES = 16 * 1024;

/**
 * A server without routes, not listening yet. Hooks that every request passes call `done` instead of returning a promise:
 * each promise costs a request about a microsecond.
 */
export function buildServer(options: ServerOptions): FastifyInstance {
  const { name = 'api', log, trustedProxies = [], maxConnections, timeouts = TIMEOUTS } = options;
  const app = listenerOf(options);
  const connections = new Connections(
    connectionLimits(Math.min(maxConnections, Math.floor(openFileLimit() * MAX_SHARE_OF_FILES))),
    trustedProxies,
  );
  app.decorate('connections', connections);
  app.decorate('listenerName', name);
  app.decorateRequest('routeConfig', undefined);
  answerHalfClosed(app.server, options.tls ? 'secureConnection' : 'connection');
  connections.watch(app);
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.decorate('routeList', new RouteList(app));
  installProblems(app, log);
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(commonHeaders(request));
    const host = hostProblem(request.raw);
    if (host !== undefined) return done(new ApiError(400, 'malformed-request', `Host: ${host}`));
    // Many clients send a Content-Type without a body.
    if (isWithoutBody(request.headers)) delete request.headers['content-type'];
    else if (routeConfigOf(request).role === undefined && connections.has(request.raw.socket)) {
      endUnlessRead(request.raw, timeouts.strangerBodyMs);
    }
    return done();
  });
  refuseMisspelt(app);
  return app;
}

/** With limits for what clients send, over HTTP or HTTPS. */
function listenerOf(options: ServerOptions): FastifyInstance {
  const { tls, trustedProxies = [], stalledMs, rewriteUrl, timeouts = TIMEOUTS } = options;
  const common = {
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: timeouts.requestMs,
    ...(stalledMs === undefined ? {} : { connectionTimeout: stalledMs }),
    // A stop ends downloads and viewers instead of waiting for them; until then, requests are answered.
    forceCloseConnections: true,
    return503OnClosing: false,
    trustProxy: trustedProxies.length === 0 ? false : [...trustedProxies],
    genReqId: requestId,
    ...(rewriteUrl && { rewriteUrl }),
    frameworkErrors: answerFrameworkError,
    clientErrorHandler: answerClientError,
    // `__proto__` and `constructor` in a body are removed, like unknown keys.
    onProtoPoisoning: 'remove' as const,
    onConstructorPoisoning: 'remove' as const,
    routerOptions: { maxParamLength: MAX_PARAMETER_LENGTH, ignoreTrailingSlash: false },
  };
  const http = {
    headersTimeout: timeouts.headersMs,
    connectionsCheckingInterval: timeouts.checkMs,
    maxHeaderSize: MAX_HEADER_BYTES,
    // Node would answer with an empty body.
    requireHostHeader: false,
    shouldUpgradeCallback(this: Server, request: IncomingMessage) {
      return this.listenerCount('upgrade') > 0 && isWebSocket(request);
    },
  };
  if (!tls) return fastify({ ...common, http });
  return fastify({ ...common, https: { ...http, ...tlsOf(tls, options), handshakeTimeout: timeouts.handshakeMs } });
}

function tlsOf(
  { certificate, key }: CertificatePair,
  { clientAuthorities, admitsStrangers = false }: Pick<ServerOptions, 'clientAuthorities' | 'admitsStrangers'>,
): TlsOptions {
  return {
    cert: certificate,
    key,
    minVersion: MIN_TLS_VERSION,
    ...(clientAuthorities === undefined
      ? {}
      : { ca: clientAuthorities, requestCert: true, rejectUnauthorized: !admitsStrangers }),
  };
}

/** How long an answer may take to begin after the client has ended its side: it may also have left. */
const HALF_CLOSED_MS = 5_000;

/** A client may end its side of the connection after the request, and read the answer. */
function answerHalfClosed(server: Server, connected: 'connection' | 'secureConnection'): void {
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on(connected, (socket: Socket) => {
    socket.once('end', () => {
      // In the middle of an answer the client leaves.
      if (hasBegunToAnswer(socket)) socket.destroy();
      else setTimeout(() => hasBegunToAnswer(socket) || socket.destroy(), HALF_CLOSED_MS).unref();
    });
  });
}

const HOST = /^host$/i;

/** RFC 9112 §3.2 */
function hostProblem({ httpVersion, headers, rawHeaders }: IncomingMessage): string | undefined {
  if (headers.host === undefined) return httpVersion === '1.1' ? 'is missing, and HTTP/1.1 requires it' : undefined;
  let lines = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) if (HOST.test(rawHeaders[i] as string)) lines++;
  return lines > 1 ? 'is there twice' : undefined;
}

/**
 * Clients offer HTTP/2 in every request over plain HTTP (RFC 7540 §3.2: Java, curl), and an offer may be ignored (RFC 9110
 * §7.8): the request is then an ordinary one.
 */
const isWebSocket = ({ method, headers }: IncomingMessage): boolean =>
  method === 'GET' && /(?:^|,)\s*websocket\s*(?:,|$)/i.test(headers.upgrade ?? '');

/** Ends the connection of a request whose body is not complete in time. */
function endUnlessRead(request: IncomingMessage, timeoutMs: number): void {
  const timer = setTimeout(() => {
    if (!request.complete) answerClientError(new RequestTimeout('the body is not complete'), request.socket);
  }, timeoutMs);
  request.once('close', () => clearTimeout(timer));
}

/** As Node reports a request that takes too long. */
class RequestTimeout extends Error {
  readonly code = 'ERR_HTTP_REQUEST_TIMEOUT';
}

/** RFC 9112 §6.3 */
const isWithoutBody = (headers: IncomingHttpHeaders): boolean =>
  headers['transfer-encoding'] === undefined && (headers['content-length'] ?? '0') === '0';

/** The id that a proxy gave to the request, if it is safe in a log; else a new one. */
function requestId({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && /^[A-Za-z0-9._+/=-]{1,128}$/.test(given) ? given : randomUUID();
}
