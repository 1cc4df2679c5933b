// What lies in a Secret or a ConfigMap.

import { ApiError, type ApiClient, type KubeObject } from '../api-client.ts';

export type Keyed = 'secrets' | 'configmaps';

interface KeyedObject extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
  readonly binaryData?: Readonly<Record<string, string>>;
}

/** The values by key; none of an object that is not there and is optional. */
export async function keyedValues(
  api: ApiClient,
  resource: Keyed,
  namespace: string,
  { name, optional = false }: { readonly name: string; readonly optional?: boolean },
): Promise<ReadonlyMap<string, string | Buffer>> {
  const values = new Map<string, string | Buffer>();
  try {
    const { data, binaryData } = await api.get<KeyedObject>(`/api/v1/namespaces/${namespace}/${resource}/${name}`);
    const decode = (value: string): Buffer => Buffer.from(value, 'base64');
    for (const [key, value] of Object.entries(data ?? {}))
      values.set(key, resource === 'secrets' ? decode(value) : value);
    for (const [key, value] of Object.entries(binaryData ?? {})) values.set(key, decode(value));
  } catch (error) {
    if (!(optional && error instanceof ApiError && error.status === 404)) throw error;
  }
  return values;
}
