// The interface of this room: the calls to the API server that the operator needs. `client.ts` implements it over HTTPS;
// simulations implement it in memory.

import { ApiError, hasStatus } from '../../base/kubernetes/api-error.ts';

export { ApiError, hasStatus };

/** A kind and how its paths are made: `/apis/{group}/{version}/namespaces/{namespace}/{plural}`. */
export interface Resource {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  /** Cluster-scoped: Nodes, Namespaces. */
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

/** Any object as JSON. Times stay strings, in lists and watches alike. */
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
  /** Left out: all namespaces. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

export interface ObjectList {
  readonly items: readonly KubeObject[];
  readonly resourceVersion: string;
}

/** The object of a bookmark has nothing but `metadata.resourceVersion`. */
export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: KubeObject;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Replaces the client's default deadline. */
  readonly timeoutMs?: number | undefined;
}

export interface WriteOptions extends CallOptions {
  readonly subresource?: 'status' | undefined;
  /** Validate without writing. */
  readonly dryRun?: boolean | undefined;
}

export interface ApplyOptions extends WriteOptions {
  readonly fieldManager: string;
  /** Takes over fields that another manager has set. */
  readonly force?: boolean;
}

export interface DeleteOptions extends CallOptions {
  /** Delete only the object with this uid, not a later one of the same name. */
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly propagationPolicy?: 'Foreground' | 'Background' | 'Orphan' | undefined;
  readonly gracePeriodSeconds?: number | undefined;
}

/** Every call has a deadline. It throws ApiError when the response is not a success and when there is none. */
export interface KubeApi {
  get(resource: Resource, name: ObjectName, options?: CallOptions): Promise<KubeObject>;
  list(resource: Resource, selection: Selection, options?: CallOptions): Promise<ObjectList>;
  /** The same page by page. Status 410 means that the list has to be begun again. */
  pages(resource: Resource, selection: Selection, options?: CallOptions): AsyncIterable<ObjectList>;
  /**
   * Changes after `resourceVersion`, including bookmarks. The generator ends when the server ends the watch, as it does after
   * some time. Throws ApiError when the watch fails; status 410 means that `resourceVersion` is too old to resume from.
   */
  watch(
    resource: Resource,
    selection: Selection & { readonly resourceVersion: string },
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent>;
  create(resource: Resource, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  /** With `metadata.resourceVersion`, the write fails (409) if the object was changed since. */
  replace(resource: Resource, object: KubeObject, options?: WriteOptions): Promise<KubeObject>;
  /** JSON merge patch, RFC 7396. */
  mergePatch(resource: Resource, name: ObjectName, patch: object, options?: WriteOptions): Promise<KubeObject>;
  /** Server-side apply. */
  apply(resource: Resource, object: KubeObject, options: ApplyOptions): Promise<KubeObject>;
  delete(resource: Resource, name: ObjectName, options?: DeleteOptions): Promise<void>;
}

export const isNotFound = (err: unknown): boolean => hasStatus(err, 404);
/** The object was changed since it was read, or it exists already. */
export const isConflict = (err: unknown): boolean => hasStatus(err, 409);

/** `namespace/name`, or `name` for objects without a namespace: the key in queues and caches. */
export const keyOf = ({ namespace, name }: ObjectName): string => (namespace ? `${namespace}/${name}` : name);

/** The inverse of `keyOf`. */
export function nameOfKey(key: string): { readonly namespace?: string; readonly name: string } {
  const slash = key.indexOf('/');
  return slash === -1 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
