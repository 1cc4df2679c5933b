// Reconciles a pool on servers without Kubernetes. Administrators start and stop its recorders, so the operator only keeps a Lease for
// each node, and the list of Secrets that are logins of cameras.

import type { RecorderPool } from '../../crds/recorder-pool.ts';
import type { KubeApi } from '../kube/api.ts';
import type { Caches } from '../observe/caches.ts';
import type { CameraLogins } from './camera-logins.ts';
import type { Drains } from './drains.ts';
import { keepLeases } from './node-leases.ts';
import { ALL_APPLIED, type Rollout } from './pool-status.ts';

interface ServerNodesOptions {
  readonly api: KubeApi;
  readonly caches: Caches;
  readonly logins: CameraLogins;
  readonly drains: Pick<Drains, 'forget'>;
}

export class ServerNodes {
  readonly #options: ServerNodesOptions;

  constructor(options: ServerNodesOptions) {
    this.#options = options;
  }

  forget(key?: string): void {
    this.#options.logins.forget(key);
    if (key !== undefined) this.#options.drains.forget(key);
  }

  /** Throws ApiError; call it again then. */
  async reconcile(key: string, pool: RecorderPool): Promise<Rollout & { readonly recheckMs: undefined }> {
    const { api, caches, logins } = this.#options;
    await logins.granted(key, pool, caches.camerasOf(pool));
    await keepLeases(pool, { api, caches });
    const hasNodes = caches.nodesOf(pool).length > 0;
    return {
      nodesUpdated: undefined,
      conditions: [ALL_APPLIED, hasNodes ? HAS_NODES : NO_NODES],
      recheckMs: undefined,
    };
  }
}

const HAS_NODES = { type: 'NodesSelected', status: 'True', reason: 'Selected', message: '' } as const;
const NO_NODES = {
  type: 'NodesSelected',
  status: 'False',
  reason: 'NoNodes',
  message: 'no server has joined the pool',
} as const;
