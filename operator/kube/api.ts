// The door of this room: what the operator needs of an API server. `client.ts` speaks to a real one; a simulation may
// stand behind the same interface.

import { ApiError } from '../../base/kubernetes/api-error.ts';

export { ApiError };

/** What objects of one kind are called in paths: `/apis/{group}/{version}/namespaces/{namespace}/{plural}`. */
export interface Resource {
  /** Empty: the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  /** Of the whole cluster: Nodes, Namespaces. */
  readonly clusterScoped?: true;
}

export interface ObjectMetadata {
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly generation?: number | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  readonly creationTimestamp?: string | undefined;
  readonly deletionTimestamp?: string | undefined;
  readonly finalizers?: readonly string[] | undefined;
  readonly ownerReferences?: readonly OwnerReference[] | undefined;
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean | undefined;
  readonly blockOwnerDeletion?: boolean | undefined;
}

/** Any object, as JSON. Times are strings: reading and watching give the same. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMetadata;
  readonly [field: string]: unknown;
}

export interface ObjectName {
  readonly namespace?: string | undefined;
  readonly name: string;
}

export interface Selection {
  /** Left out: of all namespaces. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

export interface ObjectList {
  readonly items: readonly KubeObject[];
  readonly resourceVersion: string;
}

/** A bookmark has an object with nothing but `metadata.resourceVersion`. */
export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: KubeObject;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Instead of the client's own deadline. */
  readonly timeoutMs?: number | undefined;
}

export interface WriteOptions extends CallOptions {
  readonly subresource?: 'status' | undefined;
  /** Refuse or accept, but write nothing. */
  readonly dryRun?: boolean | undefined;
}

export interface ApplyOptions extends WriteOptions {
  readonly fieldManager: string;
  /** Takes fields that another manager has set. */
  readonly force?: boolean;
}

export interface DeleteOptions extends CallOptions {
  /** Delete this object and no later one of its name. */
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly propagationPolicy?: 'Foreground' | 'Background' | 'Orphan' | undefined;
  readonly gracePeriodSeconds?: number | undefined;
}

/** Every call has a deadline, and throws ApiError for an answer that is no success as for none. */
export interface KubeApi {
  get(resource: Resource, name: ObjectName, options?: CallOptions): Promise<KubeObject>;
  list(resource: Resource, selection: Selection, options?: CallOptions): Promise<ObjectList>;
  /**
   * Changes after `resourceVersion`, with bookmarks. Ends when the server ends it, which it does after some time;
   * throws ApiError when it fails, with status 410 when `resourceVersion` is too old to go on from.
   */
  watch(
    resource: Resource,
    selection: Selection & { readonly resourceVersion: string },
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent>;
  create(resource: Resource, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  /** With `metadata.resourceVersion` the write is lost (409) when somebody else wrote before. */
  replace(resource: Resource, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  /** RFC 7396. */
  mergePatch(resource: Resource, name: ObjectName, patch: object, options?: WriteOptions): Promise<KubeObject>;
  /** Server-side apply. */
  apply(resource: Resource, object: KubeObject, options: ApplyOptions): Promise<KubeObject>;
  delete(resource: Resource, name: ObjectName, options?: DeleteOptions): Promise<void>;
}

const hasStatus = (err: unknown, status: number): boolean => err instanceof ApiError && err.status === status;

export const isNotFound = (err: unknown): boolean => hasStatus(err, 404);
/** Somebody else wrote before, or the object exists already. */
export const isConflict = (err: unknown): boolean => hasStatus(err, 409);
/** A list or watch must begin anew. */
export const isExpired = (err: unknown): boolean => hasStatus(err, 410);
/** Nobody knows whether the call was carried out. */
export const isUnanswered = (err: unknown): boolean => hasStatus(err, 0);

/** `namespace/name`, or `name` for what has no namespace: the key of queues and caches. */
export const keyOf = ({ namespace, name }: ObjectName): string => (namespace ? `${namespace}/${name}` : name);

/** The inverse of `keyOf`. */
export function nameOfKey(key: string): { readonly namespace?: string; readonly name: string } {
  const slash = key.indexOf('/');
  return slash === -1 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
