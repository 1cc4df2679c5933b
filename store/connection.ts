// A connection for the client of the API server on which the object store answers, inside the process. It has the same paths, queries,
// bodies and statuses (https://kubernetes.io/docs/reference/using-api/api-concepts/) for the requests that this program makes.

import type { Clock } from '../base/clock.ts';
import type { EtcdClient } from '../base/etcd/client.ts';
import { ApiError } from '../base/kubernetes/api-error.ts';
import type { KubeResponse, Connection, SentRequest } from '../base/kubernetes/client.ts';
import { jsonIn, type Json } from './json.ts';
import { apiVersionOf, STORED_KINDS, type StoredKind } from './kinds.ts';
import { collectionKey } from './names.ts';
import { ObjectStore, type ListPlace, type Seal, type WriteOptions } from './objects.ts';
import { fieldSelector, labelSelector, type Selector } from './selectors.ts';

/** What a path names. */
interface Target {
  readonly kind: StoredKind;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: 'status' | undefined;
}

const MAX_PAGE = 500;
const MAX_WATCH_SECONDS = 3_600;

export class StoreConnection implements Connection {
  /** No host has this name (RFC 6761 §6.4): nothing is sent there. */
  readonly url = 'http://store.invalid';
  readonly what = 'etcd';
  readonly #etcd: EtcdClient;
  readonly #store: ObjectStore;
  readonly #clock: Clock;

  constructor({ etcd, seal, clock }: { readonly etcd: EtcdClient; readonly seal: Seal; readonly clock: Clock }) {
    this.#etcd = etcd;
    this.#clock = clock;
    this.#store = new ObjectStore({ etcd, seal, kinds: STORED_KINDS, clock });
  }

  readonly send = async (url: URL, request: SentRequest): Promise<KubeResponse> => {
    try {
      return await this.#answer(url, request);
    } catch (err) {
      // No answer: the caller sees the same as on a broken connection.
      if (!(err instanceof ApiError) || err.status === 0) throw err;
      return { statusCode: err.status, headers: {}, body: bodyOf(statusOf(err)) };
    }
  };

  async prepare(): Promise<{ headers: Record<string, string> }> {
    return { headers: {} };
  }

  /** Encrypts everything that is encrypted with the key of now. Resolves to the number of objects. Rejects with ApiError. */
  reseal(): Promise<number> {
    return this.#store.reseal();
  }

  reconnect(): void {
    this.#etcd.reconnect();
  }

  close(): Promise<void> {
    return this.#etcd.close();
  }

  async #answer(url: URL, request: SentRequest): Promise<KubeResponse> {
    const target = targetOf(url.pathname);
    const { method, signal } = request;
    const query = url.searchParams;
    const ok = (object: Json, statusCode = 200): KubeResponse => ({ statusCode, headers: {}, body: bodyOf(object) });
    if (target.name === undefined) {
      if (method === 'GET' && query.get('watch') === 'true') return this.#watch(target, query, signal);
      if (method === 'GET') return ok(await this.#list(target, query, signal));
      const { kind, namespace, subresource } = target;
      if (method !== 'POST' || namespace === undefined) throw notAllowed(method);
      return ok(
        await this.#store.create(
          { kind, namespace },
          bodyIn(request),
          { ...writeOptions(request, query), subresource },
          signal,
        ),
        201,
      );
    }
    const { kind, namespace = '', name } = target;
    const named = { kind, namespace, name };
    if (method === 'GET') return ok(await this.#store.get(named, signal));
    const options = { ...writeOptions(request, query), subresource: target.subresource };
    if (method === 'PUT') return ok(await this.#store.replace(named, bodyIn(request), options, signal));
    if (method === 'PATCH') return ok(await this.#patch(named, request, options, query));
    if (method !== 'DELETE' || target.subresource) throw notAllowed(method);
    const { preconditions, dryRun } = jsonIn(request.body === undefined ? {} : bodyIn(request));
    const isTried = options.isTried || dryRun !== undefined;
    return ok(await this.#store.delete(named, jsonIn(preconditions), { isTried }, signal));
  }

  async #list({ kind, namespace }: Target, query: URLSearchParams, signal: AbortSignal | undefined): Promise<Json> {
    const asked = Number(query.get('limit') ?? MAX_PAGE);
    const limit = asked > 0 && asked <= MAX_PAGE ? asked : MAX_PAGE;
    const { items, resourceVersion, next } = await this.#store.list(
      {
        kind,
        namespace,
        select: selectorOf(query, kind),
        limit,
        place: placeIn(query.get('continue'), collectionKey(kind.plural, namespace)),
        mayBeOld: query.get('resourceVersion') === '0',
      },
      signal,
    );
    return {
      apiVersion: apiVersionOf(kind),
      kind: `${kind.kind}List`,
      metadata: { resourceVersion, ...(next && { continue: Buffer.from(JSON.stringify(next)).toString('base64url') }) },
      items,
    };
  }

  #watch({ kind, namespace }: Target, query: URLSearchParams, signal: AbortSignal | undefined): KubeResponse {
    const resourceVersion = query.get('resourceVersion') ?? '';
    if (!/^[1-9][0-9]{0,18}$/.test(resourceVersion)) {
      throw new ApiError(400, 'BadRequest', 'a watch needs the resourceVersion of a list');
    }
    const seconds = Number(query.get('timeoutSeconds') ?? MAX_WATCH_SECONDS);
    const select = selectorOf(query, kind);
    const options = { kind, namespace, select, resourceVersion };
    return { statusCode: 200, headers: {}, body: this.#events(options, seconds, query, signal) };
  }

  /** The lines of a watch. It ends after the requested time. */
  async *#events(
    options: Parameters<ObjectStore['watch']>[0],
    seconds: number,
    query: URLSearchParams,
    caller: AbortSignal | undefined,
  ): AsyncGenerator<Buffer> {
    const ended = new AbortController();
    const timer = this.#clock.after(Math.min(seconds, MAX_WATCH_SECONDS) * 1000, () => ended.abort());
    const signal = caller ? AbortSignal.any([ended.signal, caller]) : ended.signal;
    const bookmarks = query.get('allowWatchBookmarks') === 'true';
    try {
      for await (const event of this.#store.watch(options, signal)) {
        if (event.type !== 'BOOKMARK') yield lineOf(event);
        else if (bookmarks) yield lineOf(bookmarkOf(options.kind, event.resourceVersion));
      }
    } catch (err) {
      if (!(err instanceof ApiError) || err.status === 0) throw err;
      yield lineOf({ type: 'ERROR', object: statusOf(err) });
    } finally {
      timer.cancel();
      ended.abort();
    }
  }

  #patch(
    named: Parameters<ObjectStore['patch']>[0],
    request: SentRequest,
    options: WriteOptions,
    query: URLSearchParams,
  ): Promise<Json> {
    const type = request.headers['content-type'];
    const body = bodyIn(request);
    if (type === 'application/merge-patch+json') return this.#store.patch(named, body, options, request.signal);
    if (type === 'application/apply-patch+yaml') {
      if (!query.get('fieldManager')) throw new ApiError(400, 'BadRequest', 'fieldManager is required for apply patch');
      return this.#store.apply(named, body, { ...options, force: query.get('force') === 'true' }, request.signal);
    }
    throw new ApiError(415, 'UnsupportedMediaType', `a patch of the type ${type ?? '(none)'} is not supported`);
  }
}

const PATH =
  /^\/(?:api|apis\/(?<group>[^/]+))\/(?<version>[^/]+)(?:\/namespaces\/(?<namespace>[^/]+))?\/(?<plural>[^/]+)(?:\/(?<name>[^/]+)(?:\/(?<subresource>[^/]+))?)?$/;

function targetOf(path: string): Target {
  const { group = '', version, plural, ...parts } = PATH.exec(path)?.groups ?? {};
  const kind = STORED_KINDS.find((one) => one.group === group && one.version === version && one.plural === plural);
  const isStatus = parts['subresource'] === 'status' && kind?.hasStatus === true;
  if (!kind || (parts['subresource'] !== undefined && !isStatus)) {
    throw new ApiError(404, 'NotFound', 'the server could not find the requested resource');
  }
  const text = (part: string | undefined): string | undefined =>
    part === undefined ? undefined : decodeURIComponent(part);
  const [namespace, name] = [text(parts['namespace']), text(parts['name'])];
  if (namespace?.includes('/') || name?.includes('/')) throw new ApiError(400, 'BadRequest', 'a name contains a slash');
  return { kind, namespace, name, subresource: isStatus ? 'status' : undefined };
}

function selectorOf(query: URLSearchParams, kind: StoredKind): Selector {
  const [labels, fields] = [query.get('labelSelector'), query.get('fieldSelector')];
  const selectors = [
    ...(labels ? [labelSelector(labels)] : []),
    ...(fields ? [fieldSelector(fields, kind.selectableFields)] : []),
  ];
  return (object) => selectors.every((select) => select(object));
}

/** `prefix`: of the keys of the list. */
function placeIn(text: string | null, prefix: string): ListPlace | undefined {
  if (!text) return undefined;
  try {
    const { revision, key } = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as Partial<ListPlace>;
    if (typeof revision === 'string' && typeof key === 'string' && key.startsWith(prefix)) return { revision, key };
  } catch {
    // It does not come from this file.
  }
  throw new ApiError(400, 'BadRequest', 'continue is not one of an earlier answer');
}

function writeOptions({ headers }: SentRequest, query: URLSearchParams): Omit<WriteOptions, 'subresource'> {
  const manager = query.get('fieldManager') ?? headers['user-agent']?.split('/')[0] ?? 'unknown';
  return { manager: manager.slice(0, 128), isTried: query.get('dryRun') === 'All' };
}

function bodyIn({ body = '' }: SentRequest): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    // The answer says so.
    throw new ApiError(400, 'BadRequest', 'the body is not JSON');
  }
}

const notAllowed = (method: string): ApiError =>
  new ApiError(405, 'MethodNotAllowed', `${method} is not possible here`);

/** https://kubernetes.io/docs/reference/kubernetes-api/definitions/status-v1-meta/ */
const statusOf = ({ status: code, reason, message }: ApiError): Json => ({
  apiVersion: 'v1',
  kind: 'Status',
  status: 'Failure',
  reason,
  message,
  code,
});

const bookmarkOf = (kind: StoredKind, resourceVersion: string): Json => ({
  type: 'BOOKMARK',
  object: { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: { resourceVersion } },
});

const lineOf = (event: Json): Buffer => Buffer.from(`${JSON.stringify(event)}\n`);

async function* bodyOf(object: Json): AsyncGenerator<Buffer> {
  yield Buffer.from(JSON.stringify(object));
}
