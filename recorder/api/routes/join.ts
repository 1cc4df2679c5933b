// The routes of a member for servers without a certificate: the CA of the cluster, and joining it. Members get the keys of the cluster, and,
// from a server with a vote, their next certificate.

import { randomUUID } from 'node:crypto';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { ApiError as StoreError } from '../../../base/kubernetes/api-error.ts';
import type { Clock } from '../../../base/clock.ts';
import { RequestError } from '../../../base/error.ts';
import { AdmissionError, type Admission } from '../../certificates/admission.ts';
import { AUTHORITIES_PATH, CERTIFICATE_PATH, JOIN_PATH, KEYS_PATH } from '../../certificates/ask-to-join.ts';
import { IssueError, NoKeyError, type Issuer } from '../../certificates/issuer.ts';
import { tell } from '../../http/audit.ts';
import { FailedAttempts, networkOf } from '../../http/failed-attempts.ts';
import { memberIn } from '../../http/member-certificate.ts';
import { ApiError } from '../../http/problem.ts';
import { NodeID } from '../node-id.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** On the listener for members: clients without a certificate may call it. */
    isForStrangers?: boolean;
  }
}

export interface Joining {
  readonly admission: Pick<Admission, 'admit'>;
  readonly issuer: Pick<Issuer, 'issue'>;
  /** Of the cluster, for members that lack some. */
  readonly keys: { readonly text: string };
  /** CA certificates, PEM; undefined until there are any. */
  readonly authorities: () => string | undefined;
}

interface JoinOptions {
  readonly joining: Joining;
  readonly clock: Clock;
}

const Renewal = z.strictObject({
  /** PKCS #10, PEM. */
  request: z.string().max(8_192),
  names: z.array(z.string().max(253)).max(64),
});
const Request = z.strictObject({ token: z.string().max(200), node_id: NodeID, ...Renewal.shape });

/** The answer to what the store, or another server, does not allow now. Rethrows other errors. */
function refuse(err: unknown): never {
  if (err instanceof NoKeyError) throw new ApiError(503, 'cluster-unavailable', err.message);
  if (err instanceof IssueError) throw new ApiError(409, 'membership-conflict', err.message);
  if (err instanceof StoreError) throw new ApiError(503, 'cluster-unavailable', err.message, { cause: err });
  throw err;
}

export const joinRoutes: FastifyPluginAsyncZod<JoinOptions> = async (app, { joining, clock }) => {
  const { admission, issuer, authorities, keys } = joining;
  const attempts = new FailedAttempts(clock);

  app.get(AUTHORITIES_PATH, { config: { isForStrangers: true } }, async () => {
    const bundle = authorities();
    if (bundle === undefined) throw new ApiError(503, 'cluster-unavailable', 'this node has no CA yet');
    return { authorities: bundle };
  });

  app.get(KEYS_PATH, async () => ({ keys: keys.text }));

  app.post(CERTIFICATE_PATH, { config: { audit: 'renew-certificate' }, schema: { body: Renewal } }, async (request) => {
    // The certificate that it has says which node asks: nobody gets one for another node.
    const nodeId = memberIn(request.raw) ?? '';
    tell(request, { node: nodeId });
    try {
      return await issuer.issue({ nodeId, ...request.body });
    } catch (err) {
      if (err instanceof RequestError) throw new ApiError(400, 'invalid-request', `request: ${err.message}`);
      return refuse(err);
    }
  });

  app.post(
    JOIN_PATH,
    { config: { isForStrangers: true, audit: 'join-cluster' }, schema: { body: Request } },
    async (request) => {
      const { token, node_id: nodeId, request: csr, names } = request.body;
      tell(request, { node: nodeId });
      const network = networkOf(request.ip);
      if (attempts.isSpent(network)) {
        const seconds = String(Math.ceil(attempts.waitMs(network) / 1000));
        const detail = `too many wrong tokens: try again in ${seconds} seconds`;
        throw new ApiError(429, 'too-many-attempts', detail, { headers: { 'retry-after': seconds } });
      }
      try {
        const asked = { token, nodeId, request: csr, names };
        const isPassedOn = memberIn(request.raw) !== undefined;
        const { clusterId, ...admitted } = await admission.admit(asked, { isPassedOn });
        return { ...admitted, cluster_id: clusterId };
      } catch (err) {
        if (err instanceof AdmissionError) {
          // Every attempt counts, also with the same token: no honest client tries a token twice.
          if (err.code === 'wrong-token') attempts.add(network, randomUUID());
          throw err.code === 'wrong-token'
            ? new ApiError(403, 'forbidden', err.message)
            : new ApiError(400, 'invalid-request', err.message);
        }
        return refuse(err);
      }
    },
  );
};
