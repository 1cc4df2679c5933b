// How the operator reaches its API server: kubeconfig files, pods, exec plug-ins and proxies are read by
// @kubernetes/client-node; connections are kept here, because it makes a new pool, and so a TLS handshake, for each call.

import { KubeConfig } from '@kubernetes/client-node';
import type { Dispatcher } from 'undici';
import type { Clock } from '../../base/clock.ts';
import type { Connection } from '../../base/kubernetes/client.ts';

type RequestContext = Parameters<KubeConfig['applySecurityAuthentication']>[0];

/** Certificates and authorities are files that are renewed: a pool is used for so long, then made anew from them. */
const POOL_MS = 300_000;

/** What the library supposes when nothing tells of a cluster. */
const SUPPOSED = 'http://localhost:8080';

/** `file` undefined: as kubectl finds it, and the pod's service account when there is none. Throws when neither is there. */
export function loadKubeConfig(file: string | undefined): KubeConfig {
  const config = new KubeConfig();
  if (file === undefined) config.loadFromDefault();
  else config.loadFromFile(file);
  if (config.getCurrentCluster()?.server === SUPPOSED) {
    throw new Error('there is no cluster: this is no pod, and neither --kubeconfig nor KUBECONFIG names a file');
  }
  return config;
}

export class KubeConfigConnection implements Connection {
  readonly url: string;
  readonly #config: KubeConfig;
  readonly #clock: Clock;
  #pool: { readonly dispatcher: Dispatcher; readonly bornMs: number } | undefined;

  constructor(config: KubeConfig, clock: Clock) {
    const cluster = config.getCurrentCluster();
    if (!cluster) throw new Error('the kubeconfig has no current cluster');
    this.url = cluster.server;
    this.#config = config;
    this.#clock = clock;
  }

  async prepare(): Promise<{ headers: Record<string, string>; dispatcher?: Dispatcher }> {
    const context = new Credentials();
    await this.#config.applySecurityAuthentication(context as unknown as RequestContext);
    const dispatcher = this.#reuse(context.dispatcher);
    return { headers: context.headers, ...(dispatcher && { dispatcher }) };
  }

  reconnect(): void {
    const old = this.#pool;
    this.#pool = undefined;
    void old?.dispatcher.destroy().catch(() => {});
  }

  distrust(): void {
    const old = this.#pool;
    this.#pool = undefined;
    void old?.dispatcher.close().catch(() => {});
  }

  async close(): Promise<void> {
    await this.#pool?.dispatcher.destroy();
  }

  /** `made`: the one of the library, which has no connections as long as nothing is asked through it. */
  #reuse(made: Dispatcher | undefined): Dispatcher | undefined {
    if (!made) return undefined;
    const nowMs = this.#clock.monotonicMs();
    if (this.#pool && nowMs - this.#pool.bornMs < POOL_MS) return this.#pool.dispatcher;
    // Ends when the calls under way end, watches among them.
    void this.#pool?.dispatcher.close().catch(() => {});
    this.#pool = { dispatcher: made, bornMs: nowMs };
    return made;
  }
}

/** What `applySecurityAuthentication` fills in. */
class Credentials {
  readonly headers: Record<string, string> = {};
  dispatcher: Dispatcher | undefined;

  setHeaderParam(key: string, value: string): void {
    this.headers[key] = value;
  }

  setDispatcher(dispatcher: Dispatcher): void {
    this.dispatcher = dispatcher;
  }
}
