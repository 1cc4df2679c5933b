// Asks the other servers with a vote for what only these can do: they have the key of the CA.

import { z } from 'zod';
import { messageOf } from '../../base/error.ts';
import { AdmissionError, type Admitted, type JoinRequest } from '../certificates/admission.ts';
import { CERTIFICATE_PATH, IssuedAnswer, JOIN_PATH, JoinAnswer } from '../certificates/ask-to-join.ts';
import { IssueError, type Issued, type IssueRequest } from '../certificates/issuer.ts';
import { otherMembers, type MembersOptions } from './other-members.ts';

const TIMEOUT_MS = 5_000;

const Refusal = z.object({ detail: z.string() });

interface Refused {
  readonly status: number;
  readonly detail: string;
}

export class OtherVoters {
  readonly #options: MembersOptions;

  constructor(options: MembersOptions) {
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
    const { log } = this.#options;
    for await (const { name, isVoter, ask } of otherMembers(this.#options)) {
      if (!isVoter) continue;
      let answer;
      try {
        answer = await ask(path, { method: 'POST', body, timeoutMs: TIMEOUT_MS });
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
