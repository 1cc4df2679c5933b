// The object store over etcd as tests speak it: the same calls as those of the client of a real API server.

import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { systemClock } from '../../base/clock.ts';
import { EtcdClient } from '../../base/etcd/client.ts';
import { readBody } from '../../base/http-answer.ts';
import type { Method } from '../../base/kubernetes/client.ts';
import { StoreConnection } from '../../store/connection.ts';
import type { Seal } from '../../store/objects.ts';
import { ApiError, type ApiClient } from './api-client.ts';

/** What both servers are tried by. */
export type ContractApi = Pick<ApiClient, 'get' | 'list' | 'create' | 'replace' | 'patch' | 'delete' | 'watch'>;

/** Turns the bytes round, so that a test finds out if they are stored as they are. */
export const TURNING_SEAL = {
  seal: (plain: Buffer): Buffer => Buffer.from(plain).reverse(),
  open: (sealed: Buffer): Buffer => Buffer.from(sealed).reverse(),
};

export class StoreApi implements ContractApi {
  readonly connection: StoreConnection;
  readonly etcd: EtcdClient;

  /** `from`: the URL of etcd, or a client of it. */
  constructor(from: string | EtcdClient, seal: Seal = TURNING_SEAL) {
    this.etcd = typeof from === 'string' ? new EtcdClient({ endpoints: () => [from] }) : from;
    this.connection = new StoreConnection({ etcd: this.etcd, seal, clock: systemClock });
  }

  get<T>(path: string): Promise<T> {
    return this.#json('GET', path);
  }

  async list<T>(path: string): Promise<readonly T[]> {
    return (await this.#json<{ items: readonly T[] }>('GET', path)).items;
  }

  create<T>(path: string, body: unknown): Promise<T> {
    return this.#json('POST', path, body);
  }

  replace<T>(path: string, body: unknown): Promise<T> {
    return this.#json('PUT', path, body);
  }

  patch<T>(path: string, type: string, body: unknown): Promise<T> {
    const contentType = type === 'apply' ? 'application/apply-patch+yaml' : `application/${type}-patch+json`;
    return this.#json('PATCH', path, body, contentType);
  }

  delete<T>(path: string, options: unknown = {}): Promise<T> {
    return this.#json('DELETE', path, options);
  }

  async *watch<T>(path: string, signal: AbortSignal): AsyncGenerator<T> {
    const answer = await this.#send('GET', `${path}${path.includes('?') ? '&' : '?'}watch=true`, undefined, '', signal);
    for await (const line of createInterface({ input: Readable.from(answer.body) })) yield JSON.parse(line) as T;
  }

  close(): Promise<void> {
    return this.connection.close();
  }

  async #json<T>(method: Method, path: string, body?: unknown, contentType = 'application/json'): Promise<T> {
    const answer = await this.#send(method, path, body, contentType);
    const text = (await readBody(answer.body, Infinity, () => new Error('too long'))).toString('utf8');
    const json = JSON.parse(text) as { reason: string; message: string };
    if (answer.statusCode >= 300) throw new ApiError(answer.statusCode, json.reason, json.message);
    return json as T;
  }

  #send(method: Method, path: string, body: unknown, contentType: string, signal?: AbortSignal) {
    return this.connection.send(new URL(path, this.connection.url), {
      method,
      headers: { 'user-agent': 'test', 'content-type': contentType },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
      headersTimeout: 5_000,
      bodyTimeout: 60_000,
    });
  }
}
