// Refuses credentials: the errors for callers, the limit of wrong guesses for each address, and the entries in log and
// metrics.

import type { FastifyRequest } from 'fastify';
import type { Clock } from '../../base/clock.ts';
import type { AuthFailure, AuthFailures } from './auth-failures.ts';
import { FailedAttempts } from './failed-attempts.ts';
import { ApiError } from './problem.ts';

export class Refusals {
  readonly attempts: FailedAttempts;
  readonly #failures: AuthFailures;

  constructor(clock: Clock, failures: AuthFailures) {
    this.attempts = new FailedAttempts(clock);
    this.#failures = failures;
  }

  /** `error`, counted. */
  of(reason: AuthFailure, request: FastifyRequest, error: ApiError): ApiError {
    this.#failures.count(reason, request);
    return error;
  }

  /** For callers who must wait; `key` is that of their attempts. */
  heldOff(key: string, request: FastifyRequest): ApiError {
    const seconds = Math.max(1, Math.ceil(this.attempts.waitMs(key) / 1000));
    const detail = `too many wrong tokens or passwords: wait ${seconds} s`;
    const error = new ApiError(429, 'too-many-attempts', detail, { headers: { 'retry-after': String(seconds) } });
    return this.of('held-off', request, error);
  }

  /** Reports the refusals since the last report. */
  close(): void {
    this.#failures.close();
  }
}

/** Of every 401 (RFC 9110 §11.6.1). Only Bearer: for Basic, browsers would open a dialogue of their own over the page's. */
const CHALLENGE = { headers: { 'www-authenticate': 'Bearer realm="recorder"' } };

export const unauthorized = (): ApiError =>
  new ApiError(
    401,
    'unauthorized',
    'sign in, or send a token: "Authorization: Bearer …", or Basic with the token as password',
    CHALLENGE,
  );

export const staleLink = (): ApiError =>
  new ApiError(401, 'unauthorized', 'this link has expired, or is for another address: make a new one', CHALLENGE);

export const wrongPassword = (): ApiError => new ApiError(401, 'unauthorized', 'wrong name or password', CHALLENGE);

export const staleCode = (): ApiError =>
  new ApiError(
    401,
    'unauthorized',
    'this link was used or has expired: run "recorder admin-link" on the machine of the recorder for another one',
    CHALLENGE,
  );

export const busy = (): ApiError =>
  new ApiError(429, 'too-many-attempts', 'too many sign-ins are being checked: try again in a few seconds', {
    headers: { 'retry-after': '5' },
  });

export const plaintext = (): ApiError =>
  new ApiError(
    403,
    'tls-required',
    'tokens of Kubernetes are accepted over HTTPS only, because anyone who reads one can use it in the cluster: set tls, name the proxy that speaks HTTPS in trustedProxies, or set auth.allowPlaintext',
  );

export const wrongAudience = (audience: string): ApiError =>
  new ApiError(
    401,
    'wrong-audience',
    `this token is for another audience: create one with kubectl create token … --audience ${audience}, or change auth.audiences`,
    CHALLENGE,
  );
