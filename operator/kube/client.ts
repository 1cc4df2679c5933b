// The implementation of KubeApi for a real API server: JSON over HTTPS.

import {
  type CallOptions as RequestOptions,
  type ClientOptions,
  type Connection,
  KubernetesClient,
  MERGE_PATCH,
} from '../../base/kubernetes/client.ts';
import { OPERATOR_MANAGER } from '../../crds/names.ts';
import type {
  ApplyOptions,
  CallOptions,
  DeleteOptions,
  KubeApi,
  KubeObject,
  ObjectList,
  ObjectName,
  Resource,
  Selection,
  WatchEvent,
  WriteOptions,
} from './api.ts';
import { apiVersionOf } from './resources.ts';

interface RestKubeApiOptions extends Pick<ClientOptions, 'watchSeconds' | 'watchSilenceMs' | 'pageSize'> {
  /** Default 10 s. */
  readonly callTimeoutMs?: number;
}

const CALL_TIMEOUT_MS = 10_000;

export class RestKubeApi implements KubeApi {
  readonly #client: KubernetesClient;

  constructor(connection: Connection, options: RestKubeApiOptions = {}) {
    this.#client = new KubernetesClient(connection, {
      userAgent: OPERATOR_MANAGER,
      callTimeoutMs: CALL_TIMEOUT_MS,
      ...options,
    });
  }

  async get(resource: Resource, name: ObjectName, options: CallOptions = {}): Promise<KubeObject> {
    return this.#client.get(objectPath(resource, name), options);
  }

  async list(resource: Resource, selection: Selection, options: CallOptions = {}): Promise<ObjectList> {
    return this.#client.list(collectionPath(resource, selection.namespace), { ...options, query: queryOf(selection) });
  }

  pages(resource: Resource, selection: Selection, options: CallOptions = {}): AsyncIterable<ObjectList> {
    const path = collectionPath(resource, selection.namespace);
    return this.#client.pages(path, { ...options, query: queryOf(selection) });
  }

  watch(
    resource: Resource,
    selection: Selection & { readonly resourceVersion: string },
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent> {
    const path = collectionPath(resource, selection.namespace);
    return this.#client.watch(path, selection.resourceVersion, { query: queryOf(selection), signal });
  }

  async create(resource: Resource, object: KubeObject, options: WriteOptions = {}): Promise<KubeObject> {
    return this.#write('POST', collectionPath(resource, object.metadata.namespace), typed(resource, object), options);
  }

  async replace(resource: Resource, object: KubeObject, options: WriteOptions = {}): Promise<KubeObject> {
    return this.#write('PUT', objectPath(resource, object.metadata), typed(resource, object), options);
  }

  async mergePatch(
    resource: Resource,
    name: ObjectName,
    patch: object,
    options: WriteOptions = {},
  ): Promise<KubeObject> {
    return this.#write('PATCH', objectPath(resource, name), patch, options, { contentType: MERGE_PATCH });
  }

  async apply(resource: Resource, object: KubeObject, options: ApplyOptions): Promise<KubeObject> {
    return this.#write('PATCH', objectPath(resource, object.metadata), typed(resource, object), options, {
      contentType: 'application/apply-patch+yaml',
      query: { fieldManager: options.fieldManager, ...(options.force && { force: 'true' }) },
    });
  }

  async delete(resource: Resource, name: ObjectName, options: DeleteOptions = {}): Promise<void> {
    const { uid, resourceVersion, propagationPolicy, gracePeriodSeconds, ...call } = options;
    const body = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      preconditions: { uid, resourceVersion },
      propagationPolicy,
      gracePeriodSeconds,
    };
    await this.#client.call('DELETE', objectPath(resource, name), body, call);
  }

  /** Closes every connection; calls in flight fail. */
  async close(): Promise<void> {
    await this.#client.close();
  }

  async #write(
    method: 'POST' | 'PUT' | 'PATCH',
    path: string,
    body: object,
    { subresource, dryRun, signal, timeoutMs }: WriteOptions,
    { contentType, query }: Pick<RequestOptions, 'contentType' | 'query'> = {},
  ): Promise<KubeObject> {
    const answer = await this.#client.call(method, subresource ? `${path}/${subresource}` : path, body, {
      signal,
      timeoutMs,
      query: { fieldManager: OPERATOR_MANAGER, ...query, ...(dryRun && { dryRun: 'All' }) },
      ...(contentType !== undefined && { contentType }),
    });
    return answer as KubeObject;
  }
}

/** Adds `apiVersion` and `kind`: the API server requires them in a body, but lists leave them out. */
const typed = (resource: Resource, object: KubeObject): KubeObject => ({
  ...object,
  apiVersion: apiVersionOf(resource),
  kind: resource.kind,
});

function collectionPath(resource: Resource, namespace: string | undefined): string {
  const { group, version, plural, clusterScoped } = resource;
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  return namespace === undefined || clusterScoped
    ? `${root}/${plural}`
    : `${root}/namespaces/${encodeURIComponent(namespace)}/${plural}`;
}

const objectPath = (resource: Resource, { namespace, name }: ObjectName): string =>
  `${collectionPath(resource, namespace)}/${encodeURIComponent(name)}`;

function queryOf({ labelSelector, fieldSelector }: Selection): Record<string, string> {
  return {
    ...(labelSelector !== undefined && { labelSelector }),
    ...(fieldSelector !== undefined && { fieldSelector }),
  };
}
