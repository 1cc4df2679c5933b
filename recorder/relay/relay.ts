// `/node/{node_id}/…`: any node passes requests on to any other, for callers that reach only one of them or cannot follow a
// redirect. The other node is told who the caller is, and decides by its own list what that caller may do; it gets no credential that
// works elsewhere, because it may have been taken over.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Duplex, Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { callerOf } from '../http/access.ts';
import type { Authenticator } from '../http/auth.ts';
import { credentialOf, tokenInQuery } from '../http/credentials.ts';
import { harmless } from '../http/foreign-answer.ts';
import { ApiError } from '../http/problem.ts';
import { isRelayed } from '../http/relayed.ts';
import type { PeerListener } from '../contract/other-node.ts';
import {
  CALLER_HEADER,
  NOT_PASSED_ON as NO_TOKEN,
  PeerUnavailable,
  RELAYED_HEADER,
  type PeerRequest,
  type PeerSender,
} from '../peers/peer-requests.ts';
import type { RelayMetrics } from './metrics.ts';

interface RelayedPath {
  readonly nodeId: string;
  readonly url: string;
}

interface RelayDeps {
  readonly nodeId: string;
  readonly listener: PeerListener;
  readonly peers: PeerSender;
  /** The base URLs of the listeners of all nodes, for redirects that they answer with. */
  readonly places: () => readonly RelayedPath[];
  readonly metrics?: RelayMetrics | undefined;
  readonly auth: Pick<Authenticator, 'vouchedFor' | 'followed'>;
}

/** Longer than any answer of the API takes to begin. */
const HEAD_MS = 35_000;
const MAX_LISTENERS = 20;
const PREFIX = /^\/node\/([^/?]+)(\/(?!\/)[^?]*)?(\?.*)?$/;
/** The same on a whole listener: the API also has playback, under a prefix. */
const ADDRESS = /^(\/playback)?\/node\/([^/?]+)(\/(?!\/)[^?]*)?(\?.*)?$/;

/** Of one connection, not of the request (RFC 9110 §7.6.1); and what only members may state. */
const NOT_PASSED_ON: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'host',
  'authorization',
  CALLER_HEADER,
  RELAYED_HEADER,
]);
/** This node answers the page that asked it, in its own way. */
const NOT_PASSED_BACK = /^(access-control-|strict-transport-security$|alt-svc$|set-cookie$|vary$)/;

/** Its lines repeat the token of the caller's address, which the other node did not get. */
const PLAYLIST = 'application/vnd.apple.mpegurl';

/**
 * For the server of a listener: this node answers requests for `/node/{its own name}/…` itself, as if another node had
 * passed them on. At one address for all nodes, such as that of a Service, a caller does not know which node it
 * reaches.
 */
export const ownAddress =
  (nodeId: string) =>
  (request: IncomingMessage): string => {
    const { url = '/' } = request;
    const [, prefix = '', named = '', path = '/', query = ''] = ADDRESS.exec(url) ?? [];
    if (named === '' || decoded(named) !== nodeId) return url;
    request.headers[RELAYED_HEADER] ??= nodeId;
    return `${prefix}${path}${query}`;
  };

/** Registers the routes; `app` checks callers. */
export function installRelay(app: FastifyInstance, deps: RelayDeps): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    const location = reply.getHeader('location');
    const { prefix } = request.server;
    if (typeof location === 'string' && request.originalUrl !== request.url) {
      const own = location.startsWith(`${prefix}/`) ? location.slice(prefix.length) : location;
      reply.header('location', relayed(own, deps.nodeId, prefix, deps));
    }
    done(null, payload);
  });
  void app.register(async (relay) => {
    // Bodies are passed on as they come.
    relay.removeAllContentTypeParsers();
    relay.addContentTypeParser('*', (_request, body, done) => done(null, body));
    const common = {
      schema: { hide: true },
      // Before the body is read and before a WebSocket is accepted.
      onRequest: async (request: FastifyRequest, reply: FastifyReply) => {
        if (request.headers.upgrade !== undefined) await relayUpgrade(request, reply, deps);
      },
      handler: (request: FastifyRequest, reply: FastifyReply) => relayRequest(request, reply, deps),
    };
    const config = { role: 'viewer', credentials: 'anywhere', cameras: 'filtered' } as const;
    relay.route({ ...common, method: ['GET', 'HEAD'], url: '/node/:node_id/*', config });
    if (deps.listener === 'playback') return;
    const audited = { ...config, audit: 'relay' } as const;
    relay.route({ ...common, method: ['POST', 'PUT', 'DELETE'], url: '/node/:node_id/*', config: audited });
  });
}

/** Throws ApiError. */
function targetOf(request: FastifyRequest): { nodeId: string; path: string } {
  const found = PREFIX.exec(request.url.slice(request.server.prefix.length));
  if (!found) throw new ApiError(404, 'not-found', 'expected /node/{node_id}/ and a path');
  const [, named = '', path = '/', query = ''] = found;
  if (isRelayed(request.raw)) {
    throw new ApiError(404, 'not-found', 'another node passed this request on: it is not passed on again');
  }
  return { nodeId: decoded(named), path: `${path}${query}` };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // These escapes are not UTF-8: the text stays as it is.
    return text;
  }
}

/**
 * With the host at which the caller asked, because the other node has another one: it compares the origin of a page with that, as
 * this node does.
 */
function headersOf({ headers, id, method }: FastifyRequest): Record<string, string | string[]> {
  const named = connectionOptions(headers.connection);
  const passed: Record<string, string | string[]> = { 'x-request-id': id };
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || NOT_PASSED_ON.has(name) || named.includes(name)) continue;
    if (method === 'GET' && name.startsWith('content-')) continue;
    passed[name] = value;
  }
  if (headers.host !== undefined) passed['x-forwarded-host'] ??= headers.host;
  return passed;
}

const callerFor = (request: FastifyRequest, { auth }: RelayDeps): PeerRequest['caller'] => ({
  kind: 'itself',
  credential: credentialOf(request),
  vouched: auth.vouchedFor(callerOf(request)),
});

/** The names in a `Connection` header, in lower case (RFC 9110 §7.6.1): these headers are for one hop only. */
const connectionOptions = (value = ''): string[] => value.split(',').map((name) => name.trim().toLowerCase());

async function relayRequest(request: FastifyRequest, reply: FastifyReply, deps: RelayDeps): Promise<FastifyReply> {
  const { nodeId, path } = targetOf(request);
  const { raw } = reply;
  const gone = new AbortController();
  raw.once('close', () => gone.abort(new Error('the caller has disconnected')));
  const { listener, peers } = deps;
  const body = request.body as Readable | undefined;
  const answer = await asked(
    nodeId,
    peers.request(nodeId, {
      listener,
      path,
      method: request.method,
      caller: callerFor(request, deps),
      headers: headersOf(request),
      body,
      signal: gone.signal,
      headMs: HEAD_MS,
    }),
    raw,
    deps,
  );
  if (!answer) return reply.hijack();
  const named = connectionOptions(answer.headers.connection);
  for (const [name, value] of Object.entries(answer.headers)) {
    if (value === undefined || NOT_PASSED_ON.has(name) || named.includes(name) || NOT_PASSED_BACK.test(name)) continue;
    reply.header(name, name === 'location' ? locationFor(request, String(value), nodeId, deps) : value);
  }
  const token = tokenInQuery(request);
  const names = token !== undefined && String(answer.headers['content-type']).startsWith(PLAYLIST);
  if (names) reply.removeHeader('content-length');
  reply.headers(harmless(answer.headers['content-type']));
  reply.hijack();
  let isBroken = false;
  // Not when the caller disconnects, which ends the answer as well.
  answer.body.once('error', () => (isBroken = !gone.signal.aborted));
  const counted = raw.socket && deps.metrics?.passing(nodeId, raw.socket);
  raw.writeHead(answer.status, reply.getHeaders() as Record<string, string | string[]>);
  // The hooks of a request and the pipeline add more listeners for its end than Node's default limit.
  raw.setMaxListeners(MAX_LISTENERS);
  const passed = names ? pipeline(answer.body, withToken(token), raw) : pipeline(answer.body, raw);
  // A broken answer breaks this one: its caller sees that it is not whole.
  await passed.catch(() => raw.destroy());
  counted?.();
  deps.metrics?.request(nodeId, isBroken ? 'broken' : 'answered');
  return reply;
}

/** The text of a playlist, with the token of its caller. */
const withToken = (token: string) =>
  async function* (text: Readable): AsyncGenerator<string> {
    const [from, to] = [NO_TOKEN, encodeURIComponent(token)].map((value) => `access_token=${value}`) as [
      string,
      string,
    ];
    let rest = '';
    for await (const part of text.setEncoding('latin1')) {
      const parts = `${rest}${part as string}`.split(from);
      const last = parts.pop() as string;
      // It may end in the middle of the name.
      const cut = Math.max(0, last.length - from.length + 1);
      rest = last.slice(cut);
      yield [...parts, last.slice(0, cut)].join(to);
    }
    yield rest;
  };

/** Undefined when the caller has disconnected meanwhile. Rejects with ApiError. */
async function asked<T>(
  nodeId: string,
  answer: Promise<T>,
  raw: ServerResponse,
  { metrics }: RelayDeps,
): Promise<T | undefined> {
  try {
    return await answer;
  } catch (err) {
    if (raw.destroyed) return undefined;
    if (!(err instanceof PeerUnavailable)) throw err;
    // Not counted: callers can name any node.
    if (err.code === 'unknown') throw new ApiError(404, 'unknown-node', err.message, { cause: err });
    metrics?.request(nodeId, err.code);
    const headers = { 'retry-after': '5' };
    throw new ApiError(503, 'node-away', err.message, { headers, isExpected: true, cause: err });
  }
}

/** A link opens also where its address is redirected to; the other node did not get the link. */
const locationFor = (request: FastifyRequest, location: string, nodeId: string, deps: RelayDeps): string =>
  deps.auth.followed(callerOf(request), relayed(location, nodeId, request.server.prefix, deps));

/**
 * A redirect of a node, through this one: to the same node, or to another one by its base URL. `prefix`: of playback under the
 * API.
 */
function relayed(location: string, nodeId: string, prefix: string, { places, nodeId: own }: RelayDeps): string {
  if (location.startsWith('/') && !location.startsWith('//')) return `${prefix}/node/${nodeId}${location}`;
  const place = places().find(({ url }) => location.startsWith(`${url}/`));
  if (!place) return location;
  const path = location.slice(place.url.length);
  return place.nodeId === own ? `${prefix}${path}` : `${prefix}/node/${place.nodeId}${path}`;
}

/** Joins the connection of the caller and one to the other node, once both speak WebSocket. */
async function relayUpgrade(request: FastifyRequest, reply: FastifyReply, deps: RelayDeps): Promise<void> {
  const { nodeId, path } = targetOf(request);
  if (deps.listener !== 'api') throw new ApiError(404, 'not-found', 'this listener has no WebSockets');
  const { raw } = request;
  const caller = callerFor(request, deps);
  const headers = headersOf(request);
  const opened = await asked(
    nodeId,
    deps.peers.upgrade(nodeId, { listener: 'api', path, caller, headers, headMs: HEAD_MS }),
    reply.raw,
    deps,
  );
  const socket: Duplex = raw.socket;
  reply.hijack();
  if (!opened || socket.destroyed) return void opened?.socket.destroy();
  const answered = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
  for (const name of ['sec-websocket-accept', 'sec-websocket-protocol']) {
    const value = opened.headers[name];
    if (value !== undefined) answered.push(`${name}: ${String(value)}`);
  }
  const counted = deps.metrics?.passing(nodeId, raw.socket);
  socket.once('close', () => counted?.());
  deps.metrics?.request(nodeId, 'answered');
  socket.write(`${answered.join('\r\n')}\r\n\r\n`);
  join(socket, opened.socket);
}

/** Each end of one closes the other; a slow reader slows its sender down. */
function join(one: Duplex, other: Duplex): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => to.destroy());
    from.once('close', () => to.destroy());
    from.pipe(to);
  }
}
