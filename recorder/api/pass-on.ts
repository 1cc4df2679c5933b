// Passes requests on to another node of the cluster, and its answers back. The other node knows the caller by what this node
// states, and lets it do no more than it may do here.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { readBody } from '../../base/http-answer.ts';
import { callerOf } from '../http/access.ts';
import { ApiError } from '../http/problem.ts';
import { PeerUnavailable, type PeerCaller, type PeerSender } from '../peers/peer-requests.ts';

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
  'content-type',
  'etag',
  'last-modified',
  'retry-after',
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
  const gone = new AbortController();
  request.raw.socket.once('close', () => gone.abort());
  const { method, url: path, headers } = request;
  const answer = await peers
    .request(nodeId, {
      listener: 'api',
      caller: statedBy(request, method === 'DELETE' ? 'remove-jobs' : undefined),
      method,
      path,
      headers: chosen(headers, REQUEST_HEADERS),
      signal: gone.signal,
    })
    .catch((err: unknown) => {
      if (!(err instanceof PeerUnavailable)) throw err;
      throw err.problem === 'unknown' ? unknown() : nodeAway(err);
    });
  return reply
    .code(answer.status)
    .headers(chosen(answer.headers, ANSWER_HEADERS))
    .serializer((payload: unknown) => payload as string)
    .send(answer.body);
}

/** What another node answers to the caller; undefined if it does not answer, or not as expected. */
export async function readFrom<T extends z.ZodType>(
  request: FastifyRequest,
  peers: PeerSender,
  nodeId: string,
  path: string,
  schema: T,
): Promise<z.output<T> | undefined> {
  try {
    const caller = statedBy(request, undefined);
    const { status, body } = await peers.request(nodeId, { listener: 'api', caller, path, headMs: ANSWER_MS });
    const text = (await readBody(body, MAX_ANSWER_BYTES, () => new Error('the answer is too long'))).toString();
    return status === 200 ? schema.parse(JSON.parse(text)) : undefined;
  } catch {
    return undefined;
  }
}

function statedBy(request: FastifyRequest, may: 'remove-jobs' | undefined): PeerCaller {
  const { name, seesAll, patterns, cameras } = callerOf(request);
  const scope = seesAll ? ['*'] : (patterns ?? [...(cameras ?? [])]);
  return { kind: 'viewer', name, cameras: scope, may, credential: request.headers.authorization };
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
