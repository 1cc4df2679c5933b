// The join tokens of the cluster. Each is a Secret in the store with the digest of the token, the node that may use it, and the end
// of its validity. A request uses a token by deleting its Secret; the store lets only one request do so.

import { timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { hasStatus } from '../../base/kubernetes/api-error.ts';
import { sha256 } from '../../base/new-token.ts';
import { HOUR_MS } from '../../base/units.ts';
import { formatJoinToken, newJoinToken, parseJoinToken } from './join-token.ts';
import { readSecret, secretOf, secretsPath, type StoreApi } from './secrets.ts';

const TOKEN_TYPE = 'kube-nvr.dev/join-token';
const LASTS_MS = HOUR_MS;

interface Usable {
  /** False when another request has used it meanwhile. Throws ApiError. */
  use(): Promise<boolean>;
}

interface JoinTokensOptions {
  readonly api: StoreApi;
  readonly namespace: string;
  readonly clock: Pick<Clock, 'wallMs'>;
}

export class JoinTokens {
  readonly #options: JoinTokensOptions;

  constructor(options: JoinTokensOptions) {
    this.#options = options;
  }

  /** A token for the node `nodeId`. `authority`: the CA that signs, PEM. Throws ApiError. */
  async make(nodeId: string, authority: string): Promise<{ readonly token: string; readonly untilMs: number }> {
    const { api, namespace, clock } = this.#options;
    await this.#removeExpired();
    const made = newJoinToken(authority);
    const untilMs = clock.wallMs() + LASTS_MS;
    const data = { node: nodeId, sha256: sha256(made.secret).toString('hex'), until: new Date(untilMs).toISOString() };
    const encoded = Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
    );
    await api.call('POST', secretsPath(namespace), secretOf(namespace, nameOf(made.id), TOKEN_TYPE, encoded));
    return { token: formatJoinToken(made), untilMs };
  }

  /** Undefined for a token that is wrong, expired, used, or for another node. Throws ApiError. */
  async find(text: string, nodeId: string): Promise<Usable | undefined> {
    const { api, namespace, clock } = this.#options;
    const token = parseJoinToken(text);
    const secret = token && (await readSecret(api, namespace, nameOf(token.id)));
    if (!secret || secret.type !== TOKEN_TYPE) return undefined;
    const read = (key: string): string => Buffer.from(secret.data[key] ?? '', 'base64').toString('utf8');
    const digest = Buffer.from(read('sha256'), 'hex');
    const given = sha256(token.secret);
    const isRight = digest.length === given.length && timingSafeEqual(digest, given);
    if (!isRight || read('node') !== nodeId || !(clock.wallMs() < Date.parse(read('until')))) return undefined;
    return { use: () => this.#remove(nameOf(token.id), secret) };
  }

  async #remove(
    name: string,
    { uid, resourceVersion }: { readonly uid: string; readonly resourceVersion: string },
  ): Promise<boolean> {
    const { api, namespace } = this.#options;
    try {
      await api.call('DELETE', `${secretsPath(namespace)}/${name}`, { preconditions: { uid, resourceVersion } });
      return true;
    } catch (err) {
      if (hasStatus(err, 404) || hasStatus(err, 409)) return false;
      throw err;
    }
  }

  /** From now on, none of the tokens that were made until now lets a server in. Throws ApiError. */
  removeAll(): Promise<void> {
    return this.#removeUntil(Infinity);
  }

  /** Removes expired tokens, so that they do not fill the store. */
  #removeExpired(): Promise<void> {
    return this.#removeUntil(this.#options.clock.wallMs());
  }

  async #removeUntil(nowMs: number): Promise<void> {
    const { api, namespace } = this.#options;
    const { items } = await api.list(secretsPath(namespace));
    for (const { metadata, type, data } of items) {
      if (type !== TOKEN_TYPE) continue;
      const until = Buffer.from(String((data as Record<string, unknown>)['until']), 'base64').toString('utf8');
      if (nowMs < Date.parse(until)) continue;
      await this.#remove(metadata.name, { uid: String(metadata['uid']), resourceVersion: metadata.resourceVersion });
    }
  }
}

const nameOf = (id: string): string => `join-${id}`;
