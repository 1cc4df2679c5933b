// The side of a server that joins a cluster: it recognises a member by the fingerprint in its token before it shows the token,
// makes its key, and gets a certificate for it.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { RequestOptions } from 'node:https';
import type { PeerCertificate } from 'node:tls';
import { z } from 'zod';
import type { Clock } from '../../base/clock.ts';
import { errorCode, messageOf } from '../../base/error.ts';
import { hostInUrl } from '../../base/host.ts';
import { patiently } from '../../base/patiently.ts';
import { shortRequest } from '../../base/short-request.ts';
import { MAX_NAMES } from './issuer.ts';
import { pinnedIn, type JoinToken, formatJoinToken } from './join-token.ts';
import { KeyRing } from './key-ring.ts';
import type { MemberContent } from './node-files.ts';

/** Paths on the listener for members. Clients without a certificate may call them. */
export const AUTHORITIES_PATH = '/cluster/authorities';
export const JOIN_PATH = '/cluster/join';
/** Only members may call these. */
export const KEYS_PATH = '/cluster/keys';
export const CERTIFICATE_PATH = '/cluster/certificate';

const TIMEOUT_MS = 15_000;
/** Etcd does not answer while it chooses a leader, as after a server has joined. */
const PATIENCE_MS = 60_000;
const RETRY_MS = 1_000;
const MAX_ANSWER_BYTES = 256 * 1024;

const pem = z.string().max(65_536);
const Authorities = z.object({ authorities: pem });
export const IssuedAnswer = z.object({ certificate: pem, authorities: pem });
export const JoinAnswer = IssuedAnswer.extend({
  keys: z.string().max(65_536),
  cluster_id: z.uuid(),
  pool: z.string(),
  members: z.array(z.url()),
});
const Refusal = z.object({ detail: z.string() });

interface JoinOptions {
  /** The address of a member's listener for members. */
  readonly address: { readonly host: string; readonly port: number };
  readonly token: JoinToken;
  readonly nodeId: string;
  /** Host names and addresses of this server. */
  readonly names: readonly string[];
  readonly clock: Clock;
}

/** The cluster did not let the server in; the message says why. */
export class JoinError extends Error {
  override readonly name = 'JoinError';
  /** The store of the cluster is away: the member may let the server in soon. */
  readonly mayPass: boolean;

  constructor(
    message: string,
    { mayPass = false, cause }: { readonly mayPass?: boolean; readonly cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.mayPass = mayPass;
  }
}

interface JoinedMember extends MemberContent {
  readonly pool: string;
}

/** Throws JoinError. */
export async function askToJoin({ address, token, nodeId, names, clock }: JoinOptions): Promise<JoinedMember> {
  const place = `${hostInUrl(address.host)}:${address.port}`;
  const mayPass = (err: unknown): boolean => err instanceof JoinError && err.mayPass;
  const again = { mayPass, forMs: PATIENCE_MS, everyMs: RETRY_MS, clock };
  // From this connection only the certificate whose fingerprint is in the token is trusted.
  const { authorities } = await patiently(
    () => ask(place, Authorities, { method: 'GET', path: AUTHORITIES_PATH }, { rejectUnauthorized: false }),
    again,
  );
  const pinned = pinnedIn(authorities, token.fingerprint);
  if (pinned === undefined) {
    throw new JoinError(`${place} is not a member of the cluster of this token: its CA has another fingerprint`);
  }
  const { newKey, newRequest } = await import('../../base/x509.ts');
  const key = newKey();
  const body = {
    token: formatJoinToken(token),
    node_id: nodeId,
    request: await newRequest(key),
    names: names.slice(0, MAX_NAMES),
  };
  const tls = { ca: pinned, checkServerIdentity: ofAnyMember };
  const answer = await patiently(() => ask(place, JoinAnswer, { method: 'POST', path: JOIN_PATH, body }, tls), again);
  requireUsable(answer, pinned, key, nodeId);
  KeyRing.parse(answer.keys);
  return {
    key,
    certificate: answer.certificate,
    authorities: answer.authorities,
    keys: answer.keys,
    cluster: { version: 1, clusterId: answer.cluster_id, initial: 'join', members: answer.members },
    pool: answer.pool,
  };
}

/** Checks only that it is a member: members may be reached at addresses that their certificates do not name. */
const ofAnyMember = (_host: string, { subjectaltname = '' }: PeerCertificate): Error | undefined =>
  subjectaltname.includes('URI:kube-nvr://') ? undefined : new Error('the certificate is not of a member');

function requireUsable(
  { certificate, authorities }: z.output<typeof JoinAnswer>,
  pinned: string,
  key: string,
  nodeId: string,
): void {
  const issued = new X509Certificate(certificate);
  const isSigned = authorities.includes(pinned.trim()) && issued.verify(new X509Certificate(pinned).publicKey);
  if (isSigned && issued.checkPrivateKey(createPrivateKey(key)) && issued.checkHost(nodeId) !== undefined) return;
  throw new JoinError('the certificate that the member gave is not one for this node');
}

interface Question {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: object;
}

async function ask<T>(
  place: string,
  schema: z.ZodType<T>,
  { path, ...question }: Question,
  tls: RequestOptions,
): Promise<T> {
  let answer;
  try {
    const url = new URL(`https://${place}${path}`);
    answer = await shortRequest(url, { ...question, tls, timeoutMs: TIMEOUT_MS, maxBytes: MAX_ANSWER_BYTES });
  } catch (cause) {
    throw new JoinError(`${place} cannot be asked: ${errorCode(cause) ?? messageOf(cause)}`, { cause });
  }
  const { status, value } = answer;
  if (status !== 200) {
    const said = Refusal.safeParse(value).data?.detail ?? `it answered ${status}`;
    throw new JoinError(`${place} refused: ${said}`, { mayPass: status === 503 });
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new JoinError(`${place} did not answer as a member of a cluster does`);
  return parsed.data;
}
