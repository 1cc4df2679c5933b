// The other servers of a cluster, as the store names them, asked over TLS between members.

import { z } from 'zod';
import type { Log } from '../../base/log.ts';
import { shortRequest } from '../../base/short-request.ts';
import { nodeIdentity } from '../../crds/names.ts';
import { nodesPath, type StoreApi } from '../certificates/secrets.ts';
import { memberTls, type MutualTls } from '../peers/identity.ts';

const MAX_ANSWER_BYTES = 256 * 1024;

const Node = z.object({
  metadata: z.object({ name: z.string() }),
  spec: z.object({ role: z.string().optional(), peerAddress: z.url().optional() }),
});

export interface MembersOptions {
  readonly api: Pick<StoreApi, 'list'>;
  readonly namespace: string;
  readonly pool: string;
  readonly nodeId: string;
  readonly own: () => MutualTls;
  readonly log: Log;
}

interface Question {
  readonly method: 'GET' | 'POST';
  readonly body?: object;
  readonly timeoutMs: number;
}

interface OtherMember {
  readonly name: string;
  readonly isVoter: boolean;
  /** Rejects if the server cannot be reached, or has not the certificate of this member. */
  readonly ask: (path: string, question: Question) => ReturnType<typeof shortRequest>;
}

/** Those with an address. Throws ApiError. */
export async function* otherMembers(options: MembersOptions): AsyncGenerator<OtherMember> {
  const { api, namespace, pool, nodeId, own } = options;
  const { items } = await api.list(nodesPath(namespace));
  for (const item of items) {
    const { metadata, spec } = Node.parse(item);
    const { name } = metadata;
    const { peerAddress, role } = spec;
    if (name === nodeId || peerAddress === undefined) continue;
    yield {
      name,
      isVoter: role === 'Voter',
      ask: async (path, question) =>
        shortRequest(new URL(path, peerAddress), {
          ...question,
          tls: memberTls(own(), nodeIdentity(namespace, pool, name)),
          maxBytes: MAX_ANSWER_BYTES,
        }),
    };
  }
}
