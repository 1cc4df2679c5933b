// Secrets that the operator makes for a pool, with something random in them. Each is made once, and made again if it was deleted;
// what people write into it is not changed.

import { poolLabels } from '../../crds/names.ts';
import { ApiError, isNotFound, type KubeApi, type KubeObject } from '../kube/api.ts';
import type { Owner } from '../kube/owned.ts';
import { SECRET } from '../kube/resources.ts';

interface PoolSecret {
  readonly name: string;
  /** The type of the Secret: what it is for. */
  readonly type: string;
  /** The key in its data. */
  readonly key: string;
  /** Returns the text of a new Secret. */
  readonly make: () => string;
}

type Pool = KubeObject['metadata'];

interface NewSecret {
  readonly name: string;
  readonly type?: string;
  /** A Secret without owners stays when the pool is deleted. */
  readonly ownerReferences?: KubeObject['metadata']['ownerReferences'];
}

/** The text in the Secret; undefined for a Secret without it. Throws ApiError when the Secret cannot be read or created. */
export async function secretTextOf(
  api: KubeApi,
  pool: Pool,
  { apiVersion, kind, name: ownerName, uid }: Owner,
  { name, type, key, make }: PoolSecret,
): Promise<string | undefined> {
  const known = await findSecret(api, pool, name);
  if (known) return textIn(known, key);
  const ownerReferences = [{ apiVersion, kind, name: ownerName, uid, controller: true, blockOwnerDeletion: true }];
  return textIn(await createSecret(api, pool, { name, type, ownerReferences }, { [key]: make() }), key);
}

/** Undefined if there is none. Throws ApiError when it cannot be read. */
export async function findSecret(api: KubeApi, { namespace }: Pool, name: string): Promise<KubeObject | undefined> {
  try {
    return await api.get(SECRET, { namespace, name });
  } catch (err) {
    if (isNotFound(err)) return undefined;
    throw err;
  }
}

/** Throws ApiError when it cannot be created. */
export function createSecret(
  api: KubeApi,
  { namespace, name: pool }: Pool,
  { name, type, ownerReferences }: NewSecret,
  texts: Readonly<Record<string, string>>,
): Promise<KubeObject> {
  return api.create(SECRET, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace, name, labels: poolLabels(pool), ...(ownerReferences && { ownerReferences }) },
    ...(type !== undefined && { type }),
    data: Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
  });
}

/** Says that the operator has no right to `what`. Throws every other error. */
export function withoutRight(err: unknown, what: string): string {
  if (!(err instanceof ApiError) || err.status !== 403) throw err;
  return `${what} may not be read or made: ${err.message}`;
}

/** Without the white space that editors leave at the end, and that readers of such a file remove, too. */
export function textIn({ data }: KubeObject, key: string): string | undefined {
  const value = (data as Readonly<Record<string, unknown>> | undefined)?.[key];
  const text = typeof value === 'string' ? Buffer.from(value, 'base64').toString('utf8').trim() : '';
  return text === '' ? undefined : text;
}
