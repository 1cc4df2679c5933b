// The CA of each pool, and the certificates of its recorders. The keys of the CAs are in one Secret in the operator's namespace,
// which nothing else reads. Recorders make their own keys and put a request into the status of their RecorderNode, which only the
// recorder of that node can write. The operator chooses the names in a certificate from what it knows itself.

import { X509Certificate } from 'node:crypto';
import {
  authoritiesData,
  authoritiesIn,
  authoritiesName,
  bundleOf,
  isLeafDue,
  leafTimes,
  madeFrom,
  needsNext,
  signerOf,
  withNext,
  type KeptAuthority,
} from '../../base/authorities.ts';
import type { Clock } from '../../base/clock.ts';
import { RequestError } from '../../base/error.ts';
import { hostInUrl, hostOfUrl } from '../../base/host.ts';
import type { Log } from '../../base/log.ts';
import { Turns } from '../../base/turns.ts';
import { AUTHORITIES_SECRET, labels, nodeIdentity, poolLabels, recorderName } from '../../crds/names.ts';
import type { RecorderNode } from '../../crds/recorder-node.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import { PEERS_PORT, serviceNamesOf } from '../manifests/recorder.ts';
import { ApiError, isConflict, isNotFound, type KubeApi, type KubeObject } from '../kube/api.ts';
import { RECORDER_NODE, SECRET } from '../kube/resources.ts';
import type { Caches, ClusterNode, RecorderPod } from '../observe/caches.ts';
import type { PlannedCondition } from '../plan/snapshot.ts';
import { podsByNode } from './addresses.ts';

export interface CertificatesOptions {
  readonly api: KubeApi;
  readonly caches: Pick<Caches, 'nodesOf' | 'podsOf' | 'nodes'>;
  /** The operator's own namespace. */
  readonly ownNamespace: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Condition type: True while recorders can be given certificates. */
const TYPE = 'CertificatesIssued';

export class Certificates {
  readonly #options: CertificatesOptions;
  /** The content of the Secret by pool; undefined until it was read in this term of leadership. */
  #kept: Map<string, readonly KeptAuthority[]> | undefined;
  /** One at a time, because one Secret holds the CAs of all pools. */
  readonly #turns = new Turns(1);

  constructor(options: CertificatesOptions) {
    this.#options = options;
  }

  /** Drops the cached Secret, because another leader may have written it meanwhile. */
  forget(): void {
    this.#kept = undefined;
  }

  /** The CAs of a pool; makes or renews them when needed. If that is impossible, the returned condition says why. */
  async authoritiesOf(pool: RecorderPool): Promise<readonly KeptAuthority[] | PlannedCondition> {
    try {
      return await this.#turns.take(() => this.#authoritiesOf(pool));
    } catch (err) {
      if (!(err instanceof ApiError) || isConflict(err)) throw err;
      const message = `the Secret ${AUTHORITIES_SECRET} with the keys of the CA cannot be read or written: ${err.message}`;
      return { type: TYPE, status: 'False', reason: 'AuthorityUnavailable', message };
    }
  }

  async #authoritiesOf({ metadata: { namespace, name } }: RecorderPool): Promise<readonly KeptAuthority[]> {
    const { api, ownNamespace, clock } = this.#options;
    const key = authoritiesName(namespace ?? '', name);
    const nowMs = clock.wallMs();
    const known = this.#kept?.get(key);
    if (known && !needsNext(known, nowMs)) return known;
    const secret = await this.#read();
    const kept = authoritiesIn(secret?.['data']);
    const next = await withNext(kept.get(key) ?? [], `kube-nvr ${namespace}/${name}`, nowMs);
    if (next) {
      kept.set(key, next);
      const object: KubeObject = {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: {
          ...secret?.metadata,
          name: AUTHORITIES_SECRET,
          namespace: ownNamespace,
          labels: { ...secret?.metadata.labels, ...labels('operator') },
        },
        type: 'kube-nvr.dev/authorities',
        data: authoritiesData(kept),
      };
      // Compare-and-swap: losing a CA would make all its certificates worthless.
      await (secret ? api.replace(SECRET, object) : api.create(SECRET, object));
    }
    this.#kept = kept;
    return kept.get(key) ?? [];
  }

  async #read(): Promise<KubeObject | undefined> {
    const { api, ownNamespace } = this.#options;
    try {
      return await api.get(SECRET, { namespace: ownNamespace, name: AUTHORITIES_SECRET });
    } catch (err) {
      if (isNotFound(err)) return undefined;
      throw err;
    }
  }

  /** Issues a certificate to each recorder that requests one, and writes the address for its peers. Throws ApiError. */
  async sign(pool: RecorderPool, authorities: readonly KeptAuthority[]): Promise<PlannedCondition> {
    const { caches, clock } = this.#options;
    const nowMs = clock.wallMs();
    const signer = signerOf(authorities, nowMs);
    const pods = podsByNode(caches.podsOf(pool));
    const refused: string[] = [];
    for (const node of caches.nodesOf(pool)) {
      if (!signer) continue;
      try {
        await this.#signNode(pool, node, pods.get(node.metadata.name), signer, bundleOf(authorities, nowMs));
      } catch (err) {
        if (!(err instanceof RequestError)) throw err;
        refused.push(`${node.metadata.name} (${err.message})`);
      }
    }
    return refused.length === 0
      ? { type: TYPE, status: 'True', reason: 'Issued', message: '' }
      : { type: TYPE, status: 'False', reason: 'RequestRefused', message: `requests of ${refused.join(', ')}` };
  }

  async #signNode(
    pool: RecorderPool,
    { metadata, spec, status }: RecorderNode,
    pod: RecorderPod | undefined,
    signer: KeptAuthority,
    authorities: string,
  ): Promise<void> {
    const { api, caches, clock, log } = this.#options;
    const { namespace, name } = metadata;
    const request = status?.certificateRequest;
    const patch = (fields: object): Promise<unknown> =>
      api.mergePatch(RECORDER_NODE, { namespace, name }, { spec: fields });
    if (request === undefined) {
      // A recorder of an older version does not listen for peers.
      if (spec.peerAddress !== undefined) await patch({ peerAddress: null, certificate: null });
      return;
    }
    const ip = pod?.status?.podIP;
    const peerAddress = ip === undefined ? spec.peerAddress : `https://${hostInUrl(ip)}:${PEERS_PORT}`;
    const names = namesOf(pool, name, pod, caches.nodes.get(spec.nodeName));
    const from = madeFrom(request, names, signer, authorities);
    const nowMs = clock.wallMs();
    const isGood = spec.certificate?.madeFrom === from && !isLeafDue(endOf(spec.certificate.certificate), nowMs);
    if (isGood && spec.peerAddress === peerAddress) return;
    const { signRequest } = await import('../../base/x509.ts');
    const certificate = isGood
      ? spec.certificate
      : {
          certificate: await signRequest(request, signer, { commonName: name, names, ...leafTimes(signer, nowMs) }),
          authorities,
          madeFrom: from,
        };
    await patch({ certificate, ...(peerAddress !== undefined && { peerAddress }) });
    if (!isGood) log.info({ node: name, pool: pool.metadata.name }, 'a certificate for a recorder was signed');
  }
}

/** All names and addresses of a recorder, and its identity towards its peers. */
function namesOf(
  pool: RecorderPool,
  node: string,
  pod: RecorderPod | undefined,
  machine: ClusterNode | undefined,
): readonly string[] {
  const { metadata, spec } = pool;
  const { advertise, tls } = spec;
  const template = advertise.template?.replaceAll('{node}', node);
  const addresses = (machine?.status?.addresses ?? []).map(({ address }) => address);
  return [
    ...new Set([
      node,
      nodeIdentity(metadata.namespace ?? '', metadata.name, node),
      ...serviceNamesOf(metadata),
      ...(tls?.names ?? []),
      ...(template !== undefined && URL.canParse(template) ? [hostOfUrl(new URL(template))] : []),
      ...[pod?.status?.podIP, pod?.status?.hostIP].filter((ip) => ip !== undefined),
      ...addresses,
    ]),
  ];
}

const endOf = (certificate: string): number => new X509Certificate(certificate).validToDate.getTime();

/** The ConfigMap for clients with the CAs of the pool's recorders. */
export const trustOf = ({ metadata }: RecorderPool, bundle: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name: `${recorderName(metadata.name)}-ca`,
    namespace: metadata.namespace,
    labels: poolLabels(metadata.name),
  },
  data: { 'ca.crt': bundle },
});
