// Objects of Kubernetes kinds in etcd. A write is a transaction that compares the revision on which it is based. The revision of etcd
// is the resourceVersion.

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../base/clock.ts';
import { EtcdError, type EtcdClient, type EtcdEvent, type KeyValue, type TxnOperation } from '../base/etcd/client.ts';
import { ApiError } from '../base/kubernetes/api-error.ts';
import { alreadyExists, conflict, decode, encoded, invalid, notFound, validate } from './admission.ts';
import { isJson, jsonIn, mergePatch, omit, textIn, type Json } from './json.ts';
import { apiVersionOf, type StoredKind } from './kinds.ts';
import { applyFields, noteUpdate, type Writer } from './managers.ts';
import { collectionKey, endOf, objectKey } from './names.ts';
import type { Selector } from './selectors.ts';

/** Encrypts and decrypts the value of a key. Throws if the encrypted value was changed. */
export interface Seal {
  seal(plain: Buffer, key: string): Buffer;
  open(sealed: Buffer, key: string): Buffer;
}

interface ObjectStoreOptions {
  readonly etcd: Pick<EtcdClient, 'range' | 'txn' | 'watch'>;
  readonly seal: Seal;
  /** Which objects are deleted with their owner. */
  readonly kinds: readonly StoredKind[];
  readonly clock: Clock;
}

interface ObjectName {
  readonly kind: StoredKind;
  readonly namespace: string;
  readonly name: string;
}

export interface WriteOptions extends Writer {
  readonly subresource: 'status' | undefined;
  /** Nothing is written. */
  readonly isTried: boolean;
}

interface Preconditions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

interface Page {
  readonly items: readonly Json[];
  readonly resourceVersion: string;
  /** Undefined: this is the last page. */
  readonly next: ListPlace | undefined;
}

/** Where the next page of a list begins. */
export interface ListPlace {
  readonly revision: string;
  readonly key: string;
}

interface ListOptions {
  readonly kind: StoredKind;
  /** Undefined: of all namespaces. */
  readonly namespace: string | undefined;
  readonly select: Selector;
  readonly limit: number;
  readonly place?: ListPlace | undefined;
  /** The member answers from its own copy, which may be out of date. */
  readonly mayBeOld?: boolean | undefined;
}

type ObjectEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: Json }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string };

interface StoredObject {
  readonly object: Json;
  readonly key: string;
  readonly revision: string;
}

/** A write that names no version is tried again if another one came in between. */
const ATTEMPTS = 10;
/** etcd carries out at most 128 operations at once by default. */
const MAX_OPERATIONS = 100;

const metadataOf = (object: Json): Json => jsonIn(object['metadata']);
const withMetadata = (object: Json, metadata: Json): Json => ({
  ...object,
  metadata: { ...metadataOf(object), ...metadata },
});

export class ObjectStore {
  readonly #options: ObjectStoreOptions;

  constructor(options: ObjectStoreOptions) {
    this.#options = options;
  }

  async get(name: ObjectName, signal?: AbortSignal): Promise<Json> {
    return shown((await this.#existing(name, signal)).object, name.kind);
  }

  async list(options: ListOptions, signal?: AbortSignal): Promise<Page> {
    const { kind, namespace, select, limit, place, mayBeOld } = options;
    const prefix = collectionKey(kind.plural, namespace);
    const answer = await answered(
      this.#options.etcd.range(
        {
          key: place?.key ?? prefix,
          rangeEnd: endOf(prefix),
          limit,
          ...(place ? { revision: place.revision } : { serializable: mayBeOld }),
        },
        signal,
      ),
    );
    const items = answer.kvs.map((kv) => shown(this.#read(kv, kind).object, kind)).filter(select);
    const resourceVersion = place?.revision ?? answer.revision;
    const last = answer.kvs.at(-1);
    return {
      items,
      resourceVersion,
      // The first key after the last one.
      next: answer.more && last ? { revision: resourceVersion, key: `${last.key}\0` } : undefined,
    };
  }

  /** Changes of the selected objects after `resourceVersion`, until `signal` aborts. Throws ApiError; 410: list again. */
  async *watch(
    {
      kind,
      namespace,
      select,
      resourceVersion,
    }: Pick<ListOptions, 'kind' | 'namespace' | 'select'> & { readonly resourceVersion: string },
    signal: AbortSignal,
  ): AsyncGenerator<ObjectEvent> {
    const key = collectionKey(kind.plural, namespace);
    try {
      const answers = this.#options.etcd.watch({ key, rangeEnd: endOf(key), afterRevision: resourceVersion }, signal);
      for await (const { revision, events } of answers) {
        if (events.length === 0) yield { type: 'BOOKMARK', resourceVersion: revision };
        for (const event of events) {
          const told = this.#eventOf(event, kind, select);
          if (told) yield told;
        }
      }
    } catch (err) {
      if (signal.aborted) return;
      throw apiErrorOf(err);
    }
  }

  async create(
    name: Omit<ObjectName, 'name'>,
    body: unknown,
    options: WriteOptions,
    signal?: AbortSignal,
  ): Promise<Json> {
    const { kind, namespace } = name;
    const given = decode(body, kind);
    const {
      uid: _,
      resourceVersion: version,
      managedFields: __,
      deletionTimestamp: ___,
      ...metadata
    } = metadataOf(given);
    if (version !== undefined && version !== '') {
      throw new ApiError(400, 'BadRequest', 'resourceVersion should not be set on objects to be created');
    }
    return this.#insert({ kind, namespace, name: textIn(metadata['name']) }, { ...given, metadata }, options, signal);
  }

  /** Replaces the whole object, or its status; only if it is the version that the body names. */
  async replace(name: ObjectName, body: unknown, options: WriteOptions, signal?: AbortSignal): Promise<Json> {
    const given = decode(body, name.kind);
    if (!metadataOf(given)['resourceVersion']) {
      const message = 'Invalid value: must be specified for an update';
      throw invalid(name.kind, name.name, [{ field: 'metadata.resourceVersion', message }]);
    }
    const sameObject = (live: Json): Json => {
      const { uid } = metadataOf(given);
      if (uid === undefined || uid === metadataOf(live)['uid']) return given;
      throw conflict(name.kind, name.name, `Precondition failed: UID in precondition: ${textIn(uid)}`);
    };
    return this.#change(name, sameObject, options, signal);
  }

  /** JSON merge patch, RFC 7396. */
  async patch(name: ObjectName, patch: unknown, options: WriteOptions, signal?: AbortSignal): Promise<Json> {
    if (!isJson(patch)) throw new ApiError(400, 'BadRequest', 'the patch is not a JSON object');
    return this.#change(name, (live) => decode(mergePatch(live, patch), name.kind), options, signal);
  }

  /** Server-side apply: creates the object if there is none. */
  async apply(
    name: ObjectName,
    body: unknown,
    { force, ...options }: WriteOptions & { readonly force: boolean },
    signal?: AbortSignal,
  ): Promise<Json> {
    const { kind } = name;
    if (!kind.isManaged) throw new ApiError(415, 'UnsupportedMediaType', `a ${kind.kind} cannot be applied`);
    // Before defaults: fields that the body leaves out belong to nobody.
    if (!isJson(body)) throw new ApiError(400, 'BadRequest', 'the body is not a JSON object');
    const { managedFields: _, ...metadata } = metadataOf(body);
    const applied = partOf(encoded({ ...body, metadata }, kind), options);
    for (let attempt = 1; ; attempt++) {
      const live = await this.#read1(name, signal);
      if (!live && options.subresource) throw notFound(kind, name.name);
      const common = { writer: options, force, schema: kind.schema, apiVersion: apiVersionOf(kind), now: this.#now };
      const merged = (now: Json | undefined): Json => decode(applyFields({ ...common, live: now, applied }), kind);
      if (!live) return this.#insert(name, merged(undefined), options, signal, { isNoted: true });
      const result = await this.#tryChange(name, live, merged, options, { isNoted: true }, signal);
      if (result) return result;
      if (attempt === ATTEMPTS) throw conflict(kind, name.name, TOO_MANY);
    }
  }

  /** Deletes the object, and what it owns. With finalizers it is only marked, until the last of them is removed. */
  async delete(
    name: ObjectName,
    { uid, resourceVersion }: Preconditions,
    { isTried }: Pick<WriteOptions, 'isTried'>,
    signal?: AbortSignal,
  ): Promise<Json> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const live = await this.#existing(name, signal);
      const metadata = metadataOf(live.object);
      const isOther = uid !== undefined && uid !== metadata['uid'];
      if (isOther || (resourceVersion !== undefined && resourceVersion !== live.revision)) {
        throw conflict(name.kind, name.name, isOther ? 'Precondition failed: UID in precondition' : MODIFIED);
      }
      if (isTried) return live.object;
      if (!hasFinalizers(live.object)) {
        if (await this.#remove(live, signal)) return live.object;
        continue;
      }
      if (metadata['deletionTimestamp'] !== undefined) return live.object;
      const marked = withMetadata(live.object, {
        deletionTimestamp: this.#now,
        generation: Number(metadata['generation'] ?? 0) + 1,
      });
      const written = await this.#write(name, marked, live, signal);
      if (written) return written;
    }
    throw conflict(name.kind, name.name, TOO_MANY);
  }

  /** Encrypts all objects of kinds that are encrypted again. Resolves to their number. */
  async reseal(): Promise<number> {
    let count = 0;
    for (const { plural } of this.#options.kinds.filter(({ isSealed }) => isSealed)) {
      const prefix = collectionKey(plural, undefined);
      const { kvs } = await answered(this.#options.etcd.range({ key: prefix, rangeEnd: endOf(prefix) }));
      for (const { key, value, modRevision } of kvs) {
        const put = { key, value: this.#options.seal.seal(this.#options.seal.open(value, key), key) };
        // An object that was changed meanwhile was encrypted by that.
        await answered(this.#options.etcd.txn({ compare: [{ key, modRevision }], success: [{ put }] }));
        count++;
      }
    }
    return count;
  }

  get #now(): string {
    return new Date(this.#options.clock.wallMs()).toISOString().replace(/\.\d+Z$/, 'Z');
  }

  async #insert(
    name: ObjectName,
    given: Json,
    options: WriteOptions,
    signal: AbortSignal | undefined,
    { isNoted = false } = {},
  ): Promise<Json> {
    const { kind, namespace } = name;
    const { namespace: said = namespace } = metadataOf(given);
    if (said !== namespace) {
      throw new ApiError(400, 'BadRequest', `the namespace of the object is not that of the request: ${namespace}`);
    }
    const content = kind.hasStatus ? withoutStatus(given) : given;
    const fresh = withMetadata(content, {
      name: name.name,
      namespace,
      uid: randomUUID(),
      creationTimestamp: this.#now,
      ...(kind.hasStatus && { generation: 1 }),
    });
    validate(fresh, undefined, kind);
    const noted = isNoted ? fresh : this.#noted(undefined, fresh, name, options);
    if (options.isTried) return shown(noted, kind);
    const written = await this.#write(name, noted, undefined, signal);
    if (!written) throw alreadyExists(kind, name.name);
    return shown(written, kind);
  }

  async #change(
    name: ObjectName,
    changed: (live: Json) => Json,
    options: WriteOptions,
    signal: AbortSignal | undefined,
  ): Promise<Json> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const live = await this.#existing(name, signal);
      const result = await this.#tryChange(name, live, changed, options, { isNoted: false }, signal);
      if (result) return result;
    }
    throw conflict(name.kind, name.name, TOO_MANY);
  }

  /** Undefined: another client wrote meanwhile, and the caller did not say which version to change. */
  async #tryChange(
    name: ObjectName,
    live: StoredObject,
    changed: (live: Json) => Json,
    options: WriteOptions,
    { isNoted }: { readonly isNoted: boolean },
    signal: AbortSignal | undefined,
  ): Promise<Json | undefined> {
    const { kind } = name;
    const given = changed(live.object);
    const { resourceVersion, uid } = metadataOf(given);
    const before = metadataOf(live.object);
    if (resourceVersion !== undefined && resourceVersion !== '' && resourceVersion !== live.revision) {
      throw conflict(kind, name.name, MODIFIED);
    }
    if (uid !== undefined && uid !== before['uid']) {
      throw invalid(kind, name.name, [{ field: 'metadata.uid', message: 'Invalid value: field is immutable' }]);
    }
    const next = this.#next(live.object, given, kind, options, isNoted);
    validate(next, live.object, kind);
    const noted = isNoted ? next : this.#noted(live.object, next, name, options);
    const isLast = before['deletionTimestamp'] !== undefined && !hasFinalizers(noted);
    if (options.isTried) return shown(noted, kind);
    if (isLast) return (await this.#remove(live, signal)) ? shown(noted, kind) : undefined;
    if (isDeepStrictEqual(noted, live.object)) return shown(live.object, kind);
    const written = await this.#write(name, noted, live, signal);
    return written && shown(written, kind);
  }

  /** The object after a change, of which a write of the status takes nothing but that, and any other write everything else. */
  #next(live: Json, given: Json, kind: StoredKind, { subresource }: WriteOptions, isNoted: boolean): Json {
    const before = metadataOf(live);
    const managedFields = isNoted ? metadataOf(given)['managedFields'] : before['managedFields'];
    const fixed = { ...pick(before, FIXED_METADATA), ...(managedFields !== undefined && { managedFields }) };
    if (subresource) {
      const { status: _, ...rest } = live;
      return withMetadata({ ...rest, ...('status' in given && { status: given['status'] }) }, fixed);
    }
    const { deletionTimestamp: _, managedFields: __, ...metadata } = metadataOf(given);
    const status = kind.hasStatus && 'status' in live ? { status: live['status'] } : {};
    const content = {
      ...(kind.hasStatus ? withoutStatus(given) : given),
      metadata: { ...metadata, ...fixed },
      ...status,
    };
    const isNew = kind.hasStatus && !isDeepStrictEqual(contentOf(content), contentOf(live));
    return isNew ? withMetadata(content, { generation: Number(before['generation'] ?? 0) + 1 }) : content;
  }

  #noted(before: Json | undefined, after: Json, { kind }: ObjectName, options: WriteOptions): Json {
    if (!kind.isManaged) return after;
    const common = { writer: writerOf(options), schema: kind.schema, apiVersion: apiVersionOf(kind) };
    return noteUpdate({ ...common, before, after, now: this.#now });
  }

  async #existing(name: ObjectName, signal: AbortSignal | undefined): Promise<StoredObject> {
    const stored = await this.#read1(name, signal);
    if (!stored) throw notFound(name.kind, name.name);
    return stored;
  }

  async #read1(
    { kind, namespace, name }: ObjectName,
    signal: AbortSignal | undefined,
  ): Promise<StoredObject | undefined> {
    const { kvs } = await answered(this.#options.etcd.range({ key: objectKey(kind.plural, namespace, name) }, signal));
    return kvs[0] && this.#read(kvs[0], kind);
  }

  /** An object may have been written by a version whose schema had fewer fields, so defaults are added when it is read. */
  #read({ key, value, modRevision }: KeyValue, kind: StoredKind): StoredObject {
    const text = kind.isSealed ? this.#options.seal.open(value, key) : value;
    const object = decode(JSON.parse(text.toString('utf8')) as unknown, kind);
    return { key, revision: modRevision, object: withMetadata(object, { resourceVersion: modRevision }) };
  }

  /** Undefined: the key was changed meanwhile. */
  async #write(
    { kind, namespace, name }: ObjectName,
    object: Json,
    before: StoredObject | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Json | undefined> {
    const key = objectKey(kind.plural, namespace, name);
    const { resourceVersion: _, ...metadata } = metadataOf(object);
    const text = Buffer.from(JSON.stringify({ ...object, metadata }));
    const value = kind.isSealed ? this.#options.seal.seal(text, key) : text;
    const { succeeded, revision } = await answered(
      this.#options.etcd.txn(
        { compare: [{ key, modRevision: before?.revision ?? '0' }], success: [{ put: { key, value } }] },
        signal,
      ),
    );
    return succeeded ? withMetadata(object, { resourceVersion: revision }) : undefined;
  }

  /** Deletes it with what it owns, in one transaction if that is not too much. False: it was changed meanwhile. */
  async #remove(stored: StoredObject, signal: AbortSignal | undefined): Promise<boolean> {
    for (;;) {
      const owned = await this.#ownedBy(stored, signal);
      const isAll = owned.length < MAX_OPERATIONS;
      const going = isAll ? [...owned, stored] : owned.slice(0, MAX_OPERATIONS);
      const success = going.map(({ key }): TxnOperation => ({ delete: { key } }));
      const compare = [{ key: stored.key, modRevision: stored.revision }];
      const { succeeded } = await answered(this.#options.etcd.txn({ compare, success }, signal));
      if (!succeeded || isAll) return succeeded;
    }
  }

  async #ownedBy(owner: StoredObject, signal: AbortSignal | undefined): Promise<readonly StoredObject[]> {
    const { uid, namespace } = metadataOf(owner.object);
    const owned: StoredObject[] = [];
    for (const kind of this.#options.kinds) {
      const prefix = collectionKey(kind.plural, textIn(namespace));
      const { kvs } = await answered(this.#options.etcd.range({ key: prefix, rangeEnd: endOf(prefix) }, signal));
      for (const kv of kvs) {
        const stored = this.#read(kv, kind);
        const { ownerReferences = [] } = metadataOf(stored.object) as { ownerReferences?: readonly { uid: string }[] };
        if (ownerReferences.some((one) => one.uid === uid)) owned.push(stored);
      }
    }
    const inner = await Promise.all(owned.map((one) => this.#ownedBy(one, signal)));
    return [...inner.flat(), ...owned];
  }

  /** A change as a watch with a selector sees it: an object that begins to match is added, one that stops matching is deleted. */
  #eventOf({ type, kv, previous }: EtcdEvent, kind: StoredKind, select: Selector): ObjectEvent | undefined {
    const before = previous && shown(this.#read(previous, kind).object, kind);
    const wasSelected = before !== undefined && select(before);
    // A deletion shows the last state, at the revision of the deletion, as on the API server.
    const gone = (): ObjectEvent | undefined =>
      wasSelected ? { type: 'DELETED', object: withMetadata(before, { resourceVersion: kv.modRevision }) } : undefined;
    if (type === 'DELETE') {
      if (!previous) throw new ApiError(410, 'Expired', 'what was deleted is compacted');
      return gone();
    }
    if (!previous && kv.createRevision !== kv.modRevision)
      throw new ApiError(410, 'Expired', 'what changed is compacted');
    const object = shown(this.#read(kv, kind).object, kind);
    if (!select(object)) return gone();
    return { type: wasSelected ? 'MODIFIED' : 'ADDED', object };
  }
}

const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';
const TOO_MANY = 'other writers changed the object at every attempt';

/** Metadata that only the store changes. */
const FIXED_METADATA = [
  'name',
  'namespace',
  'uid',
  'creationTimestamp',
  'resourceVersion',
  'generation',
  'deletionTimestamp',
];

const pick = (object: Json, keys: readonly string[]): Json =>
  Object.fromEntries(keys.flatMap((key) => (key in object ? [[key, object[key]]] : [])));

const withoutStatus = (object: Json): Json => omit(object, ['status']);
const contentOf = (object: Json): Json => omit(object, ['metadata', 'status']);
const writerOf = ({ manager, subresource }: Writer): Writer => ({ manager, subresource });

function hasFinalizers(object: Json): boolean {
  const { finalizers } = metadataOf(object);
  return Array.isArray(finalizers) && finalizers.length > 0;
}

/** The part of the object that an apply to this address covers: its status, or everything else. */
function partOf(body: Json, { subresource }: WriteOptions): Json {
  const { apiVersion, kind, metadata, status, ...rest } = body;
  const { labels: _, annotations: __, finalizers: ___, ownerReferences: ____, ...identity } = jsonIn(metadata);
  return subresource
    ? { apiVersion, kind, metadata: identity, ...(status !== undefined && { status }) }
    : { apiVersion, kind, metadata, ...rest };
}

/** Every object says what it is. */
const shown = (object: Json, kind: StoredKind): Json => ({
  ...object,
  apiVersion: apiVersionOf(kind),
  kind: kind.kind,
});

async function answered<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (err) {
    throw apiErrorOf(err);
  }
}

function apiErrorOf(err: unknown): unknown {
  if (!(err instanceof EtcdError)) return err;
  if (err.code === 'COMPACTED') return new ApiError(410, 'Expired', 'the resourceVersion is too old', { cause: err });
  if (err.code === 'REFUSED')
    return new ApiError(500, 'InternalError', `etcd refused it: ${err.message}`, { cause: err });
  return new ApiError(0, 'UNREACHABLE', err.message, { cause: err });
}
