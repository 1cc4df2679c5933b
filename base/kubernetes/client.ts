// A client of the Kubernetes API server for JSON: every call has a deadline, and a watch is an async stream of events. Used by
// the operator and the recorders. https://kubernetes.io/docs/reference/using-api/api-concepts/

import { parseJson } from '../parse-json.ts';
import { request, type Dispatcher } from 'undici';
import { errorCode } from '../error.ts';
import { HTTP_1, linesOf, readBody } from '../http-answer.ts';
import { promptly } from '../promptly.ts';
import { ApiError, hasStatus } from './api-error.ts';

/** A request as undici takes it. */
export interface SentRequest {
  readonly method: Method;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
  readonly dispatcher?: Dispatcher;
  readonly headersTimeout: number;
  readonly bodyTimeout: number;
}

/** The parts of an answer that this client reads. */
export type KubeResponse = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers'> & {
  readonly body: AsyncIterable<Buffer>;
};

/** How to reach the API server and authenticate to it. */
export interface Connection {
  /** What answers, in messages; default: the API server. */
  readonly what?: string;
  /** `https://10.96.0.1:443` */
  readonly url: string;
  /** Sends a request; default: over HTTP. */
  readonly send?: ((url: URL, request: SentRequest) => Promise<KubeResponse>) | undefined;
  /** Called before each request: returns the headers that authenticate it and the connection pool to use. */
  prepare(): Promise<{ readonly headers: Readonly<Record<string, string>>; readonly dispatcher?: Dispatcher }>;
  /** Drops all connections, because one that was cut may look open for minutes. Calls in flight fail. */
  reconnect(): void;
  /**
   * Called after a call got no response: new calls get new connections, because other idle ones may be dead too. Calls in flight
   * continue.
   */
  distrust?(): void;
  close(): Promise<void>;
}

export interface ClientOptions {
  readonly userAgent: string;
  /** A healthy API server answers in milliseconds; an overloaded one says so (429), and a slower one counts as unreachable. */
  readonly callTimeoutMs: number;
  /**
   * The range from which the duration of a watch is picked at random, so that clients do not all reconnect at once. Default 30 to
   * 40 s.
   */
  readonly watchSeconds?: { readonly least: number; readonly most: number };
  /** A watch without any data for longer than this is on a dead connection. Default: 5 s more than the longest watch. */
  readonly watchSilenceMs?: number;
  /** How many objects of a list are asked for at a time. Default 500. */
  readonly pageSize?: number;
  readonly random?: () => number;
}

/** A watch on a dead connection looks like an idle one until it was due to end, so watches are short. */
const WATCH_SECONDS = { least: 30, most: 40 };
const WATCH_GRACE_MS = 5_000;

/** The fields of an object that this client reads. */
export interface KubernetesObject {
  readonly metadata: {
    readonly name: string;
    readonly resourceVersion: string;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

/** A list, or a page of one; all pages show the same moment. */
interface ObjectList {
  readonly items: readonly KubernetesObject[];
  readonly resourceVersion: string;
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: KubernetesObject;
}

export interface CallOptions {
  readonly query?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Replaces the default deadline. */
  readonly timeoutMs?: number | undefined;
  /** Type of the request body; default `application/json`. */
  readonly contentType?: string;
}

interface WatchOptions {
  readonly query: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** So many objects of the largest kind have a few megabytes, which are read well within the deadline of a call. */
const PAGE_SIZE = 500;
/** A list that takes so long that its place is forgotten in between (minutes) is begun again this often. */
const LIST_ATTEMPTS = 3;
/** The longest response body that is read: a page of large objects, or a list from a cache, which has no pages. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/** One object in a watch: etcd stores none above 1.5 MB. */
const MAX_EVENT_BYTES = 4 * 1024 * 1024;

/** RFC 7396. */
export const MERGE_PATCH = 'application/merge-patch+json';

/** Throws ApiError. */
export const mergePatch = (api: Pick<KubernetesClient, 'call'>, path: string, change: object): Promise<unknown> =>
  api.call('PATCH', path, change, { contentType: MERGE_PATCH });

export class KubernetesClient {
  readonly #connection: Connection;
  readonly #options: ClientOptions;
  readonly #watchSeconds: NonNullable<ClientOptions['watchSeconds']>;
  readonly #watchSilenceMs: number;

  constructor(connection: Connection, options: ClientOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#watchSeconds = options.watchSeconds ?? WATCH_SECONDS;
    this.#watchSilenceMs = options.watchSilenceMs ?? this.#watchSeconds.most * 1000 + WATCH_GRACE_MS;
  }

  /** Returns the parsed JSON of the response. Throws ApiError. */
  async call(method: Method, path: string, body?: unknown, options: CallOptions = {}): Promise<unknown> {
    const timeoutMs = options.timeoutMs ?? this.#options.callTimeoutMs;
    const deadlineMs = performance.now() + timeoutMs;
    const timeout = AbortSignal.timeout(timeoutMs);
    const signal = options.signal ? AbortSignal.any([timeout, options.signal]) : timeout;
    const response = await this.#send(method, path, body, { ...options, signal }, options.signal);
    try {
      const text = await textOf(response.body);
      // After the process was frozen, a late response can be processed before the timer fires. It is out of date all the same.
      if (performance.now() > deadlineMs) throw new DOMException('it came too late', 'TimeoutError');
      if (response.statusCode >= 300) throw refusalOf(response, text);
      return text === '' ? undefined : (JSON.parse(text) as unknown);
    } catch (cause) {
      if (cause instanceof ApiError) throw cause;
      if (cause instanceof SyntaxError) throw new ApiError(0, 'INVALID_ANSWER', 'an answer is not JSON', { cause });
      throw this.#unanswered(cause, options.signal);
    }
  }

  async get(path: string, options?: CallOptions): Promise<KubernetesObject> {
    return asObject(await this.call('GET', path, undefined, options));
  }

  /** The whole list. Read it by `pages` if it may be long and not all of it has to be kept. */
  async list(path: string, options?: CallOptions): Promise<ObjectList> {
    for (let attempt = 1; ; attempt++) {
      try {
        const pages: ObjectList[] = [];
        for await (const page of this.pages(path, options)) pages.push(page);
        return { items: pages.flatMap(({ items }) => items), resourceVersion: pages[0]?.resourceVersion ?? '' };
      } catch (err) {
        if (!hasStatus(err, 410) || attempt === LIST_ATTEMPTS) throw err;
      }
    }
  }

  /**
   * The list page by page; the deadline holds for each page. Throws ApiError; status 410 means that the list has to be begun
   * again, because the moment that its first page showed is forgotten.
   */
  async *pages(path: string, options: CallOptions = {}): AsyncGenerator<ObjectList> {
    const { resourceVersion, ...query } = options.query ?? {};
    const limit = String(this.#options.pageSize ?? PAGE_SIZE);
    // https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks
    let place: { readonly continue: string } | { readonly resourceVersion?: string } | undefined =
      resourceVersion === undefined ? {} : { resourceVersion };
    while (place) {
      const list = await this.call('GET', path, undefined, { ...options, query: { ...query, limit, ...place } });
      const { items, metadata } = (list ?? {}) as { items?: unknown; metadata?: Readonly<Record<string, unknown>> };
      if (!Array.isArray(items) || typeof metadata?.['resourceVersion'] !== 'string') throw invalid('a list');
      yield { items: items.map(asObject), resourceVersion: metadata['resourceVersion'] };
      const next = metadata['continue'];
      place = typeof next === 'string' && next !== '' ? { continue: next } : undefined;
    }
  }

  /**
   * Server-side apply (https://kubernetes.io/docs/reference/using-api/server-side-apply/) with `force`: takes over fields from
   * other managers.
   */
  async apply(path: string, fieldManager: string, body: unknown): Promise<KubernetesObject> {
    const query = { fieldManager, force: 'true' };
    // Every JSON document is also YAML.
    return asObject(await this.call('PATCH', path, body, { query, contentType: 'application/apply-patch+yaml' }));
  }

  /**
   * Events since `resourceVersion`, until the server ends the watch or `signal` aborts. Throws ApiError; status 410 means that
   * the caller must list again.
   */
  async *watch(path: string, resourceVersion: string, { query, signal }: WatchOptions): AsyncGenerator<WatchEvent> {
    const { least, most } = this.#watchSeconds;
    const random = this.#options.random ?? Math.random;
    const asked = {
      ...query,
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion,
      timeoutSeconds: String(Math.round(least + (most - least) * random())),
    };
    const response = await this.#send('GET', path, undefined, { signal, query: asked }, signal);
    // The status says enough.
    if (response.statusCode >= 300) throw refusalOf(response, await textOf(response.body).catch(() => ''));
    try {
      for await (const line of linesOf(response.body, MAX_EVENT_BYTES, eventTooLong)) yield eventOf(line);
    } catch (cause) {
      if (cause instanceof ApiError) throw cause;
      throw this.#unanswered(cause, signal);
    }
  }

  reconnect(): void {
    this.#connection.reconnect();
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  /** `caller` is the caller's signal: once it has aborted, a failure is not blamed on the server. */
  async #send(
    method: Method,
    path: string,
    body: unknown,
    options: CallOptions,
    caller: AbortSignal | undefined,
  ): Promise<KubeResponse> {
    const { callTimeoutMs, userAgent } = this.#options;
    const url = new URL(path, this.#connection.url);
    for (const [key, value] of Object.entries(options.query ?? {})) url.searchParams.set(key, value);
    try {
      const { headers, dispatcher } = await promptly(this.#connection.prepare(), options.signal);
      const send: NonNullable<Connection['send']> = this.#connection.send ?? request;
      const answer = send(url, {
        ...HTTP_1,
        method,
        ...(dispatcher && { dispatcher }),
        headersTimeout: options.timeoutMs ?? callTimeoutMs,
        bodyTimeout: this.#watchSilenceMs,
        headers: {
          accept: 'application/json',
          'user-agent': userAgent,
          ...headers,
          ...(body !== undefined && { 'content-type': options.contentType ?? 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(options.signal && { signal: options.signal }),
      });
      // undici rejects only once the request has a connection, which on a dead link takes until its connect timeout; it then drops
      // the request unsent.
      return await promptly(answer, options.signal);
    } catch (cause) {
      if (cause instanceof ApiError) throw cause;
      throw this.#unanswered(cause, caller);
    }
  }

  #unanswered(cause: unknown, caller: AbortSignal | undefined): ApiError {
    if (!caller?.aborted) this.#connection.distrust?.();
    return unreachable(cause, this.#connection.what);
  }
}

const invalid = (what: string): ApiError => new ApiError(0, 'INVALID_ANSWER', `the API server's answer is not ${what}`);

/**
 * Describes why there was no response. The address is left out, because the message ends up in statuses and in logs of others.
 */
function unreachable(cause: unknown, what = 'the API server'): ApiError {
  const code = errorCode(cause);
  const name = cause instanceof Error ? cause.name : String(cause);
  const why = name === 'TimeoutError' ? 'it did not answer in time' : (code ?? name);
  return new ApiError(0, 'UNREACHABLE', `${what} cannot be reached: ${why}`, { cause });
}

function refusalOf({ statusCode, headers }: KubeResponse, text: string): ApiError {
  // A proxy in front of the server answers in another format.
  const said = (parseJson(text) ?? {}) as { reason?: unknown; message?: unknown };
  const reason = typeof said.reason === 'string' && said.reason !== '' ? said.reason : `Status${statusCode}`;
  const message = typeof said.message === 'string' ? said.message.slice(0, 1_000) : `it answered ${statusCode}`;
  const seconds = Number(headers['retry-after']);
  const retryAfterMs = headers['retry-after'] !== undefined && seconds >= 0 ? seconds * 1000 : undefined;
  return new ApiError(statusCode, reason, message, { retryAfterMs });
}

function asObject(value: unknown): KubernetesObject {
  const { metadata } = (value ?? {}) as { metadata?: { name?: unknown; resourceVersion?: unknown } };
  if (typeof metadata?.name !== 'string' || typeof metadata.resourceVersion !== 'string') throw invalid('an object');
  return value as KubernetesObject;
}

/** Parses one line of a watch (https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes). */
function eventOf(line: string): WatchEvent {
  const event = parse(line) as { type?: unknown; object?: { code?: unknown; reason?: unknown; message?: unknown } };
  if (event.type === 'ERROR') {
    const { code, reason, message } = event.object ?? {};
    const text = typeof message === 'string' ? message.slice(0, 1_000) : 'the watch failed';
    throw new ApiError(Number(code) || 0, typeof reason === 'string' ? reason : 'WatchError', text);
  }
  if (event.type === 'BOOKMARK') {
    const { resourceVersion } =
      (event.object as { metadata?: { resourceVersion?: unknown } } | undefined)?.metadata ?? {};
    if (typeof resourceVersion !== 'string') throw invalid('a bookmark');
    return { type: 'BOOKMARK', object: { metadata: { name: '', resourceVersion } } };
  }
  if (event.type !== 'ADDED' && event.type !== 'MODIFIED' && event.type !== 'DELETED') throw invalid('a watch event');
  return { type: event.type, object: asObject(event.object) };
}

function parse(line: string): object {
  try {
    return (JSON.parse(line) ?? {}) as object;
  } catch (cause) {
    throw new ApiError(0, 'INVALID_ANSWER', 'a watch event is not JSON', { cause });
  }
}

const tooLong = (): ApiError => new ApiError(0, 'INVALID_ANSWER', 'an answer is too long');
const eventTooLong = (): ApiError => new ApiError(0, 'INVALID_ANSWER', 'a watch event is too long');
const textOf = async (body: AsyncIterable<Buffer>): Promise<string> =>
  (await readBody(body, MAX_ANSWER_BYTES, tooLong)).toString('utf8');
