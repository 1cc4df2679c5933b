// Asks the other servers with a vote for what only these can do, over TLS between members: they have the key of the CA.

import { z } from 'zod';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import { shortRequest } from '../../base/short-request.ts';
import { nodeIdentity } from '../../crds/names.ts';
import { AdmissionError, type Admitted, type JoinRequest } from '../certificates/admission.ts';
import { CERTIFICATE_PATH, IssuedAnswer, JOIN_PATH, JoinAnswer } from '../certificates/ask-to-join.ts';
import { IssueError, type Issued, type IssueRequest } from '../certificates/issuer.ts';
import { nodesPath, type StoreApi } from '../certificates/secrets.ts';
import { memberTls, type MutualTls } from '../peers/identity.ts';

const TIMEOUT_MS = 5_000;
const MAX_ANSWER_BYTES = 256 * 1024;

const Node = z.object({
  metadata: z.object({ name: z.string() }),
  spec: z.object({ role: z.string().optional(), peerAddress: z.url().optional() }),
});
const Refusal = z.object({ detail: z.string() });

interface VotersOptions {
  readonly api: Pick<StoreApi, 'list'>;
  readonly namespace: string;
  readonly pool: string;
  /** This server. */
  readonly nodeId: string;
  readonly own: () => MutualTls;
  readonly log: Log;
}

interface Refused {
  readonly status: number;
  readonly detail: string;
}

export class OtherVoters {
  readonly #options: VotersOptions;

  constructor(options: VotersOptions) {
    this.#options = options;
  }

  /** A certificate for this server. Throws ApiError and IssueError. */
  async issue({ request, names }: IssueRequest): Promise<Issued> {
    return this.#ask(CERTIFICATE_PATH, { request, names }, IssuedAnswer, ({ detail }) => new IssueError(detail));
  }

  /** Lets another server in by its token. Throws AdmissionError, ApiError and IssueError. */
  async admit({ token, nodeId, request, names }: JoinRequest): Promise<Admitted> {
    const body = { token, node_id: nodeId, request, names };
    const { cluster_id: clusterId, ...admitted } = await this.#ask(JOIN_PATH, body, JoinAnswer, toAdmissionError);
    return { ...admitted, clusterId };
  }

  /** The first answer. A server that cannot be asked, or has no key either (503), is passed over. */
  async #ask<T>(path: string, body: object, schema: z.ZodType<T>, refusal: (refused: Refused) => Error): Promise<T> {
    const { api, namespace, pool, nodeId, own, log } = this.#options;
    const { items } = await api.list(nodesPath(namespace));
    for (const { metadata, spec } of items.map((item) => Node.parse(item))) {
      const { name } = metadata;
      if (name === nodeId || spec.role !== 'Voter' || spec.peerAddress === undefined) continue;
      let answer;
      try {
        answer = await shortRequest(new URL(path, spec.peerAddress), {
          method: 'POST',
          body,
          tls: memberTls(own(), nodeIdentity(namespace, pool, name)),
          timeoutMs: TIMEOUT_MS,
          maxBytes: MAX_ANSWER_BYTES,
        });
      } catch (err) {
        log.debug({ node: name, problem: messageOf(err) }, 'a server with a vote cannot be asked');
        continue;
      }
      const { status, value } = answer;
      if (status === 200) return schema.parse(value);
      const detail = Refusal.safeParse(value).data?.detail ?? `${name} answered ${status}`;
      if (status < 500) throw refusal({ status, detail });
      log.debug({ node: name, problem: detail }, 'a server with a vote cannot be asked');
    }
    throw new IssueError('no server with a vote can be asked now for a certificate');
  }
}

const toAdmissionError = ({ status, detail }: Refused): Error =>
  status === 403 || status === 400
    ? new AdmissionError(status === 403 ? 'wrong-token' : 'invalid-request', detail)
    : new IssueError(detail);
