// A copy of all objects of one kind, kept true by a watch and, because watches lose things, by a list now and then.
// What changed is told by key; objects are parsed, frozen, and never handed out half.

import { Backoff } from '../../base/backoff.ts';
import { assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import { isNewer } from '../../base/kubernetes/resource-version.ts';
import type { Log } from '../../base/log.ts';
import {
  ApiError,
  isExpired,
  keyOf,
  type KubeApi,
  type KubeObject,
  type ObjectMetadata,
  type Resource,
  type Selection,
  type WatchEvent,
} from './api.ts';

export type Change<T> =
  | { readonly kind: 'added'; readonly key: string; readonly object: T }
  | { readonly kind: 'changed'; readonly key: string; readonly object: T; readonly previous: T }
  | { readonly kind: 'deleted'; readonly key: string; readonly previous: T };

/** Told what happens; metrics stand behind it. */
export interface InformerObserver {
  event(type: WatchEvent['type']): void;
  failed(): void;
  relisted(): void;
  /** A list showed changes that the watch should have told before, and had not. */
  missed(count: number): void;
  /** How many objects are there, and how many of the server's are not understood. */
  counted(objects: number, invalid: number): void;
}

export interface InformerOptions<T> {
  readonly api: KubeApi;
  readonly resource: Resource;
  readonly selection?: Selection;
  /** Throws for an object that is not what it should be. */
  readonly parse: (object: KubeObject) => T;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer?: InformerObserver | undefined;
  readonly relistMs?: number;
  readonly random?: () => number;
}

export interface Invalid {
  readonly key: string;
  readonly uid: string | undefined;
  readonly message: string;
}

interface Entry<T> {
  readonly object: T;
  readonly resourceVersion: string;
  readonly uid: string | undefined;
}

const RELIST_MS = 600_000;
const RETRY = { firstMs: 250, maxMs: 30_000, jitter: 0.3 };
/** After so many failures in a row the place to go on from is doubted as well. */
const RELIST_AFTER_FAILURES = 5;
/** A watch that ends sooner and has told nothing is a failure: it must not begin again at once. */
const SHORT_WATCH_MS = 5_000;

export class Informer<T extends { readonly metadata: ObjectMetadata }> {
  readonly #options: InformerOptions<T>;
  readonly #objects = new Map<string, Entry<T>>();
  readonly #invalid = new Map<string, Invalid & { readonly resourceVersion: string }>();
  readonly #handlers: ((change: Change<T>) => void)[] = [];
  readonly #synced = Promise.withResolvers<void>();
  readonly #backoff: Backoff;
  readonly #stop = new AbortController();
  #isSynced = false;
  #failures = 0;
  #relistAtMs = 0;
  #contactMs: number;
  #run: Promise<void> | undefined;

  constructor(options: InformerOptions<T>) {
    this.#options = options;
    this.#backoff = new Backoff({ ...RETRY, ...(options.random && { random: options.random }) });
    this.#contactMs = options.clock.monotonicMs();
  }

  get resource(): Resource {
    return this.#options.resource;
  }

  /** Whether the objects have been listed once. Before, nothing that is missing here may be called missing. */
  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Time since the server was heard last: an event, a bookmark, an answer. */
  get ageMs(): number {
    return this.#options.clock.monotonicMs() - this.#contactMs;
  }

  /** Objects that the server has and this program does not understand, as they are now. */
  get invalid(): readonly Invalid[] {
    return [...this.#invalid.values()];
  }

  get(key: string): T | undefined {
    return this.#objects.get(key)?.object;
  }

  list(): readonly T[] {
    return Array.from(this.#objects.values(), ({ object }) => object);
  }

  /** A handler that throws is logged, and hinders neither the others nor the watch. */
  onChange(handler: (change: Change<T>) => void): void {
    this.#handlers.push(handler);
  }

  start(): void {
    assert(this.#run === undefined, 'an informer is started once');
    this.#run = this.#follow(this.#stop.signal);
  }

  /** Resolves when the objects have been listed once, or `signal` aborts. */
  async whenSynced(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const aborted = Promise.withResolvers<void>();
    const abort = (): void => aborted.resolve();
    signal.addEventListener('abort', abort, { once: true });
    await Promise.race([this.#synced.promise, aborted.promise]);
    signal.removeEventListener('abort', abort);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#run;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { clock, log, resource } = this.#options;
    let resourceVersion: string | undefined;
    while (!signal.aborted) {
      try {
        if (resourceVersion === undefined || clock.monotonicMs() >= this.#relistAtMs) {
          resourceVersion = await this.#list(resourceVersion, signal);
        }
        for await (const version of this.#watch(resourceVersion, signal)) resourceVersion = version;
      } catch (err) {
        if (signal.aborted) return;
        this.#options.observer?.failed();
        // Too old a place to go on from: the list gives a new one.
        if (isExpired(err) || ++this.#failures % RELIST_AFTER_FAILURES === 0) resourceVersion = undefined;
        const askedMs = err instanceof ApiError ? (err.retryAfterMs ?? 0) : 0;
        const retryMs = Math.max(this.#backoff.next(), askedMs);
        log.warn({ err, resource: resource.plural, retryMs }, 'watch failed');
        await clock.sleep(retryMs, signal);
      }
    }
  }

  /** Yields where to go on from after each event. Throws when the watch fails or ends so soon that it must have. */
  async *#watch(from: string, signal: AbortSignal): AsyncGenerator<string> {
    const { api, resource, selection, clock, observer } = this.#options;
    const startMs = clock.monotonicMs();
    let isQuiet = true;
    for await (const { type, object } of api.watch(resource, { ...selection, resourceVersion: from }, signal)) {
      if (signal.aborted) return;
      // Only an event shows that the watch works: a server that fails accepts connections as well.
      isQuiet = false;
      this.#failures = 0;
      this.#backoff.reset();
      this.#contactMs = clock.monotonicMs();
      observer?.event(type);
      if (type === 'DELETED') this.#remove(keyOf(object.metadata));
      else if (type !== 'BOOKMARK') this.#put(object);
      if (type !== 'BOOKMARK') this.#count();
      yield object.metadata.resourceVersion ?? from;
    }
    if (signal.aborted) return;
    if (isQuiet && clock.monotonicMs() - startMs < SHORT_WATCH_MS) {
      throw new ApiError(0, 'WATCH_ENDED', 'the watch ended before it told anything');
    }
    this.#contactMs = clock.monotonicMs();
  }

  /** `seenUntil`: up to where the watch has told everything, as it should. */
  async #list(seenUntil: string | undefined, signal: AbortSignal): Promise<string> {
    const { api, resource, selection = {}, clock, observer, random = Math.random } = this.#options;
    const { items, resourceVersion } = await api.list(resource, selection, { signal });
    this.#contactMs = clock.monotonicMs();
    let missed = 0;
    const gone = new Set([...this.#objects.keys(), ...this.#invalid.keys()]);
    for (const item of items) {
      gone.delete(keyOf(item.metadata));
      // What changed after the last event may just be on its way.
      const isOld = seenUntil !== undefined && !isNewer(item.metadata.resourceVersion ?? '', seenUntil);
      if (this.#put(item) && isOld) missed++;
    }
    for (const key of gone) {
      this.#remove(key);
      if (seenUntil !== undefined) missed++;
    }
    this.#count();
    observer?.relisted();
    if (missed > 0) observer?.missed(missed);
    // Replicas that were started together do not list together for ever.
    this.#relistAtMs = clock.monotonicMs() + (this.#options.relistMs ?? RELIST_MS) * (0.9 + 0.2 * random());
    this.#isSynced = true;
    this.#synced.resolve();
    return resourceVersion;
  }

  /** Whether this is news. */
  #put(raw: KubeObject): boolean {
    const { parse, log, resource } = this.#options;
    const key = keyOf(raw.metadata);
    const { resourceVersion = '', uid } = raw.metadata;
    const known = this.#objects.get(key);
    if (known?.resourceVersion === resourceVersion || this.#invalid.get(key)?.resourceVersion === resourceVersion) {
      return false;
    }
    let object: T;
    try {
      object = deepFreeze(parse(withoutManagedFields(raw)));
    } catch (err) {
      const message = err instanceof Error ? err.message : String(err);
      this.#invalid.set(key, { key, uid, message, resourceVersion });
      log.warn({ resource: resource.plural, key, problem: message }, 'object not understood');
      // What was known before stays: a node must not lose its cameras because its newer recorder reports in new words.
      // A write that rests on it is refused, because its resourceVersion is old.
      if (known && known.uid !== uid) this.#forget(key, known);
      return true;
    }
    this.#invalid.delete(key);
    // The same name with another uid is another object: nothing of the first may be taken for the second's.
    if (known && known.uid !== uid) this.#forget(key, known);
    this.#objects.set(key, { object, resourceVersion, uid });
    if (known?.uid === uid && known) this.#tell({ kind: 'changed', key, object, previous: known.object });
    else this.#tell({ kind: 'added', key, object });
    return true;
  }

  #remove(key: string): void {
    this.#invalid.delete(key);
    const known = this.#objects.get(key);
    if (known) this.#forget(key, known);
  }

  #forget(key: string, known: Entry<T>): void {
    this.#objects.delete(key);
    this.#tell({ kind: 'deleted', key, previous: known.object });
  }

  #count(): void {
    this.#options.observer?.counted(this.#objects.size, this.#invalid.size);
  }

  #tell(change: Change<T>): void {
    const { log, resource } = this.#options;
    for (const handler of this.#handlers) {
      try {
        handler(change);
      } catch (err) {
        log.error({ err, resource: resource.plural, key: change.key }, 'a handler of changes failed');
      }
    }
  }
}

/** Who set which field is of no use here, and often the larger part of an object. A write without it leaves it alone. */
function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata as ObjectMetadata & { readonly managedFields?: unknown };
  return { ...object, metadata };
}

/** Nobody can change what others see. */
function deepFreeze<V>(value: V): V {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) deepFreeze(part);
  return Object.freeze(value);
}
