// Marks requests that another member of the cluster sent, on the listener for members. They pass the same routes as all others.

import type { IncomingMessage } from 'node:http';
import { parseJson } from '../../base/parse-json.ts';
import { z } from 'zod';
import { RELAYED_HEADER } from '../peers/peer-requests.ts';
import { inScope } from '../../base/camera-scope.ts';
import type { Caller } from './caller.ts';

interface Relayed {
  /** The member that sent the request. */
  readonly nodeId: string;
  /** The caller as the member states it; undefined: the request carries the caller's own credential. */
  readonly viewer?: StatedCaller | undefined;
}

const RELAYED = Symbol('relayed');

export const markRelayed = (request: IncomingMessage, relayed: Relayed): void =>
  void Object.assign(request, { [RELAYED]: relayed });

/** Undefined for a request of a client. */
export const relayedBy = (request: IncomingMessage): Relayed | undefined =>
  (request as { readonly [RELAYED]?: Relayed })[RELAYED];

/** Whether another node passed the request on: it is not passed on again. A client that sets it harms only itself. */
export const isRelayed = ({ headers }: IncomingMessage): boolean => headers[RELAYED_HEADER] !== undefined;

/**
 * A caller that a member states: it may read, and make the requests of `may`. `everything`: a command on the machine of the member, which
 * the member itself accepts.
 */
export interface StatedCaller extends Caller {
  readonly statedBy: string;
  readonly may: 'export' | 'remove-jobs' | 'everything' | undefined;
  /** Set for a caller of this node's own list, or of the API server, which then decides what the caller may do. */
  readonly of: Statement['of'];
  /** The session of the caller at the member. */
  readonly sessionThere: string | undefined;
}

export const isStated = (caller: Caller): caller is StatedCaller => 'statedBy' in caller;

/** As a TokenReview tells of it. */
const KubernetesUser = z.strictObject({
  username: z.string().min(1).max(1_024),
  uid: z.string().max(1_024).optional(),
  groups: z.array(z.string().max(1_024)).max(1_000).optional(),
  extra: z.record(z.string(), z.array(z.string())).optional(),
});

const Statement = z.object({
  name: z.string().min(1).max(256),
  cameras: z.array(z.string().max(256)).max(1_000),
  may: z.enum(['export', 'remove-jobs', 'everything']).optional(),
  of: z
    .union([
      z.strictObject({ user: z.string() }),
      z.strictObject({ rule: z.string() }),
      z.strictObject({ token: z.string() }),
      z.strictObject({ kubernetes: KubernetesUser }),
    ])
    .optional(),
  session: z.string().max(64).optional(),
});
type Statement = z.output<typeof Statement>;

/** The caller in the header of a member; undefined when it cannot be read. */
export function statedCaller(header: string, nodeId: string): StatedCaller | undefined {
  const { success, data } = Statement.safeParse(parseJson(Buffer.from(header, 'base64url').toString()));
  if (!success) return undefined;
  const { name, cameras, may, of, session } = data;
  return {
    name,
    role: may === 'everything' ? 'admin' : may === 'remove-jobs' ? 'operator' : 'viewer',
    exports: may === 'export',
    seesAll: may === 'everything',
    sees: (cameraId) => inScope(cameras, cameraId),
    statedBy: nodeId,
    may,
    of,
    sessionThere: session,
  };
}
