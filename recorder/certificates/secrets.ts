// Secrets of the cluster's store, as this room reads and writes them.

import { API_VERSION } from '../../crds/names.ts';
import { hasStatus } from '../../base/kubernetes/api-error.ts';
import type { KubernetesClient } from '../../base/kubernetes/client.ts';

export type StoreApi = Pick<KubernetesClient, 'get' | 'list' | 'call'>;

interface StoredSecret {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly type: string;
  /** Values in base64. */
  readonly data: Readonly<Record<string, string>>;
}

export const secretsPath = (namespace: string): string => `/api/v1/namespaces/${namespace}/secrets`;
export const nodesPath = (namespace: string): string => `/apis/${API_VERSION}/namespaces/${namespace}/recordernodes`;

/** Undefined if there is none. Throws ApiError. */
export async function readSecret(api: StoreApi, namespace: string, name: string): Promise<StoredSecret | undefined> {
  try {
    const { metadata, type, data } = await api.get(`${secretsPath(namespace)}/${name}`);
    return {
      uid: String(metadata['uid']),
      resourceVersion: metadata.resourceVersion,
      type: String(type),
      data: (data ?? {}) as StoredSecret['data'],
    };
  } catch (err) {
    if (hasStatus(err, 404)) return undefined;
    throw err;
  }
}

export const secretOf = (namespace: string, name: string, type: string, data: object, from?: StoredSecret): object => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace, ...(from && { uid: from.uid, resourceVersion: from.resourceVersion }) },
  type,
  data,
});
