// Reads complete answers of other nodes, for what this node collects from all of them.

import { readBody } from '../../base/http-answer.ts';
import type { Asker, PeerCaller, PeerRequest, PeerSender } from './peer-requests.ts';

/** A caller that may see this camera and nothing else. */
export const viewerOf = ({ name, credential }: Asker, cameraId: string): PeerCaller & { readonly kind: 'viewer' } => ({
  kind: 'viewer',
  name,
  cameras: [cameraId],
  credential,
});

/**
 * What `parse` makes of an answer with status 200. Undefined if the node does not answer, or its answer cannot be
 * parsed: the caller then reports what is missing.
 */
export async function wholeAnswer<T>(
  peers: Pick<PeerSender, 'request'>,
  nodeId: string,
  request: PeerRequest,
  maxBytes: number,
  parse: (text: string) => T,
): Promise<T | undefined> {
  try {
    const { status, body } = await peers.request(nodeId, request);
    const text = (await readBody(body, maxBytes, () => new Error('the answer is too long'))).toString();
    return status === 200 ? parse(text) : undefined;
  } catch {
    return undefined;
  }
}
