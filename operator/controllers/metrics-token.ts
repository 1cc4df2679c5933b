// The token with which Prometheus reads the metrics of a pool's recorders, in a Secret of the pool. Recorders get only the digest
// of the token.

import { newToken, sha256 } from '../../base/new-token.ts';
import { metricsTokenName } from '../../crds/names.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import type { KubeApi } from '../kube/api.ts';
import type { Owner } from '../kube/owned.ts';
import { secretTextOf } from './pool-secret.ts';

/**
 * SHA-256 of the pool's token in hexadecimal digits. Undefined for a Secret without a token. Throws ApiError when the Secret
 * cannot be read or created.
 */
export async function metricsTokenOf(
  api: KubeApi,
  { metadata }: RecorderPool,
  owner: Owner,
): Promise<string | undefined> {
  const token = await secretTextOf(api, metadata, owner, {
    name: metricsTokenName(metadata.name),
    type: 'kube-nvr.dev/metrics-token',
    key: 'token',
    make: newToken,
  });
  return token === undefined ? undefined : sha256(token).toString('hex');
}
