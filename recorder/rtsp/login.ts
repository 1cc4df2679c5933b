// The one place that decides whether a camera gets a login, and in which form: for RTSP, its tunnels, stills and ONVIF.

import { Authorizer } from './authorization.ts';
import { parseChallenges, strongest } from './challenge.ts';
import type { Challenge } from './challenge.ts';
import type { Credentials } from './url.ts';

/** What is known of one login at one place, and what becomes of it there. */
export interface LoginMemory {
  /** How this place took logins before that no listener could read. */
  readonly better: 'Digest' | 'TLS' | undefined;
  /** Nothing says that the camera refuses this login. */
  readonly mayTry: boolean;
  /** The camera took it; `Digest`: without a listener's being able to read it. */
  accepted(took?: 'Digest'): void;
  refused(): void;
  /** The camera led to TLS. */
  ledToTls(): void;
}

/** Nothing is known before, and nothing is kept. */
export const NO_MEMORY: LoginMemory = {
  better: undefined,
  mayTry: true,
  accepted: () => {},
  refused: () => {},
  ledToTls: () => {},
};

/**
 * `none`: there is no login to answer with; `unknown`: the camera wants a kind that we do not know; `downgraded`: it wants
 * one in clear that took a better one before; `refused-before`: it refused this one.
 */
export type LoginErrorCode = 'none' | 'unknown' | 'downgraded' | 'refused-before';

/** The message holds neither user nor password. */
export class LoginError extends Error {
  readonly code: LoginErrorCode;

  constructor(code: LoginErrorCode, message: string) {
    super(message);
    this.name = 'LoginError';
    this.code = code;
  }
}

export interface LoginOptions {
  readonly credentials: Credentials | undefined;
  /** What is sent goes through TLS. */
  readonly secure: boolean;
  /**
   * When the password is sent as it is (Basic): always, never, or over TLS and where the camera has never taken anything
   * better. Who stands in for a camera asks for it.
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

  /** The challenge that requests answer now. */
  get challenge(): Challenge | undefined {
    return this.#authorizer?.challenge;
  }

  /** The Authorization header's value; undefined until a challenge was taken. */
  authorize(method: string, url: string): string | undefined {
    return this.#authorizer?.authorize(method, url);
  }

  /** See `checkRefused`. */
  checkRefused(): void {
    if (this.isConfigured) checkRefused(this.#memory);
  }

  /** Takes the challenges of a 401 (all lines of WWW-Authenticate): from now on the strongest is answered. Throws `LoginError`. */
  take(lines: readonly string[]): Challenge {
    const { credentials, secure, basic = 'unless-better-before' } = this.#options;
    if (!credentials) throw new LoginError('none', 'the camera wants a user and a password, and none is configured');
    const known = parseChallenges(lines).filter(({ scheme }) => scheme !== 'basic' || basic !== 'never');
    const challenge = strongest(known);
    if (!challenge) throw new LoginError('unknown', 'the camera wants a kind of login that is not supported');
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

/** Throws `LoginError` for a login that the camera refused: cameras lock accounts of clients that repeat them. */
export function checkRefused({ mayTry }: LoginMemory): void {
  if (mayTry) return;
  const words =
    'the camera refused this user and password before: they are tried again when they or its address change';
  throw new LoginError('refused-before', words);
}

const downgraded = (better: string): string =>
  `the camera asks for the password in clear (Basic without TLS), and has taken ${better} before: it may be another that ` +
  `stands in for it, and gets none. If it was reset, choose Digest or TLS in it, or set allowPlaintextLogin`;
