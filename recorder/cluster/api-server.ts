// The API server of Kubernetes as a recorder asks it: with the token of its pod, over one pool of connections. A thin
// client: the full one costs 90 MB of memory, which a recorder does not have.

import { readFile } from 'node:fs/promises';
import { Agent } from 'undici';
import type { Clock } from '../../base/clock.ts';
import { ApiError } from '../../base/kubernetes/api-error.ts';
import { type Connection, KubernetesClient } from '../../base/kubernetes/client.ts';

export { ApiError as ApiServerError } from '../../base/kubernetes/api-error.ts';
export type { KubernetesObject } from '../../base/kubernetes/client.ts';

/** Where the API server is and who asks, as every pod is told (https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/). */
export interface ApiServerPlace {
  /** `https://10.96.0.1:443` */
  readonly url: string;
  /** PEM of the authority that signed the server's certificate. */
  readonly ca: string | undefined;
  /** Read again every minute: the kubelet renews it. Undefined: nobody in particular asks. */
  readonly tokenFile: string | undefined;
}

const CALL_TIMEOUT_MS = 5_000;
const CONNECT_TIMEOUT_MS = 3_000;
const TOKEN_MS = 60_000;
const WATCH_SECONDS = { least: 240, most: 360 };
const WATCH_SILENCE_MS = 150_000;

export class ApiServer extends KubernetesClient {
  constructor(place: ApiServerPlace, clock: Clock, random: () => number = Math.random) {
    super(new PodConnection(place, clock), {
      userAgent: 'kube-nvr-recorder',
      callTimeoutMs: CALL_TIMEOUT_MS,
      watchSeconds: WATCH_SECONDS,
      watchSilenceMs: WATCH_SILENCE_MS,
      random,
    });
  }
}

class PodConnection implements Connection {
  readonly #place: ApiServerPlace;
  readonly #clock: Clock;
  #agent: Agent;
  #token: { readonly value: string; readonly readMs: number } | undefined;

  constructor(place: ApiServerPlace, clock: Clock) {
    this.#place = place;
    this.#clock = clock;
    this.#agent = this.#connect();
  }

  get url(): string {
    return this.#place.url;
  }

  async prepare(): Promise<{ headers: Record<string, string>; dispatcher: Agent }> {
    const token = await this.#readToken();
    return { headers: token === undefined ? {} : { authorization: `Bearer ${token}` }, dispatcher: this.#agent };
  }

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
    });
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
      throw new ApiError(0, 'NO_TOKEN', 'the token of the service account cannot be read', { cause });
    }
  }
}
