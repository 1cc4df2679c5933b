// A real issuer of OpenID Connect on this machine, and a browser that signs in there as the person that the test names.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { Provider } from 'oidc-provider';

export interface Person {
  readonly sub: string;
  readonly [claim: string]: unknown;
}

export interface TestIssuer {
  readonly url: string;
  /** Who signs in next; undefined: the person refuses. */
  person: Person | undefined;
  /** From now on it knows the recorder with this base address, to which it is `name`. */
  serve(recorder: string, name?: string): void;
}

export const CLIENT = { id: 'kube-nvr', secret: 'a-secret-of-the-client-0123456789' } as const;

/** It answers when the test has called `serve`. */
export async function startIssuer(t: Pick<TestContext, 'after'>): Promise<TestIssuer> {
  let provider: Provider | undefined;
  const server = createServer((request, response) => {
    if (!provider) response.writeHead(503).end();
    else if (request.url?.startsWith('/interaction/')) void interact(provider, request, response);
    else provider.callback()(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const known = new Map<string, Person>();
  const issuer: TestIssuer = {
    url,
    person: undefined,
    serve: (recorder, name = 'plant') => (provider = new Provider(url, settingsOf(recorder, name, known))),
  };
  async function interact(there: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { person } = issuer;
    if (person) known.set(person.sub, person);
    const result = person ? { login: { accountId: person.sub } } : { error: 'access_denied' };
    await there.interactionFinished(request, response, result);
  }
  return issuer;
}

const settingsOf = (recorder: string, name: string, known: ReadonlyMap<string, Person>): object => ({
  clients: [
    {
      client_id: CLIENT.id,
      client_secret: CLIENT.secret,
      redirect_uris: [`${recorder}/api/sign-in/${name}/callback`],
      backchannel_logout_uri: `${recorder}/api/sign-in/${name}/logout`,
      backchannel_logout_session_required: true,
    },
  ],
  pkce: { required: () => true },
  // Its own refuses addresses of this machine.
  fetch: (address: URL, { method, headers, body, signal }: FetchOptions) =>
    fetch(address, { method, headers, body, signal }),
  features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
  claims: { openid: ['sub'], profile: ['preferred_username', 'groups'] },
  cookies: { keys: ['a key of the cookies of the issuer'] },
  interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
  findAccount: (_context: unknown, sub: string) => ({ accountId: sub, claims: () => known.get(sub) ?? { sub } }),
  async loadExistingGrant({ oidc }: { oidc: GrantContext }) {
    const grant = new oidc.provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
    grant.addOIDCScope('openid profile email');
    await grant.save();
    return grant;
  },
});

type FetchOptions = Required<Pick<RequestInit, 'method' | 'headers' | 'body' | 'signal'>>;

interface GrantContext {
  readonly provider: { Grant: new (of: object) => { addOIDCScope(scopes: string): void; save(): Promise<string> } };
  readonly client: { readonly clientId: string };
  readonly session: { readonly accountId: string };
}

/** Follows redirects and keeps cookies by host and port, as far as sign-ins need it. */
export class Browser {
  readonly #cookies = new Map<string, Map<string, string>>();

  /** The value of a cookie of an origin. */
  cookie(origin: string, name: string): string | undefined {
    return this.#cookies.get(new URL(origin).host)?.get(name);
  }

  /** Each address that was visited, the last one first answered without a redirect, and its answer. */
  async open(
    address: string,
    init: RequestInit = {},
  ): Promise<{ readonly addresses: readonly string[]; readonly response: Response }> {
    const addresses: string[] = [];
    let next = address;
    let asked = init;
    for (;;) {
      addresses.push(next);
      const response = await this.request(next, asked);
      const location = response.headers.get('location');
      if (location === null || response.status < 300 || response.status > 399) return { addresses, response };
      next = new URL(location, next).href;
      asked = {};
    }
  }

  async request(address: string, init: RequestInit = {}): Promise<Response> {
    const { host } = new URL(address);
    const jar = this.#cookies.get(host) ?? new Map<string, string>();
    this.#cookies.set(host, jar);
    const cookie = Array.from(jar, ([name, value]) => `${name}=${value}`).join('; ');
    const headers = { ...(init.headers as Record<string, string> | undefined), ...(cookie === '' ? {} : { cookie }) };
    const response = await fetch(address, { ...init, headers, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '' || /max-age=0|expires=thu, 01 jan 1970/i.test(line)) jar.delete(name);
      else jar.set(name, value);
    }
    return response;
  }
}
