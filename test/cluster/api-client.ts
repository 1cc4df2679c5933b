// The Kubernetes API as tests and process kubelets speak it: JSON over HTTPS, with a client certificate or a token.

import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { createInterface } from 'node:readline';

interface Credentials {
  /** `https://ADDRESS:PORT` */
  readonly server: string;
  /** PEM. */
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
}

export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
}

export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
}

export interface List<T> {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly T[];
}

interface WatchEvent<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: T;
}

/** An answer with another status than 2xx; `message` is the API server's. */
export class ApiError extends Error {
  readonly status: number;
  readonly reason: string;

  constructor(status: number, reason: string, message: string) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

type PatchType = 'merge' | 'strategic-merge' | 'json' | 'apply';

const CONTENT_TYPES: Readonly<Record<PatchType, string>> = {
  merge: 'application/merge-patch+json',
  'strategic-merge': 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
};
const REQUEST_TIMEOUT_MS = 60_000;

interface RequestOptions {
  readonly body?: unknown;
  readonly contentType?: string;
  readonly signal?: AbortSignal | undefined;
}

export class ApiClient {
  readonly credentials: Credentials;
  readonly #agent: Agent;

  constructor(credentials: Credentials) {
    this.credentials = credentials;
    const { ca, cert, key } = credentials;
    this.#agent = new Agent({ keepAlive: true, ca, ...(cert !== undefined && key !== undefined ? { cert, key } : {}) });
  }

  /** The same API server for somebody with this token. */
  withToken(token: string): ApiClient {
    const { server, ca } = this.credentials;
    return new ApiClient({ server, ca, token });
  }

  /** `path` begins with `/api/v1/` or `/apis/`. */
  get<T = KubeObject>(path: string, signal?: AbortSignal): Promise<T> {
    return this.#json('GET', path, { signal });
  }

  /** All objects of a list. */
  async list<T = KubeObject>(path: string): Promise<readonly T[]> {
    return (await this.get<List<T>>(path)).items;
  }

  create<T = KubeObject>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
    return this.#json('POST', path, { body, signal });
  }

  replace<T = KubeObject>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
    return this.#json('PUT', path, { body, signal });
  }

  patch<T = KubeObject>(path: string, type: PatchType, body: unknown, signal?: AbortSignal): Promise<T> {
    return this.#json('PATCH', path, { body, contentType: CONTENT_TYPES[type], signal });
  }

  delete<T = KubeObject>(path: string, options: unknown = {}, signal?: AbortSignal): Promise<T> {
    return this.#json('DELETE', path, { body: options, signal });
  }

  /** The plain text at `path`, as `/readyz` answers. */
  async text(path: string, timeoutMs = REQUEST_TIMEOUT_MS): Promise<string> {
    return readAll(await this.#send('GET', path, { signal: AbortSignal.timeout(timeoutMs) }));
  }

  /** Events until the API server ends the watch or `signal` ends it. */
  async *watch<T = KubeObject>(path: string, signal: AbortSignal): AsyncGenerator<WatchEvent<T>> {
    const answer = await this.#send('GET', `${path}${path.includes('?') ? '&' : '?'}watch=true`, { signal });
    for await (const line of createInterface({ input: answer })) {
      if (line !== '') yield JSON.parse(line) as WatchEvent<T>;
    }
  }

  /** Closes idle connections. */
  close(): void {
    this.#agent.destroy();
  }

  async #json<T>(method: string, path: string, options: RequestOptions): Promise<T> {
    const timeout = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
    return JSON.parse(await readAll(await this.#send(method, path, { ...options, signal }))) as T;
  }

  async #send(method: string, path: string, options: RequestOptions): Promise<IncomingMessage> {
    const { server, token } = this.credentials;
    const body = options.body === undefined ? undefined : Buffer.from(JSON.stringify(options.body));
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = request(new URL(path, server), {
        method,
        agent: this.#agent,
        headers: {
          accept: 'application/json',
          // Node gives the body of a DELETE no length by itself.
          ...(body ? { 'content-type': options.contentType ?? 'application/json', 'content-length': body.length } : {}),
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
        ...(options.signal ? { signal: options.signal } : {}),
      });
      // A request can fail twice: by its time limit after its answer was cut off.
      outgoing.once('response', resolve).on('error', reject);
      outgoing.end(body);
    });
    const status = answer.statusCode ?? 0;
    if (status < 300) return answer;
    const text = await readAll(answer);
    throw parseError(status, text);
  }
}

/** Of a user with a certificate of the cluster's authority. */
export function clientWithCertificate(
  server: string,
  caFile: string,
  files: { readonly cert: string; readonly key: string },
): ApiClient {
  const read = (file: string): string => readFileSync(file, 'utf8');
  return new ApiClient({ server, ca: read(caFile), cert: read(files.cert), key: read(files.key) });
}

function parseError(status: number, text: string): ApiError {
  try {
    const { reason, message } = JSON.parse(text) as { reason?: string; message?: string };
    return new ApiError(status, reason ?? '', message ?? text);
  } catch {
    return new ApiError(status, '', text);
  }
}

async function readAll(answer: IncomingMessage): Promise<string> {
  answer.setEncoding('utf8');
  let text = '';
  for await (const part of answer) text += part as string;
  return text;
}

/** Whether `url` answers 200, whoever signed its certificate: for health on the loopback address. */
export function answersOk(url: string, timeoutMs = 5_000): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const options = { rejectUnauthorized: false, agent: false, signal: AbortSignal.timeout(timeoutMs) } as const;
    const outgoing = request(url, options, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    outgoing.once('error', reject);
    outgoing.end();
  });
}
