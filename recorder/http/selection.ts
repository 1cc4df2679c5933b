// Evaluates the conditions and ranges of a GET or HEAD request (RFC 9110 §13, §14), for recordings and results of jobs.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { parseRange, type ByteRange } from './byte-range.ts';
import { evaluate, rangeApplies, type Validators } from './conditions.ts';
import { ApiError } from './problem.ts';

export interface Selectable extends Validators {
  readonly sizeBytes: number;
}

/** Nothing to send, the whole representation, or the ranges in the requested order. */
type Selection = 'not-modified' | 'whole' | readonly ByteRange[];

/**
 * Sets the headers that all answers about the representation share. `what` names it in errors. Throws ApiError: 412 when a
 * condition fails, 416 when no range lies within it.
 */
export function select(
  request: FastifyRequest,
  reply: FastifyReply,
  current: Selectable,
  { what, cacheControl }: { readonly what: string; readonly cacheControl: string },
): Selection {
  const { etag, modifiedMs, sizeBytes } = current;
  reply.headers({
    etag,
    'last-modified': new Date(modifiedMs).toUTCString(),
    'accept-ranges': 'bytes',
    'cache-control': cacheControl,
  });
  const outcome = evaluate(request.headers, current);
  if (outcome === 'failed') throw new ApiError(412, 'precondition-failed', `the ${what} is in another state`);
  if (outcome === 'not-modified') return 'not-modified';
  // Range is ignored in HEAD requests (§14.2).
  const isRangeAsked = request.method === 'GET' && rangeApplies(request.headers, current);
  const asked = parseRange(isRangeAsked ? request.headers.range : undefined, sizeBytes);
  if (asked.kind === 'whole') return 'whole';
  if (asked.kind === 'ranges') return asked.ranges;
  const headers = { 'content-range': `bytes */${sizeBytes}` };
  throw new ApiError(416, 'range-not-satisfiable', `Range: the ${what} has ${sizeBytes} bytes`, { headers });
}
