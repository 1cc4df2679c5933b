// A mirror of some objects of the API server: listed once, then kept by a watch, listed anew when in doubt. It says when
// the mirror was whole last, so that an answer is never mistaken for silence, nor silence for an answer.

import { Backoff } from '../../base/backoff.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { ApiServerError, type ApiServer, type KubernetesObject } from './api-server.ts';

export interface ObjectWatcherOptions<T> {
  readonly api: Pick<ApiServer, 'list' | 'watch'>;
  /** Of the collection: `/apis/kube-nvr.dev/v1alpha1/namespaces/default/cameras`. */
  readonly path: string;
  /** `fieldSelector`, `labelSelector`. */
  readonly query?: Readonly<Record<string, string>>;
  /** Throws for an object that is not what it should be: it is left out, and the log says so. */
  readonly parse: (object: KubernetesObject) => T;
  /** The mirror is another; called again after each list even when nothing changed. */
  readonly changed: () => void;
  readonly clock: Clock;
  readonly log: Log;
}

const RETRY = { firstMs: 250, maxMs: 10_000, jitter: 0.3 };
/** What a watch has silently lost shows at the latest now. */
const RELIST_MS = 600_000;

export class ObjectWatcher<T> {
  readonly #options: ObjectWatcherOptions<T>;
  readonly #backoff = new Backoff(RETRY);
  #objects = new Map<string, T>();
  #isListed = false;
  #run: AbortController | undefined;
  #work: Promise<void> | undefined;

  constructor(options: ObjectWatcherOptions<T>) {
    this.#options = options;
  }

  /** By name. What it holds while the API server is away is what was true last. */
  get objects(): ReadonlyMap<string, T> {
    return this.#objects;
  }

  /** Whether the API server has answered since the start; before, an empty mirror means nothing. */
  get isListed(): boolean {
    return this.#isListed;
  }

  start(): void {
    this.#run = new AbortController();
    const { signal } = this.#run;
    this.#work = this.#follow(signal);
  }

  /** Lists anew at once: after the API server was away, a watch that looks alive may be dead. */
  resync(): void {
    if (!this.#run || this.#run.signal.aborted) return;
    this.#run.abort();
    this.#backoff.reset();
    this.start();
  }

  async close(): Promise<void> {
    this.#run?.abort();
    await this.#work;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { clock, log, path } = this.#options;
    while (!signal.aborted) {
      try {
        let resourceVersion: string | undefined = await this.#list(signal);
        const relistAtMs = clock.monotonicMs() + RELIST_MS;
        // A watch that ends in peace goes on where it was.
        while (resourceVersion !== undefined && !signal.aborted && clock.monotonicMs() < relistAtMs) {
          resourceVersion = await this.#watch(resourceVersion, relistAtMs, signal);
        }
      } catch (err) {
        if (signal.aborted) return;
        if (!(err instanceof ApiServerError)) throw err;
        // Too old a place to go on from is nobody's failure.
        if (err.status === 410) continue;
        const delayMs = Math.max(this.#backoff.next(), err.retryAfterMs ?? 0);
        log.warn({ path, reason: err.reason, problem: err.message, delayMs }, 'watch failed');
        await clock.sleep(delayMs, signal);
      }
    }
  }

  async #list(signal: AbortSignal): Promise<string> {
    const { api, path, query = {} } = this.#options;
    const { items, resourceVersion } = await api.list(path, { query, signal });
    const objects = new Map<string, T>();
    for (const item of items) this.#put(objects, item);
    if (signal.aborted) return resourceVersion;
    this.#objects = objects;
    this.#isListed = true;
    this.#options.changed();
    return resourceVersion;
  }

  /** Where the next watch goes on; undefined to list anew. */
  async #watch(from: string, relistAtMs: number, signal: AbortSignal): Promise<string | undefined> {
    const { api, path, query = {}, clock, changed } = this.#options;
    const ended = new AbortController();
    const timer: Timer = clock.after(Math.max(0, relistAtMs - clock.monotonicMs()), () => ended.abort());
    let resourceVersion = from;
    try {
      for await (const { type, object } of api.watch(path, from, {
        query,
        signal: AbortSignal.any([signal, ended.signal]),
      })) {
        if (signal.aborted) return undefined;
        // Only an event shows that the watch works: a failing server accepts connections as well.
        this.#backoff.reset();
        resourceVersion = object.metadata.resourceVersion;
        if (type === 'BOOKMARK') continue;
        if (type === 'DELETED') this.#objects.delete(object.metadata.name);
        else this.#put(this.#objects, object);
        changed();
      }
      return resourceVersion;
    } catch (err) {
      if (ended.signal.aborted && !signal.aborted) return undefined;
      throw err;
    } finally {
      timer.cancel();
    }
  }

  #put(objects: Map<string, T>, object: KubernetesObject): void {
    const { parse, path, log } = this.#options;
    const { name } = object.metadata;
    try {
      objects.set(name, parse(object));
    } catch (err) {
      // What was known before is not better: its epoch may be old.
      objects.delete(name);
      log.warn({ path, name, problem: err instanceof Error ? err.message : String(err) }, 'object not understood');
    }
  }
}
