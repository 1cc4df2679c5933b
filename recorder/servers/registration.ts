// How a server without Kubernetes enters its cluster: with a RecorderNode that says where others reach it, in the pool that the first
// server makes. On Kubernetes the operator makes both from pods and nodes.

import { isDeepStrictEqual } from 'node:util';
import { hasStatus } from '../../base/kubernetes/api-error.ts';
import { mergePatch, type KubernetesClient, type KubernetesObject } from '../../base/kubernetes/client.ts';
import { API_VERSION, poolLabels, RECORDER_NODES, RECORDER_POOLS } from '../../crds/names.ts';
import type { Role } from './own-etcd.ts';

/** URLs, as in the spec of a RecorderNode. */
export interface Addresses {
  readonly address: string | undefined;
  readonly playbackAddress: string | undefined;
  readonly peerAddress: string | undefined;
}

interface RegistrationOptions {
  readonly api: Pick<KubernetesClient, 'get' | 'call'>;
  readonly namespace: string;
  readonly pool: string;
  readonly nodeId: string;
  readonly recordPath: string;
  readonly addresses: () => Addresses;
}

export class Registration {
  readonly #options: RegistrationOptions;
  #hasPool = false;

  constructor(options: RegistrationOptions) {
    this.#options = options;
  }

  /** Resolves to the node's role. Throws ApiError. */
  async renew(): Promise<Role> {
    const { pool, nodeId, recordPath } = this.#options;
    if (!this.#hasPool) {
      await this.#ensure(RECORDER_POOLS, pool, () => ({
        kind: 'RecorderPool',
        metadata: { name: pool },
        spec: { archive: { hostPath: recordPath } },
      }));
      this.#hasPool = true;
    }
    const wanted = definedIn(this.#options.addresses());
    const { spec } = await this.#ensure(RECORDER_NODES, nodeId, () => ({
      kind: 'RecorderNode',
      // Other labels are kept, because placements of cameras may use them.
      metadata: { name: nodeId, labels: poolLabels(pool) },
      spec: { nodeName: nodeId, poolRef: { name: pool }, ...wanted },
    }));
    const { role, address, playbackAddress, peerAddress } = (spec ?? {}) as Addresses & { readonly role: Role };
    if (!isDeepStrictEqual(definedIn({ address, playbackAddress, peerAddress }), wanted)) {
      // null removes a field (RFC 7396).
      const change = Object.fromEntries(
        Object.entries(this.#options.addresses()).map(([key, url]) => [key, url ?? null]),
      );
      await this.#patch(change);
    }
    return role;
  }

  /** Says that the node is no member of the cluster. Throws ApiError. */
  async remove(): Promise<void> {
    await this.#patch({ role: 'Removed' });
  }

  async #patch(spec: object): Promise<void> {
    const path = `${this.#path(RECORDER_NODES)}/${this.#options.nodeId}`;
    await mergePatch(this.#options.api, path, { spec });
  }

  async #ensure(plural: string, name: string, make: () => object): Promise<KubernetesObject> {
    const { api } = this.#options;
    const path = this.#path(plural);
    try {
      return await api.get(`${path}/${name}`);
    } catch (err) {
      if (!hasStatus(err, 404)) throw err;
    }
    try {
      return (await api.call('POST', path, { apiVersion: API_VERSION, ...make() })) as KubernetesObject;
    } catch (err) {
      // Another server was first.
      if (!hasStatus(err, 409)) throw err;
      return await api.get(`${path}/${name}`);
    }
  }

  #path(plural: string): string {
    return `/apis/${API_VERSION}/namespaces/${this.#options.namespace}/${plural}`;
  }
}

const definedIn = (addresses: Addresses): Partial<Addresses> =>
  Object.fromEntries(Object.entries(addresses).filter(([, url]) => url !== undefined));
