// The CAs of a cluster: when the next one is made, which one signs, when a node's certificate must be renewed, and how a Secret
// keeps them. The CAs overlap: the next one is published before it signs, so that every client trusts it by then.

import { createHash, hash, X509Certificate } from 'node:crypto';
import { DAY_MS, HOUR_MS } from './units.ts';

/** A CA as everybody may know it: PEM, with the start and end of its validity in milliseconds since 1970. */
export interface PublicAuthority {
  readonly certificate: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** A CA with its key, PEM. */
export interface KeptAuthority extends PublicAuthority {
  readonly key: string;
}

export const AUTHORITY_LIFE_MS = 10 * 365 * DAY_MS;
/** Nodes renew their certificates long before this, so no certificate outlives its CA. */
const NEXT_BEFORE_MS = 3 * 365 * DAY_MS;
/** A CA is published this long before it signs. */
const PUBLISHED_MS = DAY_MS;
const LEAF_LIFE_MS = 90 * DAY_MS;
const RENEW_BEFORE_MS = 30 * DAY_MS;
/** Certificates start this long in the past, because clocks of clients may be slow. */
const BACKDATED_MS = HOUR_MS;

/** All CAs with the next one, which is made when it is due; undefined while it is not. */
export async function withNext(
  all: readonly KeptAuthority[],
  commonName: string,
  nowMs: number,
): Promise<readonly KeptAuthority[] | undefined> {
  return needsNext(all, nowMs) ? [...all, await anotherAuthority(commonName, nowMs)] : undefined;
}

/** A new CA, which signs nothing until it was published for long enough. */
export async function anotherAuthority(commonName: string, nowMs: number): Promise<KeptAuthority> {
  const { newAuthority } = await import('./x509.ts');
  const toMs = nowMs + AUTHORITY_LIFE_MS;
  const made = await newAuthority({ commonName, fromMs: nowMs - BACKDATED_MS, toMs });
  return { ...made, fromMs: nowMs, toMs };
}

/** A CA that signs from now on, because every member is known to trust it. */
export const signingNow = <T extends PublicAuthority>(authority: T, nowMs: number): T => ({
  ...authority,
  fromMs: Math.min(authority.fromMs, nowMs - PUBLISHED_MS),
});

/** The name of a CA by its certificate (PEM): hexadecimal digits. */
export const authorityId = (certificate: string): string =>
  hash('sha256', new X509Certificate(certificate).raw, 'hex').slice(0, 16);

/** The certificates in a bundle, each as PEM. */
export const certificatesIn = (bundle: string): readonly string[] =>
  bundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g) ?? [];

/** When a certificate that is signed now begins and ends: never later than its CA. */
export const leafTimes = (
  signer: PublicAuthority,
  nowMs: number,
): { readonly fromMs: number; readonly toMs: number } => ({
  fromMs: nowMs - BACKDATED_MS,
  toMs: Math.min(nowMs + LEAF_LIFE_MS, signer.toMs),
});

/** The CAs in the data of a Secret, by the name of their cluster. */
export const authoritiesIn = <T extends PublicAuthority = KeptAuthority>(data: unknown): Map<string, readonly T[]> =>
  new Map(
    Object.entries((data ?? {}) as Readonly<Record<string, string>>).map(([name, value]) => [
      name,
      JSON.parse(Buffer.from(value, 'base64').toString('utf8')) as readonly T[],
    ]),
  );

/** The inverse of `authoritiesIn`. */
export const authoritiesData = (kept: ReadonlyMap<string, readonly PublicAuthority[]>): Record<string, string> =>
  Object.fromEntries([...kept].map(([name, all]) => [name, Buffer.from(JSON.stringify(all)).toString('base64')]));

/** The name of the CAs of a pool in that Secret: names contain no underscore, so it is unique. */
export const authoritiesName = (namespace: string, pool: string): string => `${namespace}_${pool}`;

/** The CAs that have not expired, newest last. */
const valid = <T extends PublicAuthority>(all: readonly T[], nowMs: number): readonly T[] =>
  all.filter(({ toMs }) => toMs > nowMs).sort((a, b) => a.fromMs - b.fromMs);

export function needsNext(all: readonly PublicAuthority[], nowMs: number): boolean {
  const newest = valid(all, nowMs).at(-1);
  return newest === undefined || newest.toMs - nowMs < NEXT_BEFORE_MS;
}

/** The CA that signs now; undefined if there is none. */
export function signerOf<T extends PublicAuthority>(all: readonly T[], nowMs: number): T | undefined {
  const now = valid(all, nowMs);
  return now.findLast(({ fromMs }) => nowMs - fromMs >= PUBLISHED_MS) ?? now[0];
}

/** The CAs that clients trust, as PEM. */
export const bundleOf = (all: readonly PublicAuthority[], nowMs: number): string =>
  valid(all, nowMs)
    .map(({ certificate }) => certificate)
    .join('');

/** A digest of everything that a certificate is made from; when it changes, a new certificate is needed. */
export const madeFrom = (request: string, names: readonly string[], signer: PublicAuthority, bundle: string): string =>
  createHash('sha256')
    .update(JSON.stringify([request, [...names].sort(), signer.certificate, bundle]))
    .digest('hex')
    .slice(0, 16);

export const isLeafDue = (endsMs: number, nowMs: number): boolean => endsMs - nowMs < RENEW_BEFORE_MS;
