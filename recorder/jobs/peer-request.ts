// One GET to another recorder: bounded in time, only to members of the cluster, also where it is redirected.

import type { IncomingMessage } from 'node:http';
import { request as requestHttp } from 'node:http';
import { request as requestHttps, type RequestOptions } from 'node:https';
import { getCACertificates, type PeerCertificate } from 'node:tls';
import { isRedirect } from '../../base/http-answer.ts';
import { memberOf, hostPort, type Member, type Scheme } from './members.ts';

/** `passing`: the same question may be answered later. */
export class PeerFailure extends Error {
  readonly passing: boolean;

  constructor(message: string, { passing = false, cause }: { passing?: boolean; cause?: unknown } = {}) {
    super(message, { cause });
    this.name = 'PeerFailure';
    this.passing = passing;
  }
}

export interface MutualTls {
  readonly certificate: string;
  readonly key: string;
  readonly ca: string;
}

export interface PeerAccess {
  readonly members: () => readonly Member[];
  /** Of members that do not say. */
  readonly scheme: Scheme;
  /** Certificates to trust beside the system's, PEM. */
  readonly ca?: string;
  /** What this node shows to members that let only members in, and trusts them by; PEM. */
  readonly own?: () => MutualTls | undefined;
  /** Until the answer begins, and while nothing of it comes. */
  readonly silenceMs: number;
}

const MAX_REDIRECTS = 3;

/** The caller reads the answer, or destroys it. Throws PeerFailure, and the signal's reason. */
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
    if (redirects === MAX_REDIRECTS) throw new PeerFailure('it redirects again and again');
  }
}

/**
 * The same of a member that lets only members in: no credential goes there, and it redirects nobody. It is who its
 * certificate says, wherever it is reached.
 */
export function askMember(
  { silenceMs }: PeerAccess,
  { certificate: cert, key, ca }: MutualTls,
  { url, identity }: { readonly url: URL; readonly identity: string },
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const checkServerIdentity = (_host: string, { subjectaltname = '' }: PeerCertificate): Error | undefined =>
    subjectaltname.split(', ').includes(`URI:${identity}`)
      ? undefined
      : Object.assign(new Error(`the certificate is not of ${identity}`), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  return get({ silenceMs, tls: { cert, key, ca, checkServerIdentity } }, url, headers, signal);
}

function redirected({ members, scheme }: PeerAccess, from: URL, location: string | undefined): URL {
  const next = location !== undefined && URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  if (!next) throw new PeerFailure('it redirects to nowhere');
  const member = memberOf(members(), next, scheme);
  if (!member) throw new PeerFailure(`it redirects to ${hostPort(next)}, which is no member of the cluster`);
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
    // A connection of its own: one that was kept may have been closed by a peer that was restarted.
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
  // A certificate that is not trusted now will not be later.
  const passing = !/CERT|SIGNATURE|ALTNAME/.test(code ?? '');
  return new PeerFailure(`the connection failed (${code ?? message})`, { passing, cause: err });
}
