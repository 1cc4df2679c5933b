// Reads complete answers of other nodes, for what this node collects from all of them.

import type { z } from 'zod';
import { isExpected, messageOf } from '../../base/error.ts';
import { readBody } from '../../base/http-answer.ts';
import { issueWords } from '../../base/issue-words.ts';
import type { Log } from '../../base/log.ts';
import { printable } from '../../base/printable.ts';
import type { NoAnswer } from './peer.ts';
import { PeerUnavailable, type Asker, type PeerCaller, type PeerRequest, type PeerSender } from './peer-requests.ts';

/** A caller that may see these cameras and nothing else. */
export const viewerOf = (
  { name, credential }: Asker,
  ...cameras: readonly string[]
): PeerCaller & { readonly kind: 'viewer' } => ({ kind: 'viewer', name, cameras, credential });

export type WholeAnswer<T> = { readonly kind: 'answer'; readonly value: T } | NoAnswer;

class Unreadable extends Error {}

/** What `schema` makes of the JSON in an answer with status 200. Never rejects. */
export async function wholeAnswer<T extends z.ZodType>(
  { peers, log }: { readonly peers: Pick<PeerSender, 'request'>; readonly log: Log },
  nodeId: string,
  request: PeerRequest,
  maxBytes: number,
  schema: T,
): Promise<WholeAnswer<z.output<T>>> {
  let status = 500;
  try {
    const answer = await peers.request(nodeId, request);
    status = answer.status;
    const tooLong = (): Error => new Unreadable(`it has more than ${maxBytes} bytes`);
    const json: unknown = JSON.parse((await readBody(answer.body, maxBytes, tooLong)).toString());
    if (status !== 200) return { kind: 'refused', status, problem: detailOf(json) };
    return { kind: 'answer', value: read(json, schema) };
  } catch (err) {
    if (request.signal?.aborted || isExpected(err, PeerUnavailable)) return { kind: 'away' };
    // JSON.parse throws SyntaxError.
    if (!isExpected(err, Unreadable, SyntaxError))
      log.bug({ err, node: nodeId }, 'the answer of a node cannot be read');
    return { kind: 'refused', status, problem: printable(`its answer cannot be read: ${messageOf(err)}`) };
  }
}

function read<T extends z.ZodType>(json: unknown, schema: T): z.output<T> {
  const { success, data, error } = schema.safeParse(json);
  if (success) return data;
  const issue = error.issues[0] as z.core.$ZodIssue;
  throw new Unreadable(`${issue.path.join('.')}: ${issueWords(issue)}`);
}

/** Of a problem (RFC 9457). */
function detailOf(json: unknown): string {
  const { detail } = (json ?? {}) as { readonly detail?: unknown };
  return typeof detail === 'string' ? printable(detail) : 'it gave no reason';
}
