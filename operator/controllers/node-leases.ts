// Keeps a Lease for each node of a pool.

import { API_VERSION, nodeLeaseName, poolLabels } from '../../crds/names.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import { isConflict, type KubeApi } from '../kube/api.ts';
import { LEASE } from '../kube/resources.ts';
import type { Caches } from '../observe/caches.ts';

interface NodeLeasesOptions {
  readonly api: Pick<KubeApi, 'create'>;
  readonly caches: Pick<Caches, 'nodesOf' | 'leases'>;
}

/** Creates the empty Leases that the recorders renew. Each is deleted with its RecorderNode. Throws ApiError. */
export async function keepLeases(pool: RecorderPool, { api, caches }: NodeLeasesOptions): Promise<void> {
  const { namespace, name: poolName } = pool.metadata;
  for (const { metadata } of caches.nodesOf(pool)) {
    const name = nodeLeaseName(metadata.name);
    if (caches.leases.get(`${namespace}/${name}`)) continue;
    const owner = { apiVersion: API_VERSION, kind: 'RecorderNode', name: metadata.name, uid: metadata.uid ?? '' };
    await api
      .create(LEASE, {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name, namespace, labels: poolLabels(poolName), ownerReferences: [owner] },
      })
      .catch((err: unknown) => {
        // The cache is outdated: it exists.
        if (!isConflict(err)) throw err;
      });
  }
}
