// Asks the other servers of a cluster for the keys that encrypt its Secrets, over TLS between members.

import { z } from 'zod';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import { shortRequest } from '../../base/short-request.ts';
import { nodeIdentity } from '../../crds/names.ts';
import { KEYS_PATH } from '../certificates/ask-to-join.ts';
import { nodesPath, type StoreApi } from '../certificates/secrets.ts';
import { memberTls, type MutualTls } from '../peers/identity.ts';

const TIMEOUT_MS = 3_000;
const MAX_ANSWER_BYTES = 256 * 1024;

const Answer = z.object({ keys: z.string().max(65_536) });
const Node = z.object({
  metadata: z.object({ name: z.string() }),
  spec: z.object({ peerAddress: z.url().optional() }),
});

interface KeysOptions {
  readonly api: Pick<StoreApi, 'list'>;
  readonly namespace: string;
  readonly pool: string;
  readonly nodeId: string;
  readonly own: () => MutualTls;
  readonly log: Log;
}

/** The text of the file of keys from each member that answers, one after the other. Throws ApiError. */
export async function* keysOfMembers({ api, namespace, pool, nodeId, own, log }: KeysOptions): AsyncGenerator<string> {
  const { items } = await api.list(nodesPath(namespace));
  for (const item of items) {
    const { metadata, spec } = Node.parse(item);
    if (metadata.name === nodeId || spec.peerAddress === undefined) continue;
    try {
      const { status, value } = await shortRequest(new URL(KEYS_PATH, spec.peerAddress), {
        method: 'GET',
        tls: memberTls(own(), nodeIdentity(namespace, pool, metadata.name)),
        timeoutMs: TIMEOUT_MS,
        maxBytes: MAX_ANSWER_BYTES,
      });
      if (status === 200) yield Answer.parse(value).keys;
    } catch (err) {
      log.debug({ node: metadata.name, problem: messageOf(err) }, 'a member did not give the keys of the cluster');
    }
  }
}
