// The connection of a pod to its API server: the address from its environment, and the CA and token from files that the kubelet
// renews (https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/). The full Kubernetes client could do this too,
// but costs a process 90 MB.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { quietly } from '../error.ts';
import { Agent } from 'undici';
import type { Clock } from '../clock.ts';
import { ApiError } from './api-error.ts';
import type { Connection } from './client.ts';
import type { PodPlace } from './pod-place.ts';

interface PodConnectionOptions {
  readonly place: PodPlace;
  /** Maximum number of connections; each watch occupies one for long. Undefined: no limit. */
  readonly connections: number | undefined;
  readonly clock: Clock;
}

const CONNECT_TIMEOUT_MS = 3_000;
/** TCP keep-alive: the first probe after this idle time, then one each second, ten in all (Node's defaults). */
const KEEP_ALIVE_MS = 15_000;
/** How often the files are read again. */
const RENEWED_MS = 60_000;

export class PodConnection implements Connection {
  readonly #options: PodConnectionOptions;
  #agent: Agent;
  #ca: string;
  #token: string;
  #readMs: number;

  private constructor(options: PodConnectionOptions, ca: string, token: string) {
    this.#options = options;
    this.#ca = ca;
    this.#token = token;
    this.#readMs = options.clock.monotonicMs();
    this.#agent = this.#connect();
  }

  /** Rejects when the files of the service account cannot be read. */
  static async open(options: PodConnectionOptions): Promise<PodConnection> {
    const { ca, token } = await filesOf(options.place);
    return new PodConnection(options, ca, token);
  }

  get url(): string {
    return this.#options.place.url;
  }

  async prepare(): Promise<{ headers: Record<string, string>; dispatcher: Agent }> {
    if (this.#options.clock.monotonicMs() - this.#readMs >= RENEWED_MS) await this.#readAgain();
    return { headers: { authorization: `Bearer ${this.#token}` }, dispatcher: this.#agent };
  }

  reconnect(): void {
    const old = this.#agent;
    this.#agent = this.#connect();
    void quietly(old.destroy());
  }

  distrust(): void {
    const old = this.#agent;
    this.#agent = this.#connect();
    void quietly(old.close());
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #connect(): Agent {
    const { connections } = this.#options;
    const connect = {
      timeout: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
      ca: this.#ca,
    };
    return new Agent({ connect, ...(connections !== undefined && { connections }) });
  }

  async #readAgain(): Promise<void> {
    // Even if this fails, the next attempt is a minute later: the token stays valid for some more minutes.
    this.#readMs = this.#options.clock.monotonicMs();
    try {
      const { ca, token } = await filesOf(this.#options.place);
      this.#token = token;
      if (ca === this.#ca) return;
      this.#ca = ca;
      this.distrust();
    } catch {
      // The files are probably being replaced right now: keep the old ones.
    }
  }
}

async function filesOf({ serviceAccountDirectory }: PodPlace): Promise<{ ca: string; token: string }> {
  const read = async (name: string): Promise<string> =>
    (await readFile(join(serviceAccountDirectory, name), 'utf8')).trim();
  try {
    const [ca, token] = await Promise.all([read('ca.crt'), read('token')]);
    return { ca, token };
  } catch (cause) {
    throw new ApiError(0, 'NO_TOKEN', 'the files of the service account cannot be read', { cause });
  }
}
