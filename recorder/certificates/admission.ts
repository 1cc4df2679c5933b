// Lets servers into the cluster: makes a join token for a node, and later gives the server that brings the token its certificate.

import { CodedError, RequestError } from '../../base/error.ts';
import { NoKeyError, type IssueRequest, type Issuer } from './issuer.ts';
import type { JoinTokens } from './join-tokens.ts';
import { readCluster, readKeys, type NodeFiles } from './node-files.ts';

export interface JoinRequest extends IssueRequest {
  readonly token: string;
}

/** What a new member gets. Certificates are PEM; `keys` is the text of its file of keys. */
export interface Admitted {
  readonly certificate: string;
  readonly authorities: string;
  readonly keys: string;
  readonly clusterId: string;
  readonly pool: string;
  /** Client URLs of etcd. */
  readonly members: readonly string[];
}

interface Invitation {
  readonly token: string;
  readonly untilMs: number;
}

/** `wrong-token`: the token is wrong, has expired, was used or is for another node. */
export class AdmissionError extends CodedError<'wrong-token' | 'invalid-request'> {
  override readonly name = 'AdmissionError';
}

interface AdmissionOptions {
  readonly issuer: Issuer;
  readonly tokens: JoinTokens;
  readonly files: NodeFiles;
  readonly pool: string;
  readonly members: () => readonly string[];
  /** Asks a server with a vote, which checks and uses the token. Throws AdmissionError, and IssueError if none can be asked. */
  readonly admitElsewhere: (request: JoinRequest) => Promise<Admitted>;
}

export class Admission {
  readonly #options: AdmissionOptions;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** A token with which one server joins as `nodeId`. Throws ApiError and IssueError. */
  async invite(nodeId: string): Promise<Invitation> {
    const { signer } = await this.#options.issuer.trust();
    return this.#options.tokens.make(nodeId, signer);
  }

  /**
   * `isPassedOn`: another member has asked for the server that joins. Throws AdmissionError, and ApiError and IssueError while the store cannot
   * be used.
   */
  async admit({ token, ...request }: JoinRequest, { isPassedOn = false } = {}): Promise<Admitted> {
    const { issuer, tokens, files, pool, members, admitElsewhere } = this.#options;
    const found = await tokens.find(token, request.nodeId);
    if (!found) throw wrongToken();
    const [keys, cluster] = await Promise.all([readKeys(files), readCluster(files)]);
    let issued;
    try {
      issued = await issuer.issue(request);
    } catch (cause) {
      if (cause instanceof NoKeyError && !isPassedOn) return admitElsewhere({ token, ...request });
      if (!(cause instanceof RequestError)) throw cause;
      throw new AdmissionError('invalid-request', `request: ${cause.message}`, { cause });
    }
    // Last, so that a request that is refused does not use the token up; but before the answer, so that the token works only once.
    if (!(await found.use())) throw wrongToken();
    return { ...issued, keys, clusterId: cluster?.clusterId ?? '', pool, members: members() };
  }
}

const wrongToken = (): AdmissionError =>
  new AdmissionError('wrong-token', 'the token is wrong, has expired, was used, or is for another node');
