// Sends one GET request for a part of an assembly to another recorder. It has a timeout, and goes to members of the cluster
// only, also when it is redirected.
//
// `PeerRequests` serves the other requests between nodes. It cannot serve these: a part is at an address that the caller chose
// among the members, and members of `cluster.peers` have no node name; redirects are followed; a member that does not answer is
// asked again for a minute, where `PeerRequests` refuses at once; and a certificate that is not trusted must fail the job at
// the first attempt.

import { request as requestHttp, type IncomingMessage } from 'node:http';
import { request as requestHttps, type RequestOptions } from 'node:https';
import { getCACertificates } from 'node:tls';
import { isRedirect } from '../../base/http-answer.ts';
import { memberTls, type MutualTls } from '../peers/identity.ts';
import type { Member } from '../contract/other-node.ts';
import { memberOf, hostPort, type Scheme } from './members.ts';

/** `passing`: a later attempt may succeed. */
export class PeerFailure extends Error {
  override readonly name = 'PeerFailure';
  readonly passing: boolean;

  constructor(message: string, { passing = false, cause }: { passing?: boolean; cause?: unknown } = {}) {
    super(message, { cause });
    this.passing = passing;
  }
}

export interface PeerAccess {
  readonly members: () => readonly Member[];
  /** The scheme of members whose address has none. */
  readonly scheme: Scheme;
  /** CA certificates in addition to those of the system, PEM. */
  readonly ca?: string;
  /** The certificate that this node presents to listeners for members, and the CA that it trusts there; PEM. */
  readonly own?: () => MutualTls | undefined;
  /** Timeout for the start of the answer, and for a pause within it. */
  readonly silenceMs: number;
}

const MAX_REDIRECTS = 3;

/** The caller must read or destroy the answer. Rejects with PeerFailure, and the signal's reason. */
export async function askPeer(
  access: PeerAccess,
  url: URL,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const { ca, silenceMs } = access;
  const tls = ca ? { ca: [...getCACertificates(), ca] } : {};
  let asked = url;
  for (let redirects = 0; ; redirects++) {
    const answer = await get({ silenceMs, tls }, asked, headers, signal);
    if (!isRedirect(answer.statusCode)) return answer;
    answer.destroy();
    asked = redirected(access, asked, answer.headers.location);
    if (redirects === MAX_REDIRECTS) throw new PeerFailure('it redirects too often');
  }
}

/**
 * The same for a listener that accepts members only: no credential is sent, and it does not redirect. Its certificate must
 * contain the identity of the member, whatever its address is.
 */
export function askMember(
  { silenceMs }: PeerAccess,
  own: MutualTls,
  { url, identity }: { readonly url: URL; readonly identity: string },
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  return get({ silenceMs, tls: memberTls(own, identity) }, url, headers, signal);
}

function redirected({ members, scheme }: PeerAccess, from: URL, location: string | undefined): URL {
  const next = location !== undefined && URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  if (!next) throw new PeerFailure('it redirects without a valid address');
  const member = memberOf(members(), next, scheme);
  if (!member) throw new PeerFailure(`it redirects to ${hostPort(next)}, which is not a member of the cluster`);
  return new URL(`${next.pathname}${next.search}`, member);
}

function get(
  { tls, silenceMs }: { readonly tls: RequestOptions; readonly silenceMs: number },
  url: URL,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const request = url.protocol === 'https:' ? requestHttps : requestHttp;
    // A new connection: a kept-alive one may have been closed by a restart of the peer.
    const asking = request(url, {
      headers,
      agent: false,
      signal,
      timeout: silenceMs,
      ...tls,
    });
    asking.once('response', resolve);
    asking.once('timeout', () => asking.destroy(new PeerFailure('it does not answer', { passing: true })));
    asking.once('error', (err) => {
      if (signal.aborted) reject(signal.reason as Error);
      else reject(err instanceof PeerFailure ? err : unreachable(err));
    });
    asking.end();
  });
}

export function unreachable(err: unknown): PeerFailure {
  const { code, message } = err as NodeJS.ErrnoException;
  // A certificate that is not trusted now will not be trusted later.
  const passing = !/CERT|SIGNATURE|ALTNAME/.test(code ?? '');
  return new PeerFailure(`the connection failed (${code ?? message})`, { passing, cause: err });
}
