// Asks issuers who a person is: OpenID Connect Core 1.0, authorization code flow with PKCE (RFC 7636); and verifies their word that a
// session has ended (OpenID Connect Back-Channel Logout 1.0).

import { readFile } from 'node:fs/promises';
import { createRemoteJWKSet, customFetch as keysFetch, jwtVerify, errors as joseErrors } from 'jose';
import * as oidc from 'openid-client';
import { Agent, fetch, ProxyAgent, type Dispatcher } from 'undici';
import type { Clock } from '../../base/clock.ts';
import { errorCode, messageOf, quietly } from '../../base/error.ts';
import { hostOfUrl } from '../../base/host.ts';
import { HTTP_1 } from '../../base/http-answer.ts';
import { HOUR_MS } from '../../base/units.ts';
import { printable } from '../../base/printable.ts';
import type { IssuerConfig } from '../config/schema.ts';
import type { CameraNetworks } from '../reach/networks.ts';
import { IssuerError } from './issuer-error.ts';

/** A sign-in that waits for the person; see RFC 6749, OpenID Connect and RFC 7636. */
interface SignInRequest {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** What an issuer says of a person, from the ID token and the UserInfo endpoint. */
interface PersonClaims {
  readonly sub: string;
  readonly [claim: string]: unknown;
}

/** The person, or the one session of the person, whom a logout token is about. */
interface LoggedOut {
  readonly sub?: string;
  readonly sid?: string;
}

const ANSWER_MS = 10_000;
const MAX_MESSAGE = 300;
const MAX_ANSWER_BYTES = 1024 * 1024;
/** Then the issuer is asked again where its endpoints are. */
const KNOWN_MS = HOUR_MS;
/** A logout token is sent when it is made. */
const MAX_LOGOUT_AGE = '10m';
const CLOCK_TOLERANCE_S = 60;
/** A page of a proxy, or of a server that has a fault. */
const NOT_ITS_WORD: ReadonlySet<string> = new Set(['OAUTH_RESPONSE_IS_NOT_CONFORM', 'OAUTH_RESPONSE_IS_NOT_JSON']);
const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout';

export interface IssuerDeps {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Where issuers may be. */
  readonly networks: CameraNetworks;
}

export class Issuer {
  readonly #config: IssuerConfig;
  readonly #deps: IssuerDeps;
  #opened: Promise<OpenedIssuer> | undefined;
  #openedMs = -Infinity;

  constructor(config: IssuerConfig, deps: IssuerDeps) {
    this.#config = config;
    this.#deps = deps;
  }

  /** The address at the issuer to which the browser goes, and what is needed to check the answer. Rejects with IssuerError. */
  begin(redirectUri: string): Promise<{ readonly url: string; readonly asked: SignInRequest }> {
    return this.#asking(async ({ config }) => {
      const asked = { state: oidc.randomState(), nonce: oidc.randomNonce(), verifier: oidc.randomPKCECodeVerifier() };
      const url = oidc.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: this.#config.scopes.join(' '),
        state: asked.state,
        nonce: asked.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(asked.verifier),
        code_challenge_method: 'S256',
      });
      return { url: url.href, asked };
    });
  }

  /** Who has come back. `answer`: the address to which the issuer has sent the browser, with its query. Rejects with IssuerError. */
  finish(answer: URL, { state, nonce, verifier }: SignInRequest): Promise<PersonClaims> {
    return this.#asking(async ({ config, readSecret }) => {
      await readSecret();
      const tokens = await oidc.authorizationCodeGrant(config, answer, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (!claims) throw new IssuerError('invalid', 'the issuer has sent no ID token');
      const more =
        config.serverMetadata().userinfo_endpoint === undefined
          ? {}
          : await oidc.fetchUserInfo(config, tokens.access_token, claims.sub);
      return { ...more, ...claims };
    });
  }

  /** Rejects with IssuerError for a token that is not this issuer's word to this client (Back-Channel Logout 1.0 §2.6). */
  loggedOut(token: string): Promise<LoggedOut> {
    return this.#asking(async ({ config, keys }) => {
      const { payload } = await jwtVerify(token, keys, {
        issuer: config.serverMetadata().issuer,
        audience: this.#config.clientId,
        requiredClaims: ['iat', 'jti', 'events'],
        maxTokenAge: MAX_LOGOUT_AGE,
        clockTolerance: CLOCK_TOLERANCE_S,
      });
      const { sub, sid, events, nonce } = payload;
      const isLogout = typeof events === 'object' && events !== null && LOGOUT_EVENT in events;
      // An ID token is no logout token.
      if (!isLogout || nonce !== undefined) throw new IssuerError('invalid', 'this is no logout token');
      if (typeof sid === 'string') return { sid };
      if (sub !== undefined) return { sub };
      throw new IssuerError('invalid', 'the logout token names nobody');
    });
  }

  async close(): Promise<void> {
    // One that could not be opened has nothing to close.
    const opened = await this.#opened?.catch(() => undefined);
    await opened?.dispatcher.destroy();
  }

  async #asking<T>(ask: (opened: OpenedIssuer) => Promise<T>): Promise<T> {
    try {
      return await ask(await this.#open());
    } catch (err) {
      throw problemOf(err);
    }
  }

  /** Requests at the same time share one look. What was known stays in use while the issuer is away. */
  async #open(): Promise<OpenedIssuer> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#opened && nowMs - this.#openedMs < KNOWN_MS) return this.#opened;
    const before = this.#opened;
    const opening = open(this.#config, this.#deps.networks);
    this.#opened = opening;
    this.#openedMs = nowMs;
    try {
      const opened = await opening;
      // Its last requests end first.
      void quietly(before?.then(({ dispatcher }) => dispatcher.close()));
      return opened;
    } catch (err) {
      this.#opened = before;
      if (!before) throw err;
      return before;
    }
  }
}

interface OpenedIssuer {
  readonly config: oidc.Configuration;
  readonly keys: ReturnType<typeof createRemoteJWKSet>;
  readonly dispatcher: Dispatcher;
  /** Reads the secret of the client, which may be another one in its file. */
  readonly readSecret: () => Promise<void>;
}

async function open(issuer: IssuerConfig, networks: CameraNetworks): Promise<OpenedIssuer> {
  const ca = issuer.ca === undefined ? undefined : await readFile(issuer.ca, 'utf8');
  const dispatcher = dispatcherFor(issuer.proxy, networks, ca);
  const fetchThere: oidc.CustomFetch = async (url, options) => {
    networks.check(hostOfUrl(new URL(issuer.proxy ?? url)));
    return fetch(url, { ...(options as object), redirect: 'manual', dispatcher });
  };
  let secret: string | undefined;
  try {
    const config = await oidc.discovery(
      new URL(issuer.issuer),
      issuer.clientId,
      {},
      clientOf(() => secret),
      {
        [oidc.customFetch]: fetchThere,
        timeout: ANSWER_MS / 1000,
        execute: [
          // A proxy may have changed what came over TLS.
          oidc.enableNonRepudiationChecks,
          // The configuration accepts it on this machine only.
          ...(issuer.issuer.startsWith('http:') ? [oidc.allowInsecureRequests] : []),
        ],
      },
    );
    const { jwks_uri: keysAt } = config.serverMetadata();
    if (keysAt === undefined) throw new IssuerError('away', 'the issuer names no keys (jwks_uri)');
    const keys = createRemoteJWKSet(new URL(keysAt), {
      timeoutDuration: ANSWER_MS,
      [keysFetch]: async (url: string, options: object) => fetchThere(url, options as oidc.CustomFetchOptions),
    });
    return { config, keys, dispatcher, readSecret: async () => void (secret = await secretOf(issuer)) };
  } catch (err) {
    await dispatcher.destroy();
    throw err;
  }
}

function dispatcherFor(proxy: string | undefined, { lookup }: CameraNetworks, ca: string | undefined): Dispatcher {
  const limits = { ...HTTP_1, headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS, maxResponseSize: MAX_ANSWER_BYTES };
  const trust = ca === undefined ? {} : { ca };
  return proxy === undefined
    ? new Agent({ ...limits, connect: { lookup, timeout: ANSWER_MS, ...trust } })
    : new ProxyAgent({
        ...limits,
        uri: proxy,
        connect: { lookup, timeout: ANSWER_MS },
        requestTls: { timeout: ANSWER_MS, ...trust },
      });
}

/** Basic is the default of RFC 8414 for issuers that do not say what they accept. */
function clientOf(secret: () => string | undefined): oidc.ClientAuth {
  return (server, client, body, headers) => {
    const known = secret();
    const accepted = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const method = accepted.includes('client_secret_basic') ? oidc.ClientSecretBasic : oidc.ClientSecretPost;
    (known === undefined ? oidc.None() : method(known))(server, client, body, headers);
  };
}

const secretOf = async ({ clientSecret, clientSecretFile: file }: IssuerConfig): Promise<string | undefined> =>
  file === undefined ? clientSecret : (await readFile(file, 'utf8')).trim();

/** In one line, for the log. */
function problemOf(err: unknown): IssuerError {
  if (err instanceof IssuerError) return err;
  const problem = (code: IssuerError['code'], message: string): IssuerError =>
    new IssuerError(code, printable(message, MAX_MESSAGE), { cause: err });
  // RFC 6749 §4.1.2.1 and §5.2
  if (err instanceof oidc.AuthorizationResponseError || err instanceof oidc.ResponseBodyError) {
    return problem('refused', `the issuer answers ${err.error}`);
  }
  const cause = err instanceof Error && err.cause instanceof Error ? err.cause : err;
  const code = errorCode(err) ?? '';
  if (err instanceof joseErrors.JWKSTimeout || code === 'OAUTH_TIMEOUT') {
    return problem('away', `the issuer has not answered within ${ANSWER_MS / 1000} s`);
  }
  // Else the cause is that of a connection, or of what is between.
  const isItsWord = err instanceof joseErrors.JOSEError || (code.startsWith('OAUTH_') && !NOT_ITS_WORD.has(code));
  if (isItsWord) return problem('invalid', messageOf(err));
  return problem('away', messageOf(cause));
}
