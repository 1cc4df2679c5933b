// The only place that decides whether a camera gets a login and in which form; used for RTSP, its tunnels, stills and ONVIF.

import { getFips } from 'node:crypto';
import { Authorizer } from './authorization.ts';
import { parseChallenges, strongest, type Challenge } from './challenge.ts';
import type { Credentials } from './url.ts';
import { CodedError } from '../../base/error.ts';

/** What is remembered of one login at one place; it is notified of each result. */
export interface LoginMemory {
  /** The secure form in which this place accepted a login before: one that an eavesdropper cannot read. */
  readonly better: 'Digest' | 'TLS' | undefined;
  /** False if the camera is known to refuse this login. */
  readonly mayTry: boolean;
  /** The camera accepted the login; with `Digest`, in a form that an eavesdropper cannot read. */
  accepted(took?: 'Digest'): void;
  refused(): void;
  /** The camera redirected to TLS. */
  ledToTls(): void;
}

/** A memory that remembers nothing. */
export const NO_MEMORY: LoginMemory = {
  better: undefined,
  mayTry: true,
  accepted: () => {},
  refused: () => {},
  ledToTls: () => {},
};

/**
 * `none`: no login is configured; `unknown`: the camera requires a scheme that we do not support; `downgraded`: a camera that
 * accepted a secure form before now requires clear text; `refused-before`: the camera refused this login.
 */
export type LoginErrorCode = 'none' | 'unknown' | 'downgraded' | 'refused-before';

/** The message contains neither user nor password. */
export class LoginError extends CodedError<LoginErrorCode> {
  override readonly name = 'LoginError';
}

export interface LoginOptions {
  readonly credentials: Credentials | undefined;
  /** Requests are sent over TLS. */
  readonly secure: boolean;
  /**
   * When the password is sent in clear text (Basic): always, never, or (the default) over TLS, and elsewhere unless the camera
   * has accepted a secure form before. An impostor of the camera would ask for clear text.
   */
  readonly basic?: 'always' | 'never' | 'unless-better-before' | undefined;
}

export class Login {
  readonly #options: LoginOptions;
  readonly #memory: LoginMemory;
  #authorizer: Authorizer | undefined;

  constructor(options: LoginOptions, memory: LoginMemory = NO_MEMORY) {
    this.#options = options;
    this.#memory = memory;
  }

  get isConfigured(): boolean {
    return this.#options.credentials !== undefined;
  }

  /** The challenge that requests currently answer. */
  get challenge(): Challenge | undefined {
    return this.#authorizer?.challenge;
  }

  /** The value of the Authorization header; undefined until a challenge has been taken. */
  authorize(method: string, url: string): string | undefined {
    return this.#authorizer?.authorize(method, url);
  }

  /** See `checkRefused`. */
  checkRefused(): void {
    if (this.isConfigured) checkRefused(this.#memory);
  }

  /**
   * Takes the challenges of a 401 response (all its WWW-Authenticate headers); requests answer the strongest from now on. Throws
   * `LoginError`.
   */
  take(lines: readonly string[]): Challenge {
    const { credentials, secure, basic = 'unless-better-before' } = this.#options;
    if (!credentials) throw new LoginError('none', 'the camera asks for a user and a password, and none is configured');
    const known = parseChallenges(lines).filter(({ scheme }) => scheme !== 'basic' || basic !== 'never');
    const challenge = strongest(known);
    if (!challenge) throw new LoginError('unknown', 'the camera asks for a login method that is not supported');
    // Not in clear text instead: the camera did not choose that.
    if (challenge.scheme === 'digest' && challenge.algorithm === 'MD5' && getFips() === 1) {
      throw new LoginError('unknown', 'the camera asks for a login with MD5, which does not exist in FIPS mode');
    }
    const { better } = this.#memory;
    if (challenge.scheme === 'basic' && !secure && basic !== 'always' && better !== undefined) {
      throw new LoginError('downgraded', downgraded(better));
    }
    this.#authorizer = new Authorizer(challenge, credentials);
    return challenge;
  }

  accepted(): void {
    if (this.challenge) this.#memory.accepted(this.challenge.scheme === 'digest' ? 'Digest' : undefined);
  }

  refused(): void {
    this.#memory.refused();
  }

  ledToTls(): void {
    this.#memory.ledToTls();
  }
}

/** Throws `LoginError` if the camera refused the login before: cameras lock the accounts of clients that repeat it. */
export function checkRefused({ mayTry }: LoginMemory): void {
  if (mayTry) return;
  const words =
    'the camera refused this user and password before: they rest for up to 30 minutes, unless they or its address change, or an operator tries again';
  throw new LoginError('refused-before', words);
}

const downgraded = (better: string): string =>
  `the camera asks for the password in clear (Basic without TLS), but accepted ${better} before: another device may answer in ` +
  `its place, so no password is sent. If the camera was reset, choose Digest or TLS in it, or set allowPlaintextLogin`;
