// One informer per followed namespace for objects of one kind. A ClusterRole could allow one watch for all, but rights to kinds
// that are not ours are granted per namespace, and may be granted later than the objects that need them are created.

import { nameOfKey } from '../kube/api.ts';
import type { Change, Informer } from '../kube/informer.ts';

export class NamespacedInformers<T> {
  readonly #make: (namespace: string) => Informer<T>;
  readonly #informers = new Map<string, Informer<T>>();
  readonly #handlers: ((change: Change<T>) => void)[] = [];

  constructor(make: (namespace: string) => Informer<T>) {
    this.#make = make;
  }

  /** Does nothing for a namespace that is already followed. */
  follow(namespace: string): void {
    if (this.#informers.has(namespace)) return;
    const informer = this.#make(namespace);
    for (const handler of this.#handlers) informer.onChange(handler);
    this.#informers.set(namespace, informer);
    informer.start();
  }

  /** Forgets the objects of the namespace without notifying handlers. */
  async leave(namespace: string): Promise<void> {
    const informer = this.#informers.get(namespace);
    this.#informers.delete(namespace);
    await informer?.close();
  }

  /** Undefined if the namespace is not followed. */
  in(namespace: string): Informer<T> | undefined {
    return this.#informers.get(namespace);
  }

  get(key: string): T | undefined {
    return this.in(nameOfKey(key).namespace ?? '')?.get(key);
  }

  /** Time since the API server was last heard from, the longest of all namespaces; namespaces that refuse access are left out. */
  get ageMs(): number {
    const heard = [...this.#informers.values()].filter(({ isRefused }) => !isRefused);
    return Math.max(0, ...heard.map(({ ageMs }) => ageMs));
  }

  /** The number of objects, and of those that could not be parsed. */
  get counts(): readonly [objects: number, invalid: number] {
    const informers = [...this.#informers.values()];
    const sum = (of: (informer: Informer<T>) => number): number => informers.reduce((n, one) => n + of(one), 0);
    return [sum(({ objects }) => objects.size), sum(({ invalid }) => invalid.length)];
  }

  /** Also for namespaces that are followed later. */
  onChange(handler: (change: Change<T>) => void): void {
    this.#handlers.push(handler);
    for (const informer of this.#informers.values()) informer.onChange(handler);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#informers.keys()].map((namespace) => this.leave(namespace)));
  }
}
