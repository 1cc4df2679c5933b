// The API server of Kubernetes as a recorder asks it: JSON over one pool of connections, a deadline for every call, and
// watches as a stream of events. A thin client: the full one costs 90 MB of memory, which a recorder does not have.

import { readFile } from 'node:fs/promises';
import { Agent, errors, request, type Dispatcher } from 'undici';
import type { Clock } from '../../base/clock.ts';

/** Where the API server is and who asks, as every pod is told (https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/). */
export interface ApiServerPlace {
  /** `https://10.96.0.1:443` */
  readonly url: string;
  /** PEM of the authority that signed the server's certificate. */
  readonly ca: string | undefined;
  /** Read again every minute: the kubelet renews it. Undefined: nobody in particular asks. */
  readonly tokenFile: string | undefined;
}

/** An answer that is no success, or none at all: `status` 0. */
export class ApiServerError extends Error {
  readonly status: number;
  /** `reason` of the Status object, as `NotFound`, or a code of ours: `UNREACHABLE`, `INVALID_ANSWER`. */
  readonly reason: string;
  /** What the server asks us to wait before the next try. */
  readonly retryAfterMs: number | undefined;

  constructor(
    status: number,
    reason: string,
    message: string,
    options: ErrorOptions & { readonly retryAfterMs?: number | undefined } = {},
  ) {
    super(message, options);
    this.name = 'ApiServerError';
    this.status = status;
    this.reason = reason;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** What every object of the API server has, as far as a recorder reads it. */
export interface KubernetesObject {
  readonly metadata: {
    readonly name: string;
    readonly resourceVersion: string;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

export interface ObjectList {
  readonly items: readonly KubernetesObject[];
  readonly resourceVersion: string;
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: KubernetesObject;
}

export interface CallOptions {
  readonly query?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Instead of the usual deadline. */
  readonly timeoutMs?: number;
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A healthy API server answers in milliseconds; one that is overloaded says so (429) or is as good as away. */
const CALL_TIMEOUT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 3_000;
const TOKEN_MS = 60_000;
/** The longest answer that is read: a list of thousands of cameras. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/** One object of a watch: etcd holds none beyond 1.5 MB. */
const MAX_EVENT_BYTES = 4 * 1024 * 1024;
/** The server ends a watch after this time; nodes do not all come back in one moment. */
const WATCH_SECONDS = { least: 240, most: 360 };
/** Bookmarks come about once a minute: a watch that is silent for longer hangs on a dead connection. */
const WATCH_SILENCE_MS = 150_000;

export class ApiServer {
  readonly #place: ApiServerPlace;
  readonly #clock: Clock;
  readonly #random: () => number;
  #agent: Agent;
  #token: { readonly value: string; readonly readMs: number } | undefined;

  constructor(place: ApiServerPlace, clock: Clock, random: () => number = Math.random) {
    this.#place = place;
    this.#clock = clock;
    this.#random = random;
    this.#agent = this.#connect();
  }

  /** The answer's JSON. Throws ApiServerError. */
  async call(method: Method, path: string, body?: unknown, options: CallOptions = {}): Promise<unknown> {
    const timeout = AbortSignal.timeout(options.timeoutMs ?? CALL_TIMEOUT_MS);
    const signal = options.signal ? AbortSignal.any([timeout, options.signal]) : timeout;
    const response = await this.#send(method, path, body, { ...options, signal });
    try {
      const text = await textOf(response.body);
      if (response.statusCode >= 300) throw refusalOf(response, text);
      return text === '' ? undefined : (JSON.parse(text) as unknown);
    } catch (cause) {
      if (cause instanceof ApiServerError) throw cause;
      if (cause instanceof SyntaxError)
        throw new ApiServerError(0, 'INVALID_ANSWER', 'an answer is no JSON', { cause });
      throw unreachable(cause);
    }
  }

  async get(path: string, options?: CallOptions): Promise<KubernetesObject> {
    return asObject(await this.call('GET', path, undefined, options));
  }

  async list(path: string, options?: CallOptions): Promise<ObjectList> {
    const list = await this.call('GET', path, undefined, options);
    const { items, metadata } = (list ?? {}) as { items?: unknown; metadata?: { resourceVersion?: unknown } };
    if (!Array.isArray(items) || typeof metadata?.resourceVersion !== 'string') throw invalid('a list');
    return { items: items.map(asObject), resourceVersion: metadata.resourceVersion };
  }

  /** Server-side apply (https://kubernetes.io/docs/reference/using-api/server-side-apply/); takes fields from others. */
  async apply(path: string, fieldManager: string, body: unknown): Promise<KubernetesObject> {
    const query = { fieldManager, force: 'true' };
    // JSON is YAML.
    return asObject(await this.call('PATCH', path, body, { query }));
  }

  /**
   * Events since `resourceVersion`, until the server ends the watch or `signal` aborts. Throws ApiServerError; with
   * status 410 the list must be read anew.
   */
  async *watch(
    path: string,
    resourceVersion: string,
    { query, signal }: { readonly query: Readonly<Record<string, string>>; readonly signal: AbortSignal },
  ): AsyncGenerator<WatchEvent> {
    const { least, most } = WATCH_SECONDS;
    const response = await this.#send('GET', path, undefined, {
      signal,
      query: {
        ...query,
        watch: 'true',
        allowWatchBookmarks: 'true',
        resourceVersion,
        timeoutSeconds: String(Math.round(least + (most - least) * this.#random())),
      },
    });
    if (response.statusCode >= 300) throw refusalOf(response, await textOf(response.body).catch(() => ''));
    try {
      for await (const line of linesOf(response.body)) yield eventOf(line);
    } catch (cause) {
      if (cause instanceof ApiServerError) throw cause;
      throw unreachable(cause);
    }
  }

  /** Forgets every connection: one that was cut may look open for minutes. Calls under way fail. */
  reconnect(): void {
    const old = this.#agent;
    this.#agent = this.#connect();
    void old.destroy().catch(() => {});
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #connect(): Agent {
    const { ca } = this.#place;
    return new Agent({
      connect: { timeout: CONNECT_TIMEOUT_MS, ...(ca === undefined ? {} : { ca }) },
      connections: 8,
      headersTimeout: CALL_TIMEOUT_MS,
      bodyTimeout: WATCH_SILENCE_MS,
    });
  }

  async #send(method: Method, path: string, body: unknown, options: CallOptions): Promise<Dispatcher.ResponseData> {
    const url = new URL(path, this.#place.url);
    for (const [key, value] of Object.entries(options.query ?? {})) url.searchParams.set(key, value);
    const token = await this.#readToken();
    const headers: Record<string, string> = { accept: 'application/json', 'user-agent': 'kube-nvr-recorder' };
    if (token !== undefined) headers['authorization'] = `Bearer ${token}`;
    if (body !== undefined) {
      headers['content-type'] = method === 'PATCH' ? 'application/apply-patch+yaml' : 'application/json';
    }
    try {
      return await request(url, {
        method,
        dispatcher: this.#agent,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(options.signal ? { signal: options.signal } : {}),
      });
    } catch (cause) {
      throw unreachable(cause);
    }
  }

  async #readToken(): Promise<string | undefined> {
    const { tokenFile } = this.#place;
    if (tokenFile === undefined) return undefined;
    const nowMs = this.#clock.monotonicMs();
    if (this.#token && nowMs - this.#token.readMs < TOKEN_MS) return this.#token.value;
    try {
      this.#token = { value: (await readFile(tokenFile, 'utf8')).trim(), readMs: nowMs };
      return this.#token.value;
    } catch (cause) {
      // A file that is being replaced: the old token is good for some minutes more.
      if (this.#token) return this.#token.value;
      throw new ApiServerError(0, 'NO_TOKEN', 'the token of the service account cannot be read', { cause });
    }
  }
}

const invalid = (what: string): ApiServerError =>
  new ApiServerError(0, 'INVALID_ANSWER', `the API server's answer is not ${what}`);

/** Why nothing was heard, without the address: messages go into status and logs of others. */
function unreachable(cause: unknown): ApiServerError {
  const code = cause instanceof errors.UndiciError || isSystemError(cause) ? cause.code : undefined;
  const name = cause instanceof Error ? cause.name : String(cause);
  const why = name === 'TimeoutError' ? 'it did not answer in time' : (code ?? name);
  return new ApiServerError(0, 'UNREACHABLE', `the API server cannot be reached: ${why}`, { cause });
}

const isSystemError = (value: unknown): value is NodeJS.ErrnoException & { code: string } =>
  value instanceof Error && typeof (value as NodeJS.ErrnoException).code === 'string';

function refusalOf({ statusCode, headers }: Dispatcher.ResponseData, text: string): ApiServerError {
  let said: { reason?: unknown; message?: unknown } = {};
  try {
    said = (JSON.parse(text) ?? {}) as typeof said;
  } catch {
    // A proxy in front of it answers in its own words.
  }
  const reason = typeof said.reason === 'string' && said.reason !== '' ? said.reason : `Status${statusCode}`;
  const message = typeof said.message === 'string' ? said.message.slice(0, 1_000) : `it answered ${statusCode}`;
  const seconds = Number(headers['retry-after']);
  const retryAfterMs = headers['retry-after'] !== undefined && seconds >= 0 ? seconds * 1000 : undefined;
  return new ApiServerError(statusCode, reason, message, { retryAfterMs });
}

function asObject(value: unknown): KubernetesObject {
  const { metadata } = (value ?? {}) as { metadata?: { name?: unknown; resourceVersion?: unknown } };
  if (typeof metadata?.name !== 'string' || typeof metadata.resourceVersion !== 'string') throw invalid('an object');
  return value as KubernetesObject;
}

/** A line of a watch (https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes). */
function eventOf(line: string): WatchEvent {
  const event = parse(line) as { type?: unknown; object?: { code?: unknown; reason?: unknown; message?: unknown } };
  if (event.type === 'ERROR') {
    const { code, reason, message } = event.object ?? {};
    const text = typeof message === 'string' ? message.slice(0, 1_000) : 'the watch failed';
    throw new ApiServerError(Number(code) || 0, typeof reason === 'string' ? reason : 'WatchError', text);
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
    throw new ApiServerError(0, 'INVALID_ANSWER', 'a watch event is no JSON', { cause });
  }
}

async function textOf(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MAX_ANSWER_BYTES) throw new ApiServerError(0, 'INVALID_ANSWER', 'an answer is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

async function* linesOf(body: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const chunk of body) {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      const line = Buffer.concat([...rest, chunk.subarray(start, end)]).toString('utf8');
      rest = [];
      restBytes = 0;
      start = end + 1;
      if (line.trim() !== '') yield line;
    }
    if (start === chunk.length) continue;
    rest.push(chunk.subarray(start));
    restBytes += chunk.length - start;
    if (restBytes > MAX_EVENT_BYTES) throw new ApiServerError(0, 'INVALID_ANSWER', 'a watch event is too long');
  }
}
