// A local copy of all objects of one kind, kept up to date by a watch and, because watches can lose events, by an occasional
// list. Handlers get the key of what changed; objects are parsed and frozen.

import { assert } from '../assert.ts';
import { Backoff } from '../backoff.ts';
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import { ApiError, hasStatus } from './api-error.ts';
import { isNewer } from './resource-version.ts';
import { messageOf } from '../error.ts';

/** The fields of an object that an informer itself reads. */
interface ListedObject {
  readonly metadata: ListedMetadata;
  readonly [field: string]: unknown;
}

interface ListedMetadata {
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/** Where the objects come from: a collection of the API server or a selection of it. */
interface ObjectSource<O extends ListedObject> {
  /** The name used in logs, such as `cameras`. */
  readonly name: string;
  /** All objects, as of one moment. Throws ApiError; after status 410 the list is begun again. */
  pages(signal: AbortSignal): AsyncIterable<{ readonly items: readonly O[]; readonly resourceVersion: string }>;
  /** Changes after `resourceVersion`, including bookmarks, until the server ends the watch. Throws ApiError. */
  watch(
    resourceVersion: string,
    signal: AbortSignal,
  ): AsyncIterable<{ readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: O }>;
}

export type Change<T> =
  | { readonly kind: 'added'; readonly key: string; readonly object: T }
  | { readonly kind: 'changed'; readonly key: string; readonly object: T; readonly previous: T }
  | { readonly kind: 'deleted'; readonly key: string; readonly previous: T };

/** Notified of what happens; used for metrics. */
export interface InformerObserver {
  event(type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'): void;
  failed(): void;
  relisted(): void;
  /** A list showed `count` changes that the watch should have reported before. */
  missed(count: number): void;
  /** The number of objects in the copy and of objects that could not be parsed, or not wholly. */
  counted(objects: number, invalid: number): void;
}

interface InformerOptions<T, O extends ListedObject> {
  readonly source: ObjectSource<O>;
  /** Throws if the object is not valid. */
  readonly parse: (object: O) => T;
  /** Default: `namespace/name`, or `name` for objects without a namespace. */
  readonly keyOf?: (metadata: ListedMetadata) => string;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer?: InformerObserver | undefined;
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

/** An object that was parsed, or why it could not be. */
type ParsedObject<T> = Version & { readonly key: string } & (
    { readonly object: T; readonly problem?: never } | { readonly problem: string }
  );

const RELIST_MS = 600_000;
const RETRY = { firstMs: 250, maxMs: 30_000, jitter: 0.3 };
/** After this many failures in a row the saved `resourceVersion` is dropped and the objects are listed again. */
const RELIST_AFTER_FAILURES = 5;
/** Lists that are older than the copy for longer than this show that the server was restored from a backup. */
const RESTORED_MS = 60_000;
/** A watch that ends sooner without an event counts as a failure, so that the next one starts after a delay. */
const SHORT_WATCH_MS = 5_000;

export class Informer<T, O extends ListedObject = ListedObject> {
  readonly #options: InformerOptions<T, O>;
  readonly #objects = new Map<string, T>();
  readonly #versions = new Map<string, Version>();
  /** Objects that were read in part. */
  readonly #partly = new Set<string>();
  readonly #invalid = new Map<string, Invalid & { readonly resourceVersion: string }>();
  readonly #handlers: ((change: Change<T>) => void)[] = [];
  readonly #updateHandlers: (() => void)[] = [];
  readonly #synced = Promise.withResolvers<void>();
  readonly #backoff: Backoff;
  readonly #stop = new AbortController();
  /** Aborts the current list or watch; the loop then starts the next one. */
  #round = new AbortController();
  #isSynced = false;
  #isRefused = false;
  #failures = 0;
  #relistAtMs = 0;
  /** The `resourceVersion` up to which the copy has seen every change. */
  #seenUntil: string | undefined;
  /** Since when lists have been older than the copy; undefined: the last one was not. */
  #olderSinceMs: number | undefined;
  #contactMs: number;
  #run: Promise<void> | undefined;

  constructor(options: InformerOptions<T, O>) {
    this.#options = options;
    this.#backoff = new Backoff({ ...RETRY, ...(options.random && { random: options.random }) });
    this.#contactMs = options.clock.monotonicMs();
  }

  /** Whether the objects have been listed once. Until then, absence from the copy means nothing. */
  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Whether the last attempt was refused (403), so that the permission is probably missing. It is retried occasionally. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** Time since the server was last heard from: an event, a bookmark or a list. */
  get ageMs(): number {
    return this.#options.clock.monotonicMs() - this.#contactMs;
  }

  /** The objects that the server has now and this program cannot parse. */
  get invalid(): readonly Invalid[] {
    return [...this.#invalid.values()];
  }

  /** Objects by key. While the API server is unreachable these are the last known ones. */
  get objects(): ReadonlyMap<string, T> {
    return this.#objects;
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  list(): readonly T[] {
    return [...this.#objects.values()];
  }

  /** A handler that throws is logged; it stops neither the other handlers nor the watch. */
  onChange(handler: (change: Change<T>) => void): void {
    this.#handlers.push(handler);
  }

  /** Called when the copy is consistent again: after each list, even without changes, and after each event. */
  onUpdate(handler: () => void): void {
    this.#updateHandlers.push(handler);
  }

  start(): void {
    assert(this.#run === undefined, 'an informer is started once');
    this.#run = this.#follow(this.#stop.signal);
  }

  /** Lists again at once: after an outage of the API server, a watch that looks alive may be dead. */
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
        const isRefused = hasStatus(err, 403);
        // A missing permission may last for days: report it once, not every half minute.
        const isKnown = isRefused && this.#isRefused;
        this.#isRefused = isRefused;
        if (!isKnown) this.#options.observer?.failed();
        // The saved `resourceVersion` is too old to resume from: list to get a new one.
        const isExpired = hasStatus(err, 410);
        if (isExpired || ++this.#failures % RELIST_AFTER_FAILURES === 0) resourceVersion = undefined;
        const askedMs = err instanceof ApiError ? (err.retryAfterMs ?? 0) : 0;
        const retryMs = Math.max(this.#backoff.next(), askedMs);
        if (!isKnown) log.warn({ err, resource: source.name, retryMs }, 'a watch failed');
        await clock.sleep(retryMs, signal);
      }
    }
  }

  /**
   * Yields the `resourceVersion` to resume from after each event. Throws when the watch fails, or ends so soon that it must have
   * failed.
   */
  async *#watch(from: string, signal: AbortSignal): AsyncGenerator<string> {
    const { source, clock, observer } = this.#options;
    const startMs = clock.monotonicMs();
    let isQuiet = true;
    for await (const { type, object } of source.watch(from, signal)) {
      if (signal.aborted) return;
      // Only an event shows that the watch works: a failing server accepts connections too.
      isQuiet = false;
      this.#failures = 0;
      this.#isRefused = false;
      this.#backoff.reset();
      this.#contactMs = clock.monotonicMs();
      observer?.event(type);
      if (type === 'DELETED') this.#remove(this.#keyOf(object.metadata));
      else if (type !== 'BOOKMARK' && !this.#isKnown(object)) this.#put(this.#read(object));
      if (type !== 'BOOKMARK') this.#updated();
      this.#seenUntil = object.metadata.resourceVersion ?? from;
      yield this.#seenUntil;
    }
    if (signal.aborted) return;
    if (isQuiet && clock.monotonicMs() - startMs < SHORT_WATCH_MS) {
      throw new ApiError(0, 'WATCH_ENDED', 'the watch ended without an event');
    }
    this.#contactMs = clock.monotonicMs();
  }

  /**
   * Each page is parsed when it comes, so that the text of thousands of objects is never in memory at once; the copy changes when
   * the last page is there. `seenUntil`: the `resourceVersion` up to which the watch should have reported every change.
   */
  async #list(seenUntil: string | undefined, signal: AbortSignal): Promise<string> {
    const { source, clock, observer, random = Math.random } = this.#options;
    const gone = new Set([...this.#objects.keys(), ...this.#invalid.keys()]);
    const changed: ParsedObject<T>[] = [];
    let listedVersion: string | undefined;
    for await (const { items, resourceVersion } of source.pages(signal)) {
      if (signal.aborted) return resourceVersion;
      this.#contactMs = clock.monotonicMs();
      const current = this.#seenUntil;
      if (listedVersion === undefined && current !== undefined && this.#isOutdated(resourceVersion, current)) {
        return current;
      }
      listedVersion ??= resourceVersion;
      for (const item of items) {
        gone.delete(this.#keyOf(item.metadata));
        if (!this.#isKnown(item)) changed.push(this.#read(item));
      }
    }
    this.#seenUntil = listedVersion;
    let missed = 0;
    for (const read of changed) {
      this.#put(read);
      // A change after the last event may just not have arrived yet.
      if (seenUntil !== undefined && !isNewer(read.resourceVersion, seenUntil)) missed++;
    }
    for (const key of gone) {
      this.#remove(key);
      if (seenUntil !== undefined) missed++;
    }
    observer?.relisted();
    if (missed > 0) observer?.missed(missed);
    // With jitter, so that replicas started together do not keep listing at the same time.
    this.#relistAtMs = clock.monotonicMs() + RELIST_MS * (0.9 + 0.2 * random());
    this.#isSynced = true;
    this.#isRefused = false;
    this.#updated();
    this.#synced.resolve();
    return listedVersion ?? '';
  }

  /**
   * Whether a list comes from a server that lags behind. It would set objects back to a state that was over long ago,
   * until the watch has caught up: the copy stays as it is, and the watch continues from there.
   */
  #isOutdated(listed: string, current: string): boolean {
    const nowMs = this.#options.clock.monotonicMs();
    const isOlder = isNewer(current, listed) && !isNewer(listed, current);
    if (isOlder) this.#olderSinceMs ??= nowMs;
    else this.#olderSinceMs = undefined;
    if (this.#olderSinceMs === undefined || nowMs - this.#olderSinceMs >= RESTORED_MS) {
      this.#olderSinceMs = undefined;
      return false;
    }
    return true;
  }

  /** Whether the copy has the object at this version. */
  #isKnown({ metadata }: O): boolean {
    const key = this.#keyOf(metadata);
    const { resourceVersion = '' } = metadata;
    const known = this.#versions.get(key)?.resourceVersion === resourceVersion;
    return known || this.#invalid.get(key)?.resourceVersion === resourceVersion;
  }

  #read(raw: O): ParsedObject<T> {
    const { resourceVersion = '', uid } = raw.metadata;
    const version = { key: this.#keyOf(raw.metadata), resourceVersion, uid };
    try {
      return { ...version, object: deepFreeze(this.#options.parse(withoutManagedFields(raw))) };
    } catch (err) {
      return { ...version, problem: messageOf(err) };
    }
  }

  #put({ key, resourceVersion, uid, ...read }: ParsedObject<T>): void {
    const { log, source } = this.#options;
    const known = this.#versions.get(key);
    const isOther = known !== undefined && known.uid !== uid;
    if (read.problem !== undefined) {
      this.#invalid.set(key, { key, uid, message: read.problem, resourceVersion });
      log.warn({ resource: source.name, key, problem: read.problem }, 'an object is not valid');
      // Keep what was known: a node must not lose its cameras because its newer recorder reports fields that we cannot parse. A
      // write based on the old object is refused, because its resourceVersion is outdated.
      if (isOther) this.#remove(key);
      return;
    }
    this.#invalid.delete(key);
    // The same name with another uid is another object: nothing known of the old one applies to it.
    if (isOther) this.#remove(key);
    const { object } = read;
    if (isPartlyRead(object)) this.#partly.add(key);
    else this.#partly.delete(key);
    const previous = this.#objects.get(key);
    this.#objects.set(key, object);
    this.#versions.set(key, { resourceVersion, uid });
    if (previous === undefined) this.#tell({ kind: 'added', key, object });
    else this.#tell({ kind: 'changed', key, object, previous });
  }

  #remove(key: string): void {
    this.#invalid.delete(key);
    const previous = this.#objects.get(key);
    if (previous === undefined) return;
    this.#objects.delete(key);
    this.#partly.delete(key);
    this.#versions.delete(key);
    this.#tell({ kind: 'deleted', key, previous });
  }

  #keyOf(metadata: ListedMetadata): string {
    return (this.#options.keyOf ?? keyOf)(metadata);
  }

  #updated(): void {
    this.#options.observer?.counted(this.#objects.size, this.#invalid.size + this.#partly.size);
    for (const handler of this.#updateHandlers) this.#guarded(handler);
  }

  #tell(change: Change<T>): void {
    for (const handler of this.#handlers) this.#guarded(() => handler(change));
  }

  #guarded(run: () => void): void {
    try {
      run();
    } catch (err) {
      this.#options.log.bug({ err, resource: this.#options.source.name }, 'a handler of changes failed');
    }
  }
}

const isPartlyRead = (object: unknown): boolean => typeof object === 'object' && object !== null && 'unread' in object;

const keyOf = ({ namespace, name }: ListedMetadata): string => (namespace ? `${namespace}/${name}` : name);

/** Drops managedFields: unused here and often most of the object. Writing the object without them does not change them. */
function withoutManagedFields<O extends ListedObject>(object: O): O {
  const { managedFields: _, ...metadata } = object.metadata as ListedMetadata & { readonly managedFields?: unknown };
  return { ...object, metadata };
}

/** Readers share the objects, so they must not be able to change them. */
function deepFreeze<V>(value: V): V {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) deepFreeze(part);
  return Object.freeze(value);
}
