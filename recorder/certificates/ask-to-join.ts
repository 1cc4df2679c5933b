// The side of a server that joins a cluster: it recognises a member by the fingerprint in its token before it shows the token,
// makes its key, and gets a certificate for it.

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { request, type RequestOptions } from 'node:https';
import { isIP } from 'node:net';
import type { PeerCertificate } from 'node:tls';
import { z } from 'zod';
import { errorCode } from '../../base/error.ts';
import { hostInUrl, hostOfUrl } from '../../base/host.ts';
import { readBody } from '../../base/http-answer.ts';
import { MAX_NAMES } from './issuer.ts';
import { pinnedIn, type JoinToken, formatJoinToken } from './join-token.ts';
import { KeyRing } from './key-ring.ts';
import type { MemberContent } from './node-files.ts';

/** Paths on the listener for members. Whoever has no certificate yet may call them. */
export const AUTHORITIES_PATH = '/cluster/authorities';
export const JOIN_PATH = '/cluster/join';

const TIMEOUT_MS = 15_000;
const MAX_ANSWER_BYTES = 256 * 1024;

const pem = z.string().max(65_536);
const Authorities = z.object({ authorities: pem });
const Answer = z.object({
  certificate: pem,
  authorities: pem,
  keys: z.string().max(65_536),
  cluster_id: z.uuid(),
  pool: z.string(),
  members: z.array(z.url()),
});
const Refusal = z.object({ detail: z.string() });

interface JoinOptions {
  /** Of the listener for members of a member. */
  readonly address: { readonly host: string; readonly port: number };
  readonly token: JoinToken;
  readonly nodeId: string;
  /** Host names and addresses of this server. */
  readonly names: readonly string[];
}

/** The cluster did not let the server in; the message says why. */
export class JoinError extends Error {
  override readonly name = 'JoinError';
}

interface Joined extends MemberContent {
  readonly pool: string;
}

/** Throws JoinError. */
export async function askToJoin({ address, token, nodeId, names }: JoinOptions): Promise<Joined> {
  const place = `${hostInUrl(address.host)}:${address.port}`;
  // Nothing is believed that comes over this connection, except the one certificate whose fingerprint the token has.
  const { authorities } = await ask(
    place,
    Authorities,
    { method: 'GET', path: AUTHORITIES_PATH },
    { rejectUnauthorized: false },
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
  const answer = await ask(
    place,
    Answer,
    { method: 'POST', path: JOIN_PATH, body: JSON.stringify(body) },
    { ca: pinned, checkServerIdentity: ofAnyMember },
  );
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

/** The CA signs members only, and any of them may be reached at an address that its certificate does not name. */
const ofAnyMember = (_host: string, { subjectaltname = '' }: PeerCertificate): Error | undefined =>
  subjectaltname.includes('URI:kube-nvr://') ? undefined : new Error('the certificate is not of a member');

function requireUsable(
  { certificate, authorities }: z.output<typeof Answer>,
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
  readonly body?: string;
}

async function ask<T>(place: string, schema: z.ZodType<T>, question: Question, tls: RequestOptions): Promise<T> {
  let answer;
  try {
    answer = await send(place, question, tls);
  } catch (cause) {
    if (cause instanceof JoinError) throw cause;
    throw new JoinError(`${place} cannot be asked: ${errorCode(cause) ?? (cause as Error).message}`, { cause });
  }
  const { status, text } = answer;
  const value = jsonIn(text);
  if (status !== 200) {
    const said = Refusal.safeParse(value).data?.detail ?? `it answered ${status}`;
    throw new JoinError(`${place} refused: ${said}`);
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new JoinError(`${place} did not answer as a member of a cluster does`);
  return parsed.data;
}

async function send(
  place: string,
  { method, path, body }: Question,
  tls: RequestOptions,
): Promise<{ readonly status: number | undefined; readonly text: string }> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number | undefined; text: string }>();
  const url = new URL(`https://${place}${path}`);
  const sent = request(
    url,
    {
      ...tls,
      method,
      signal,
      agent: false,
      // A name that is an address must not be sent (RFC 6066 §3).
      servername: isIP(hostOfUrl(url)) ? '' : url.hostname,
      ...(body !== undefined && {
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
      }),
    },
    (response) => {
      const tooLong = (): Error => new JoinError(`${place} did not answer as a member of a cluster does`);
      readBody(response, MAX_ANSWER_BYTES, tooLong).then(
        (bytes) => resolve({ status: response.statusCode, text: bytes.toString('utf8') }),
        reject,
      );
    },
  );
  sent.on('error', (err) => reject(signal.aborted ? new JoinError(`${place} did not answer in time`) : err));
  sent.end(body);
  return promise;
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
