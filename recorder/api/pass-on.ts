// Passes requests on to another node of the cluster, and its answers back. The other node knows the caller by what this node
// states, and lets it do no more than it may do here.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { callerOf } from '../http/access.ts';
import type { Authenticator } from '../http/auth.ts';
import { scopeOf } from '../http/caller.ts';
import { harmless } from '../http/foreign-answer.ts';
import { credentialOf } from '../http/credentials.ts';
import { ApiError } from '../http/problem.ts';
import {
  PeerUnavailable,
  type PeerAnswer,
  type PeerCaller,
  type PeerRequest,
  type PeerSender,
} from '../peers/peer-requests.ts';
import { wholeAnswer } from '../peers/whole-answer.ts';
import type { ApiDeps } from './deps.ts';
import type { UnlistedNodes } from '../footage/elsewhere-item.ts';

const REQUEST_HEADERS = [
  'accept',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'range',
] as const;

const ANSWER_HEADERS = [
  'accept-ranges',
  'cache-control',
  'content-disposition',
  'content-length',
  'content-range',
  'etag',
  'last-modified',
  'retry-after',
  'x-picture-time-ms',
] as const;

const ANSWER_MS = 5_000;
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

/**
 * For a request without a body that reads, or removes a job. Throws ApiError: `unknown` if the cluster has no such node, 503 if
 * the node does not answer.
 */
export async function passOn(
  request: FastifyRequest,
  reply: FastifyReply,
  peers: PeerSender,
  nodeId: string,
  unknown: () => ApiError,
): Promise<FastifyReply> {
  const { method, url: path } = request;
  const caller = statedBy(request, method === 'DELETE' ? 'remove-jobs' : undefined);
  const answer = await peers.request(nodeId, { ...passedOn(request, path), method, caller }).catch((err: unknown) => {
    if (!(err instanceof PeerUnavailable)) throw err;
    throw err.code === 'unknown' ? unknown() : nodeAway(err);
  });
  return sendAnswer(reply, answer);
}

/** The request as a GET of another node. It ends when the caller goes. */
function passedOn(request: FastifyRequest, path: string): PeerRequest {
  const gone = new AbortController();
  request.raw.socket.once('close', () => gone.abort());
  const headers = chosen(request.headers, REQUEST_HEADERS);
  return { listener: 'api', caller: statedBy(request), path, headers, signal: gone.signal };
}

/** The answer of another node as that of this one. */
const sendAnswer = (reply: FastifyReply, { status, headers, body }: PeerAnswer): FastifyReply =>
  reply
    .code(status)
    .headers({ ...chosen(headers, ANSWER_HEADERS), ...harmless(headers['content-type']) })
    .serializer((payload: unknown) => payload as string)
    .send(body);

/** The caller of a request to another node, and the headers that show the caller to a node that cannot be asked as a member. */
type Asking = Pick<PeerRequest, 'caller' | 'headers'>;

/** The caller, as if it had asked the other node itself. This node has checked that the request comes from its own page. */
export const asItself = (request: FastifyRequest, auth: Authenticator, caller = callerOf(request)): Asking => ({
  caller: { kind: 'itself', credential: credentialOf(request), vouched: auth.vouchedFor(caller) },
  headers: { cookie: request.headers.cookie ?? '', 'sec-fetch-site': 'same-origin' },
});

/**
 * The answers of all other nodes of the cluster to the caller, and the nodes that gave none. By default, the caller may see there what it
 * may see here.
 */
export async function askOthers<T extends z.ZodType>(
  request: FastifyRequest,
  { cluster, peers, log }: Pick<ApiDeps, 'cluster' | 'peers' | 'log'>,
  path: string,
  schema: T,
  asking: Asking = { caller: statedBy(request) },
): Promise<{ readonly answers: readonly z.output<T>[]; readonly unlisted: z.output<typeof UnlistedNodes> }> {
  if (!cluster || !peers) return { answers: [], unlisted: {} };
  const { nodes } = await cluster.metrics();
  const others = nodes.filter(({ nodeId }) => nodeId !== cluster.nodeId);
  const asked = await Promise.all(
    others.map(async ({ nodeId }) => {
      const asked = { ...asking, listener: 'api', path, headMs: ANSWER_MS } as const;
      return { nodeId, answer: await wholeAnswer({ peers, log }, nodeId, asked, MAX_ANSWER_BYTES, schema) };
    }),
  );
  return {
    answers: asked.flatMap(({ answer }) => (answer.kind === 'answer' ? [answer.value] : [])),
    unlisted: {
      nodes_away: asked.flatMap(({ nodeId, answer }) => (answer.kind === 'away' ? [nodeId] : [])),
      nodes_refusing: asked.flatMap(({ nodeId, answer }) =>
        answer.kind === 'refused' ? [{ node_id: nodeId, http_status: answer.status, problem: answer.problem }] : [],
      ),
    },
  };
}

function statedBy(request: FastifyRequest, may?: 'remove-jobs'): PeerCaller {
  const caller = callerOf(request);
  return { kind: 'viewer', name: caller.name, cameras: scopeOf(caller), may, credential: credentialOf(request) };
}

/** The answer for a node that does not answer. */
const nodeAway = (err: PeerUnavailable): ApiError =>
  new ApiError(503, 'node-away', err.message, { cause: err, headers: { 'retry-after': '5' }, isExpected: true });

function chosen(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  names: readonly string[],
): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of names) {
    const value = headers[name];
    if (typeof value === 'string') found[name] = value;
  }
  return found;
}
