// The objects of one kind in each namespace that is followed. A role of the cluster could show them all with one watch; but
// rights to what is not of our own kinds are given by namespace, and may come later than the objects that need them.

import { nameOfKey } from '../kube/api.ts';
import type { Change, Informer } from '../kube/informer.ts';

export class NamespacedInformers<T> {
  readonly #make: (namespace: string) => Informer<T>;
  readonly #informers = new Map<string, Informer<T>>();
  readonly #handlers: ((change: Change<T>) => void)[] = [];

  constructor(make: (namespace: string) => Informer<T>) {
    this.#make = make;
  }

  /** One that is followed already goes on. */
  follow(namespace: string): void {
    if (this.#informers.has(namespace)) return;
    const informer = this.#make(namespace);
    for (const handler of this.#handlers) informer.onChange(handler);
    this.#informers.set(namespace, informer);
    informer.start();
  }

  /** Its objects are forgotten, and no handler is told. */
  async leave(namespace: string): Promise<void> {
    const informer = this.#informers.get(namespace);
    this.#informers.delete(namespace);
    await informer?.close();
  }

  /** Undefined where it is not followed. */
  in(namespace: string): Informer<T> | undefined {
    return this.#informers.get(namespace);
  }

  get(key: string): T | undefined {
    return this.in(nameOfKey(key).namespace ?? '')?.get(key);
  }

  /** Since the API server was heard, where it was heard least; of namespaces that refuse us, nothing is expected. */
  get ageMs(): number {
    const heard = [...this.#informers.values()].filter(({ isRefused }) => !isRefused);
    return Math.max(0, ...heard.map(({ ageMs }) => ageMs));
  }

  /** Objects that are there, and those that are not understood. */
  get counts(): readonly [objects: number, invalid: number] {
    const informers = [...this.#informers.values()];
    const sum = (of: (informer: Informer<T>) => number): number => informers.reduce((n, one) => n + of(one), 0);
    return [sum(({ objects }) => objects.size), sum(({ invalid }) => invalid.length)];
  }

  /** Of namespaces that are followed later as well. */
  onChange(handler: (change: Change<T>) => void): void {
    this.#handlers.push(handler);
    for (const informer of this.#informers.values()) informer.onChange(handler);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#informers.keys()].map((namespace) => this.leave(namespace)));
  }
}
