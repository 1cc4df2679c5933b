// The pools that this replica manages: a runtime is opened when a pool appears, and closed when it is deleted.

import { nameOfKey } from './kube/api.ts';
import type { Caches } from './observe/caches.ts';
import { PoolRuntime, type PoolRuntimeOptions } from './pool-runtime.ts';

interface PoolsOptions extends PoolRuntimeOptions {
  readonly caches: Caches;
  /** Called when a pool was deleted. */
  readonly ended: (key: string) => void;
}

export class Pools {
  readonly #options: PoolsOptions;
  readonly #byKey = new Map<string, PoolRuntime>();
  #closed = false;

  constructor(options: PoolsOptions) {
    this.#options = options;
  }

  /** Undefined when the pool does not exist. */
  get(key: string): PoolRuntime | undefined {
    return this.#byKey.get(key);
  }

  get keys(): readonly string[] {
    return [...this.#byKey.keys()];
  }

  /** To be called when something that the plan of the pool depends on has changed; the pool may be new or deleted. */
  changed(key: string): void {
    if (this.#closed) return;
    const pool = this.#byKey.get(key);
    if (!pool) return this.#open(key);
    if (this.#options.caches.pools.get(key)) return pool.changed();
    pool.close();
    this.#byKey.delete(key);
    const { namespace = '', name } = nameOfKey(key);
    this.#options.metrics.forget(namespace, name);
    this.#options.ended(key);
  }

  close(): void {
    this.#closed = true;
    for (const pool of this.#byKey.values()) pool.close();
  }

  #open(key: string): void {
    const objects = this.#options.caches.poolObjects(key);
    if (objects) this.#byKey.set(key, new PoolRuntime(key, objects, this.#options));
  }
}
