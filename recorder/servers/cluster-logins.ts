// The users, tokens and the key of sessions of a cluster of servers, in a sealed object of its store: a login of one server is one of
// all, so that the cluster can be used at any address. Each server states those of its own configuration, and takes those of the
// others; users who were made on the page belong to no server. A copy on the disk serves while etcd does not answer.

import type { Configured } from '../http/auth.ts';
import { hash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { hasStatus } from '../../base/kubernetes/api-error.ts';
import { mergePatch } from '../../base/kubernetes/client.ts';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import { readPrivate, writePrivate } from '../../base/private-file.ts';
import { LOGINS_SECRET } from '../../crds/names.ts';
import { nodesPath, readSecret, secretOf, secretsPath, type StoreApi } from '../certificates/secrets.ts';
import type { TokenConfig, UserConfig } from '../config/schema.ts';
import type { PageUsers } from '../http/page-users.ts';
import { SEAL_KEY_BYTES } from '../http/seal.ts';

interface ClusterLoginsOptions {
  readonly api: StoreApi;
  readonly namespace: string;
  readonly nodeId: string;
  /** Of the keys of the node; the copy is there. */
  readonly directory: string;
  readonly log: Log;
}

/** Of all servers, as the copy keeps them. */
interface Shared {
  /** Hexadecimal digits. */
  readonly sessionKey: string;
  /** By node. */
  readonly nodes: Readonly<Record<string, Configured>>;
  /** Made on the page. */
  readonly made: readonly UserConfig[];
}

/** Not one of those that people may read or write. */
const TYPE = 'kube-nvr.dev/logins';
const SESSIONS = 'sessions';
const NODE = 'node.';
const USER = 'user.';

export class ClusterLogins {
  readonly #options: ClusterLoginsOptions;
  #own: Configured = { tokens: [], users: [], issuers: [] };
  #shared: Shared | undefined;
  #brought: Pick<PageUsers, 'list' | 'remove'> | undefined;
  #changed = (): void => {};

  constructor(options: ClusterLoginsOptions) {
    this.#options = options;
  }

  /** Reads the copy; one that cannot be used is reported and replaced. */
  async load(): Promise<void> {
    try {
      const text = await readPrivate(this.#file, (problem) => new Error(`${this.#file} ${problem}`));
      if (text !== undefined) this.#shared = JSON.parse(text) as Shared;
    } catch (err) {
      this.#options.log.error({ problem: messageOf(err) }, 'the copy of the logins of the cluster cannot be read');
    }
  }

  /** Undefined until the cluster has been reached once. */
  get sessionKey(): Buffer | undefined {
    const key = Buffer.from(this.#shared?.sessionKey ?? '', 'hex');
    return key.length === SEAL_KEY_BYTES ? key : undefined;
  }

  get others(): Configured {
    const { [this.#options.nodeId]: _, ...nodes } = this.#shared?.nodes ?? {};
    return {
      tokens: Object.values(nodes).flatMap(({ tokens }) => tokens),
      users: Object.values(nodes).flatMap(({ users }) => users),
      // A server of an older version states none.
      issuers: Object.values(nodes).flatMap(({ issuers }: Partial<Configured>) => issuers ?? []),
    };
  }

  /** Users who were made on the page of any server. */
  get list(): readonly UserConfig[] {
    const made = this.#shared?.made ?? [];
    const brought = this.#brought?.list ?? [];
    return [...made, ...brought.filter(({ name }) => made.every((user) => user.name !== name))];
  }

  /** Users who were made on the page of this server before it was one of a cluster. Those of the cluster take precedence. */
  bring(users: Pick<PageUsers, 'list' | 'remove'>): void {
    this.#brought = users;
  }

  /** What this server has configured now. */
  state({ tokens, users, issuers }: Configured): void {
    const named = ({ name, ...rest }: TokenConfig): TokenConfig => ({
      ...rest,
      name: name === 'admin.token' ? `admin.token of ${this.#options.nodeId}` : name,
    });
    this.#own = { tokens: tokens.map(named), users, issuers };
  }

  /** Calls `changed` with every change, and at once. */
  follow(changed: () => void): void {
    this.#changed = changed;
    changed();
  }

  /** States what this server has, and takes what the others have. To be called every few seconds. Throws ApiError. */
  async exchange(): Promise<void> {
    const { api, namespace, nodeId } = this.#options;
    const path = `${secretsPath(namespace)}/${LOGINS_SECRET}`;
    const [secret, { items }] = await Promise.all([
      readSecret(api, namespace, LOGINS_SECRET),
      api.list(nodesPath(namespace)),
    ]);
    if (!secret) {
      const key = this.sessionKey ?? randomBytes(SEAL_KEY_BYTES);
      const made = secretOf(namespace, LOGINS_SECRET, TYPE, { [SESSIONS]: encode(key.toString('hex')) });
      await api.call('POST', secretsPath(namespace), made).catch(ignoreExisting);
      return this.exchange();
    }
    const roles = new Map(items.map(({ metadata, spec }) => [metadata.name, (spec as { readonly role: string }).role]));
    const values = Object.entries(secret.data).map(([key, value]) => [key, decode(value)] as const);
    const nodes = Object.fromEntries(
      values.flatMap(([key, text]) =>
        key.startsWith(NODE) ? [[key.slice(NODE.length), JSON.parse(text) as Configured]] : [],
      ),
    );
    if (!isDeepStrictEqual(nodes[nodeId], JSON.parse(JSON.stringify(this.#own)))) {
      await mergePatch(api, path, { data: { [NODE + nodeId]: encode(JSON.stringify(this.#own)) } });
    }
    const brought = this.#brought?.list ?? [];
    if (brought.length > 0) {
      const missing = brought.filter(({ name }) => secret.data[keyOf(name)] === undefined);
      const data = Object.fromEntries(missing.map((user) => [keyOf(user.name), encode(JSON.stringify(user))]));
      if (missing.length > 0) await mergePatch(api, path, { data });
      await this.#brought?.remove();
      return this.exchange();
    }
    // A server that was taken out brings no logins along.
    const members = Object.entries(nodes).filter(([name]) => roles.has(name) && roles.get(name) !== 'Removed');
    await this.#take({
      sessionKey: values.find(([key]) => key === SESSIONS)?.[1] ?? '',
      nodes: Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1))),
      made: values.flatMap(([key, text]) => (key.startsWith(USER) ? [JSON.parse(text) as UserConfig] : [])),
    });
  }

  /** Removes the logins of a server: they must not come back with another one of its name. Throws ApiError. */
  async forget(nodeId: string): Promise<void> {
    await this.#patch(NODE + nodeId, null);
  }

  /** Replaces the user of this name, or adds one. Rejects while the cluster cannot be reached. */
  put(user: UserConfig): Promise<void> {
    return this.#patch(keyOf(user.name), encode(JSON.stringify(user)));
  }

  /** Rejects while the cluster cannot be reached. */
  delete(userName: string): Promise<void> {
    return this.#patch(keyOf(userName), null);
  }

  async #patch(key: string, value: string | null): Promise<void> {
    const { api, namespace } = this.#options;
    // null removes a field (RFC 7396).
    await mergePatch(api, `${secretsPath(namespace)}/${LOGINS_SECRET}`, { data: { [key]: value } });
    await this.exchange();
  }

  get #file(): string {
    return join(this.#options.directory, 'logins.json');
  }

  async #take(shared: Shared): Promise<void> {
    if (isDeepStrictEqual(shared, this.#shared)) return;
    this.#shared = shared;
    this.#changed();
    await writePrivate(this.#file, `${JSON.stringify(shared)}\n`).catch((err: unknown) =>
      this.#options.log.warn({ problem: messageOf(err) }, 'the copy of the logins of the cluster cannot be written'),
    );
  }
}

/** Of a user, in the data of the Secret. */
const keyOf = (name: string): string => USER + hash('sha256', name, 'hex');
const encode = (text: string): string => Buffer.from(text).toString('base64');
const decode = (value: string): string => Buffer.from(value, 'base64').toString('utf8');

function ignoreExisting(err: unknown): void {
  if (!hasStatus(err, 409)) throw err;
}
