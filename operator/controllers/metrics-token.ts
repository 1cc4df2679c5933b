// The token with which Prometheus reads the metrics of a pool's recorders. It is in a Secret of the pool, which is made once and
// made again if it was deleted. Recorders get only the digest of the token.

import { newToken, sha256 } from '../../base/new-token.ts';
import { metricsTokenName, poolLabels } from '../../crds/names.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import { isNotFound, type KubeApi, type KubeObject } from '../kube/api.ts';
import type { Owner } from '../kube/owned.ts';
import { SECRET } from '../kube/resources.ts';

/** The key in the Secret's data. */
const KEY = 'token';

/**
 * SHA-256 of the pool's token in hexadecimal digits. Undefined for a Secret without a token; such a Secret is not changed. Throws
 * ApiError when the Secret cannot be read or created.
 */
export async function metricsTokenOf(api: KubeApi, pool: RecorderPool, owner: Owner): Promise<string | undefined> {
  const { namespace, name: poolName } = pool.metadata;
  const name = metricsTokenName(poolName);
  const token = tokenIn(await getOrMake(api, { namespace, name }, poolName, owner));
  return token === undefined ? undefined : sha256(token).toString('hex');
}

async function getOrMake(
  api: KubeApi,
  name: KubeObject['metadata'],
  pool: string,
  { apiVersion, kind, name: ownerName, uid }: Owner,
): Promise<KubeObject> {
  try {
    return await api.get(SECRET, name);
  } catch (err) {
    if (!isNotFound(err)) throw err;
  }
  const ownerReferences = [{ apiVersion, kind, name: ownerName, uid, controller: true, blockOwnerDeletion: true }];
  return api.create(SECRET, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...name, labels: poolLabels(pool), ownerReferences },
    type: 'kube-nvr.dev/metrics-token',
    data: { [KEY]: Buffer.from(newToken()).toString('base64') },
  });
}

function tokenIn({ data }: KubeObject): string | undefined {
  const value = (data as Readonly<Record<string, unknown>> | undefined)?.[KEY];
  // Prometheus trims the token, and editors leave white space at its end.
  const token = typeof value === 'string' ? Buffer.from(value, 'base64').toString('utf8').trim() : '';
  return token === '' ? undefined : token;
}
