// Reads the claims of a Kubernetes token (JWT, RFC 7519 §4.1) without verifying them: enough to refuse a token, never to
// accept one.

import { parseJson } from '../../base/parse-json.ts';

export interface TokenClaims {
  readonly subject: string;
  readonly audiences: readonly string[];
  /** Expiry in seconds since 1970; undefined for a token without one. */
  readonly expires: number | undefined;
}

/** Undefined for text that is not such a token. */
export function claimsOf(token: string): TokenClaims | undefined {
  const [, payload, signature, ...more] = token.split('.');
  if (!payload || !signature || more.length > 0) return undefined;
  const claims = parseJson(Buffer.from(payload, 'base64url').toString('utf8'));
  if (typeof claims !== 'object' || claims === null) return undefined;
  const { iss, sub, aud, exp } = claims as Readonly<Record<string, unknown>>;
  if (typeof iss !== 'string' || typeof sub !== 'string') return undefined;
  const audiences = (Array.isArray(aud) ? (aud as readonly unknown[]) : [aud]).filter((one) => typeof one === 'string');
  return { subject: sub, audiences, expires: typeof exp === 'number' ? exp : undefined };
}
