// A copy of all objects of one kind, kept true by a watch and, because watches lose things, by a list now and then.
// What changed is told by key; objects are parsed, frozen, and never handed out half.

import { assert } from '../assert.ts';
import { Backoff } from '../backoff.ts';
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import { ApiError } from './api-error.ts';
import { isNewer } from './resource-version.ts';

/** As much of an object as an informer looks at itself. */
export interface Listed {
  readonly metadata: ListedMetadata;
  readonly [field: string]: unknown;
}

export interface ListedMetadata {
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/** Where the objects are: a collection of the API server, or a selection of it. */
export interface ObjectSource<O extends Listed> {
  /** For logs: `cameras`. */
  readonly name: string;
  list(signal: AbortSignal): Promise<{ readonly items: readonly O[]; readonly resourceVersion: string }>;
  /** Changes after `resourceVersion`, with bookmarks, until the server ends the watch. Throws ApiError. */
  watch(
    resourceVersion: string,
    signal: AbortSignal,
  ): AsyncIterable<{ readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: O }>;
}

export type Change<T> =
  | { readonly kind: 'added'; readonly key: string; readonly object: T }
  | { readonly kind: 'changed'; readonly key: string; readonly object: T; readonly previous: T }
  | { readonly kind: 'deleted'; readonly key: string; readonly previous: T };

/** Told what happens; metrics stand behind it. */
export interface InformerObserver {
  event(type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'): void;
  failed(): void;
  relisted(): void;
  /** A list showed changes that the watch should have told before, and had not. */
  missed(count: number): void;
  /** How many objects are there, and how many of the server's are not understood. */
  counted(objects: number, invalid: number): void;
}

export interface InformerOptions<T, O extends Listed> {
  readonly source: ObjectSource<O>;
  /** Throws for an object that is not what it should be. */
  readonly parse: (object: O) => T;
  /** Default: `namespace/name`, or `name` for what has no namespace. */
  readonly keyOf?: (metadata: ListedMetadata) => string;
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

interface Version {
  readonly resourceVersion: string;
  readonly uid: string | undefined;
}

const RELIST_MS = 600_000;
const RETRY = { firstMs: 250, maxMs: 30_000, jitter: 0.3 };
/** After so many failures in a row the place to go on from is doubted as well. */
const RELIST_AFTER_FAILURES = 5;
/** A watch that ends sooner and has told nothing is a failure: it must not begin again at once. */
const SHORT_WATCH_MS = 5_000;

export class Informer<T, O extends Listed = Listed> {
  readonly #options: InformerOptions<T, O>;
  readonly #objects = new Map<string, T>();
  readonly #versions = new Map<string, Version>();
  readonly #invalid = new Map<string, Invalid & { readonly resourceVersion: string }>();
  readonly #handlers: ((change: Change<T>) => void)[] = [];
  readonly #updateHandlers: (() => void)[] = [];
  readonly #synced = Promise.withResolvers<void>();
  readonly #backoff: Backoff;
  readonly #stop = new AbortController();
  /** Of the list or watch under way; another one begins when it is aborted. */
  #round = new AbortController();
  #isSynced = false;
  #isRefused = false;
  #failures = 0;
  #relistAtMs = 0;
  #contactMs: number;
  #run: Promise<void> | undefined;

  constructor(options: InformerOptions<T, O>) {
    this.#options = options;
    this.#backoff = new Backoff({ ...RETRY, ...(options.random && { random: options.random }) });
    this.#contactMs = options.clock.monotonicMs();
  }

  /** Whether the objects have been listed once. Before, nothing that is missing here may be called missing. */
  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** The last try was refused (403): there is no right to it, as far as is known. It is tried again now and then. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** Time since the server was heard last: an event, a bookmark, an answer. */
  get ageMs(): number {
    return this.#options.clock.monotonicMs() - this.#contactMs;
  }

  /** Objects that the server has and this program does not understand, as they are now. */
  get invalid(): readonly Invalid[] {
    return [...this.#invalid.values()];
  }

  /** By key. While the API server is away, what was true last. */
  get objects(): ReadonlyMap<string, T> {
    return this.#objects;
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  list(): readonly T[] {
    return [...this.#objects.values()];
  }

  /** A handler that throws is logged, and hinders neither the others nor the watch. */
  onChange(handler: (change: Change<T>) => void): void {
    this.#handlers.push(handler);
  }

  /** Called when the copy is whole again: after each list, also one that shows nothing new, and after each event. */
  onUpdate(handler: () => void): void {
    this.#updateHandlers.push(handler);
  }

  start(): void {
    assert(this.#run === undefined, 'an informer is started once');
    this.#run = this.#follow(this.#stop.signal);
  }

  /** Lists anew at once: after the API server was away, a watch that looks alive may be dead. */
  resync(): void {
    this.#backoff.reset();
    this.#round.abort();
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

  async #follow(stop: AbortSignal): Promise<void> {
    const { clock, log, source } = this.#options;
    let resourceVersion: string | undefined;
    while (!stop.aborted) {
      if (this.#round.signal.aborted) {
        this.#round = new AbortController();
        resourceVersion = undefined;
      }
      const signal = AbortSignal.any([stop, this.#round.signal]);
      try {
        if (resourceVersion === undefined || clock.monotonicMs() >= this.#relistAtMs) {
          resourceVersion = await this.#list(resourceVersion, signal);
        }
        for await (const version of this.#watch(resourceVersion, signal)) resourceVersion = version;
      } catch (err) {
        if (signal.aborted) continue;
        const isRefused = err instanceof ApiError && err.status === 403;
        // A right that may come in days is told of once, not every half minute.
        const isKnown = isRefused && this.#isRefused;
        this.#isRefused = isRefused;
        if (!isKnown) this.#options.observer?.failed();
        // Too old a place to go on from: the list gives a new one.
        const isExpired = err instanceof ApiError && err.status === 410;
        if (isExpired || ++this.#failures % RELIST_AFTER_FAILURES === 0) resourceVersion = undefined;
        const askedMs = err instanceof ApiError ? (err.retryAfterMs ?? 0) : 0;
        const retryMs = Math.max(this.#backoff.next(), askedMs);
        if (!isKnown) log.warn({ err, resource: source.name, retryMs }, 'watch failed');
        await clock.sleep(retryMs, signal);
      }
    }
  }

  /** Yields where to go on from after each event. Throws when the watch fails or ends so soon that it must have. */
  async *#watch(from: string, signal: AbortSignal): AsyncGenerator<string> {
    const { source, clock, observer } = this.#options;
    const startMs = clock.monotonicMs();
    let isQuiet = true;
    for await (const { type, object } of source.watch(from, signal)) {
      if (signal.aborted) return;
      // Only an event shows that the watch works: a server that fails accepts connections as well.
      isQuiet = false;
      this.#failures = 0;
      this.#isRefused = false;
      this.#backoff.reset();
      this.#contactMs = clock.monotonicMs();
      observer?.event(type);
      if (type === 'DELETED') this.#remove(this.#keyOf(object.metadata));
      else if (type !== 'BOOKMARK') this.#put(object);
      if (type !== 'BOOKMARK') this.#updated();
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
    const { source, clock, observer, random = Math.random } = this.#options;
    const { items, resourceVersion } = await source.list(signal);
    if (signal.aborted) return resourceVersion;
    this.#contactMs = clock.monotonicMs();
    let missed = 0;
    const gone = new Set([...this.#objects.keys(), ...this.#invalid.keys()]);
    for (const item of items) {
      gone.delete(this.#keyOf(item.metadata));
      // What changed after the last event may just be on its way.
      const isOld = seenUntil !== undefined && !isNewer(item.metadata.resourceVersion ?? '', seenUntil);
      if (this.#put(item) && isOld) missed++;
    }
    for (const key of gone) {
      this.#remove(key);
      if (seenUntil !== undefined) missed++;
    }
    observer?.relisted();
    if (missed > 0) observer?.missed(missed);
    // Replicas that were started together do not list together for ever.
    this.#relistAtMs = clock.monotonicMs() + (this.#options.relistMs ?? RELIST_MS) * (0.9 + 0.2 * random());
    this.#isSynced = true;
    this.#isRefused = false;
    this.#updated();
    this.#synced.resolve();
    return resourceVersion;
  }

  /** Whether this is news. */
  #put(raw: O): boolean {
    const { parse, log, source } = this.#options;
    const key = this.#keyOf(raw.metadata);
    const { resourceVersion = '', uid } = raw.metadata;
    const before = this.#objects.get(key);
    const known = this.#versions.get(key);
    if (known?.resourceVersion === resourceVersion || this.#invalid.get(key)?.resourceVersion === resourceVersion) {
      return false;
    }
    let object: T;
    try {
      object = deepFreeze(parse(withoutManagedFields(raw)));
    } catch (err) {
      const message = err instanceof Error ? err.message : String(err);
      this.#invalid.set(key, { key, uid, message, resourceVersion });
      log.warn({ resource: source.name, key, problem: message }, 'object not understood');
      // What was known before stays: a node must not lose its cameras because its newer recorder reports in new words.
      // A write that rests on it is refused, because its resourceVersion is old.
      if (known && known.uid !== uid) this.#remove(key);
      return true;
    }
    this.#invalid.delete(key);
    // The same name with another uid is another object: nothing of the first may be taken for the second's.
    if (known && known.uid !== uid) this.#remove(key);
    this.#objects.set(key, object);
    this.#versions.set(key, { resourceVersion, uid });
    if (before !== undefined && known?.uid === uid) this.#tell({ kind: 'changed', key, object, previous: before });
    else this.#tell({ kind: 'added', key, object });
    return true;
  }

  #remove(key: string): void {
    this.#invalid.delete(key);
    const previous = this.#objects.get(key);
    if (previous === undefined) return;
    this.#objects.delete(key);
    this.#versions.delete(key);
    this.#tell({ kind: 'deleted', key, previous });
  }

  #keyOf(metadata: ListedMetadata): string {
    return (this.#options.keyOf ?? keyOf)(metadata);
  }

  #updated(): void {
    this.#options.observer?.counted(this.#objects.size, this.#invalid.size);
    for (const handler of this.#updateHandlers) this.#guarded(handler);
  }

  #tell(change: Change<T>): void {
    for (const handler of this.#handlers) this.#guarded(() => handler(change));
  }

  #guarded(run: () => void): void {
    try {
      run();
    } catch (err) {
      this.#options.log.error({ err, resource: this.#options.source.name }, 'a handler of changes failed');
    }
  }
}

const keyOf = ({ namespace, name }: ListedMetadata): string => (namespace ? `${namespace}/${name}` : name);

/** Who set which field is of no use here, and often the larger part of an object. A write without it leaves it alone. */
function withoutManagedFields<O extends Listed>(object: O): O {
  const { managedFields: _, ...metadata } = object.metadata as ListedMetadata & { readonly managedFields?: unknown };
  return { ...object, metadata };
}

/** Nobody can change what others see. */
function deepFreeze<V>(value: V): V {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) deepFreeze(part);
  return Object.freeze(value);
}
