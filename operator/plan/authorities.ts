// When a pool's CA is made, when the next one, and which of them signs; what a node's certificate is made from. Pure.
// Authorities overlap: the next one is published before it signs, so that everybody trusts it by then.

import { createHash } from 'node:crypto';
import { DAY_MS, HOUR_MS } from '../../base/units.ts';

/** Both PEM, with the time of its making and its end; milliseconds since 1970. */
export interface KeptAuthority {
  readonly certificate: string;
  readonly key: string;
  readonly fromMs: number;
  readonly toMs: number;
}

export const AUTHORITY_LIFE_MS = 10 * 365 * DAY_MS;
/** Nodes renew long before: none has a certificate that outlives its CA. */
const NEXT_BEFORE_MS = 3 * 365 * DAY_MS;
/** Published for so long before it signs. */
const PUBLISHED_MS = DAY_MS;
export const LEAF_LIFE_MS = 90 * DAY_MS;
const RENEW_BEFORE_MS = 30 * DAY_MS;
/** Clocks of others may be behind. */
export const BACKDATED_MS = HOUR_MS;

/** Those that still count, the newest last. */
export const valid = (all: readonly KeptAuthority[], nowMs: number): readonly KeptAuthority[] =>
  all.filter(({ toMs }) => toMs > nowMs).sort((a, b) => a.fromMs - b.fromMs);

export function needsNext(all: readonly KeptAuthority[], nowMs: number): boolean {
  const newest = valid(all, nowMs).at(-1);
  return newest === undefined || newest.toMs - nowMs < NEXT_BEFORE_MS;
}

/** Undefined when there is none. */
export function signerOf(all: readonly KeptAuthority[], nowMs: number): KeptAuthority | undefined {
  const now = valid(all, nowMs);
  return now.findLast(({ fromMs }) => nowMs - fromMs >= PUBLISHED_MS) ?? now[0];
}

/** What clients trust: PEM. */
export const bundleOf = (all: readonly KeptAuthority[], nowMs: number): string =>
  valid(all, nowMs)
    .map(({ certificate }) => certificate)
    .join('');

/** Another one when anything differs that a certificate is made from. */
export const madeFrom = (request: string, names: readonly string[], signer: KeptAuthority, bundle: string): string =>
  createHash('sha256')
    .update(JSON.stringify([request, [...names].sort(), signer.certificate, bundle]))
    .digest('hex')
    .slice(0, 16);

export const isLeafDue = (endsMs: number, nowMs: number): boolean => endsMs - nowMs < RENEW_BEFORE_MS;
