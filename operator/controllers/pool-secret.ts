// A Secret that the operator makes for a pool with something random in it. It is made once, and made again if it was deleted;
// what people write into it is not changed.

import { poolLabels } from '../../crds/names.ts';
import { isNotFound, type KubeApi, type KubeObject } from '../kube/api.ts';
import type { Owner } from '../kube/owned.ts';
import { SECRET } from '../kube/resources.ts';

interface PoolSecret {
  readonly name: string;
  /** The type of the Secret: what it is for. */
  readonly type: string;
  /** The key in its data. */
  readonly key: string;
  /** Makes the text that a new Secret has. */
  readonly make: () => string;
}

/** The text in the Secret; undefined for a Secret without it. Throws ApiError when the Secret cannot be read or created. */
export async function secretTextOf(
  api: KubeApi,
  { namespace, name: pool }: KubeObject['metadata'],
  { apiVersion, kind, name: ownerName, uid }: Owner,
  { name, type, key, make }: PoolSecret,
): Promise<string | undefined> {
  try {
    return textIn(await api.get(SECRET, { namespace, name }), key);
  } catch (err) {
    if (!isNotFound(err)) throw err;
  }
  const ownerReferences = [{ apiVersion, kind, name: ownerName, uid, controller: true, blockOwnerDeletion: true }];
  const made = await api.create(SECRET, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace, name, labels: poolLabels(pool), ownerReferences },
    type,
    data: { [key]: Buffer.from(make()).toString('base64') },
  });
  return textIn(made, key);
}

/** Without the white space that editors leave at the end, and that readers of such a file remove, too. */
function textIn({ data }: KubeObject, key: string): string | undefined {
  const value = (data as Readonly<Record<string, unknown>> | undefined)?.[key];
  const text = typeof value === 'string' ? Buffer.from(value, 'base64').toString('utf8').trim() : '';
  return text === '' ? undefined : text;
}
