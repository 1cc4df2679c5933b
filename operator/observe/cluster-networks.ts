// The addresses of the cluster itself: of its nodes, pods and Services, and of the API server. No camera is there.

import { isIP } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { ApiError, type KubeApi, type KubeObject } from '../kube/api.ts';
import { ENDPOINT_SLICE, SERVICE_CIDR } from '../kube/resources.ts';
import type { ClusterNode } from './caches.ts';

interface ClusterNetworksOptions {
  readonly api: KubeApi;
  readonly nodes: () => readonly ClusterNode[];
  /** Networks configured by the cluster's owner, such as those of pods that nodes do not report. */
  readonly told: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

/** The networks of Services and the API server's addresses change only once in years. */
const LOOK_MS = 300_000;

export class ClusterNetworks {
  readonly #options: ClusterNetworksOptions;
  #lookedMs = -Infinity;
  #services: readonly string[] = [];
  #apiServers: readonly string[] = [];

  constructor(options: ClusterNetworksOptions) {
    this.#options = options;
  }

  /** Sorted, such as `10.0.0.7`, `10.96.0.0/12`. Throws ApiError; call it again then. */
  async list(): Promise<readonly string[]> {
    const { clock, nodes, told } = this.#options;
    if (clock.monotonicMs() - this.#lookedMs >= LOOK_MS) {
      [this.#services, this.#apiServers] = await Promise.all([
        this.#look(async (api) => (await api.list(SERVICE_CIDR, {})).items.flatMap(cidrsOf)),
        this.#look(async (api) =>
          addressesIn(await api.get(ENDPOINT_SLICE, { namespace: 'default', name: 'kubernetes' })),
        ),
      ]);
      this.#lookedMs = clock.monotonicMs();
    }
    const ofNodes = nodes().flatMap(({ spec, status }) => [
      ...(spec?.podCIDRs ?? []),
      ...(status?.addresses ?? []).flatMap(({ address }) => address),
    ]);
    // The addresses of nodes include host names.
    return [...new Set([...told, ...this.#services, ...this.#apiServers, ...ofNodes])].filter(isNetwork).sort();
  }

  /**
   * Empty if the kind does not exist (before Kubernetes 1.33) or may not be read: the cluster's owner then has to configure the
   * networks.
   */
  async #look(look: (api: KubeApi) => Promise<readonly string[]>): Promise<readonly string[]> {
    const { api, log } = this.#options;
    try {
      return await look(api);
    } catch (err) {
      if (!(err instanceof ApiError) || ![403, 404].includes(err.status)) throw err;
      log.warn({ reason: err.reason, message: err.message }, 'the networks of the cluster cannot be read');
      return [];
    }
  }
}

/** Whether the text is an address or a network such as `10.96.0.0/12`. A recorder does not start with anything else. */
export function isNetwork(text: string): boolean {
  const [, address = '', bits = '0'] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(address);
  return version !== 0 && Number(bits) <= (version === 4 ? 32 : 128);
}

const cidrsOf = (object: KubeObject): readonly string[] =>
  (object['spec'] as { readonly cidrs?: readonly string[] } | undefined)?.cidrs ?? [];

const addressesIn = (slice: KubeObject): readonly string[] =>
  ((slice['endpoints'] ?? []) as readonly { readonly addresses?: readonly string[] }[]).flatMap(
    ({ addresses = [] }) => addresses,
  );
