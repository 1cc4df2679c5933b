// How the operator reaches its API server. @kubernetes/client-node handles kubeconfig files, service accounts, exec plug-ins and
// proxies. The connection pool is kept here, because the library makes a new one, and so a TLS handshake, for each call.

import { KubeConfig } from '@kubernetes/client-node';
import type { Dispatcher } from 'undici';
import type { Clock } from '../../base/clock.ts';
import type { Connection } from '../../base/kubernetes/client.ts';
import { quietly } from '../../base/error.ts';

type RequestContext = Parameters<KubeConfig['applySecurityAuthentication']>[0];

/** Certificates and CAs are files that get renewed: after this time a new pool reads them again. */
const POOL_MS = 300_000;

/** The server that the library assumes when it finds no cluster. */
const SUPPOSED = 'http://localhost:8080';

/** `file` undefined: the kubeconfig that kubectl would use, or else the pod's service account. Throws if there is neither. */
export function loadKubeConfig(file: string | undefined): KubeConfig {
  const config = new KubeConfig();
  if (file === undefined) config.loadFromDefault();
  else config.loadFromFile(file);
  if (config.getCurrentCluster()?.server === SUPPOSED) {
    throw new Error('there is no cluster: this is not a pod, and neither --kubeconfig nor KUBECONFIG names a file');
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
    void quietly(old?.dispatcher.destroy());
  }

  distrust(): void {
    const old = this.#pool;
    this.#pool = undefined;
    void quietly(old?.dispatcher.close());
  }

  async close(): Promise<void> {
    await this.#pool?.dispatcher.destroy();
  }

  /** Returns the pool to use. `made` is the library's new one, which has no connections until it is used. */
  #reuse(made: Dispatcher | undefined): Dispatcher | undefined {
    if (!made) return undefined;
    const nowMs = this.#clock.monotonicMs();
    if (this.#pool && nowMs - this.#pool.bornMs < POOL_MS) return this.#pool.dispatcher;
    // Completes once its calls and watches have ended.
    void quietly(this.#pool?.dispatcher.close());
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
