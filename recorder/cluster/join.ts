// Opens a recorder's membership in a cluster, and the API's access to it.

import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { PodConnection } from '../../base/kubernetes/pod-connection.ts';
import { podNamespace, type PodPlace } from '../../base/kubernetes/pod-place.ts';
import { nodeFileSystem } from '../archive/disk/file-system.ts';
import { ClusterSwitch, ClusterView, type ServersMembers } from './access.ts';
import { ApiServer, CONNECTIONS } from './api-server.ts';
import { CameraList } from './camera-list.ts';
import { Cluster, type ClusterOptions } from './cluster.ts';
import { KeptState } from './kept-state.ts';
import { Membership } from './membership.ts';
import { TokenReviews, type TokenReviewsOptions } from './token-reviews.ts';

/** A client of the server of the cluster's objects, and the namespace of this cluster there. */
export interface OpenedApi {
  readonly api: ApiServer;
  readonly namespace: string;
}

interface JoinOptions extends Omit<ClusterOptions, 'api' | 'leaseApi' | 'namespace' | 'state' | 'random'> {
  /** Called for each set of connections that must not wait for another one. At most `connections` are made. */
  readonly open: (connections: number) => Promise<OpenedApi>;
  readonly dataDir: string;
  readonly recordPath: string;
  /** On servers without Kubernetes. */
  readonly servers?: ServersMembers | undefined;
}

export interface JoinedCluster {
  readonly api: ApiServer;
  readonly namespace: string;
  readonly cluster: Cluster;
  readonly view: ClusterView;
  readonly cameraSwitch: ClusterSwitch;
}

/** Rejects if `open` does. */
export async function joinCluster(options: JoinOptions): Promise<JoinedCluster> {
  const { open, nodeId, dataDir, recordPath, clock } = options;
  const [{ api, namespace }, { api: leaseApi }] = await Promise.all([open(CONNECTIONS), open(1)]);
  const state = new KeptState({
    fs: nodeFileSystem,
    dataDir,
    nodeId,
    namespace,
    witnessDirectory: join(recordPath, '.kube-nvr'),
  });
  const cluster = new Cluster({ ...options, api, leaseApi, namespace, state });
  const membership = new Membership({ namespace, nodeId, clock, api, cluster });
  const cameras = new CameraList({ api, cluster, membership, namespace, clock });
  const view = new ClusterView({ nodeId, cluster, membership, cameras, servers: options.servers, clock });
  return { api, namespace, cluster, view, cameraSwitch: new ClusterSwitch(cluster) };
}

interface ReviewOptions extends Omit<TokenReviewsOptions, 'api' | 'namespace'> {
  readonly place: PodPlace;
  readonly clock: Clock;
}

export interface OpenTokenReviews {
  readonly reviews: TokenReviews;
  close(): Promise<void>;
}

/**
 * With separate connections, so that many presented tokens do not delay the node's signs of life. Rejects if the files of the
 * service account cannot be read.
 */
export async function openTokenReviews(options: ReviewOptions): Promise<OpenTokenReviews> {
  const { api, namespace } = await openApiServer(options.place, options.clock);
  return { reviews: new TokenReviews({ ...options, api, namespace }), close: () => api.close() };
}

/** The API server of Kubernetes, for a pod. Rejects if the files of the service account cannot be read. */
export async function openApiServer(place: PodPlace, clock: Clock, connections = CONNECTIONS): Promise<OpenedApi> {
  const [connection, namespace] = await Promise.all([
    PodConnection.open({ place, connections, clock }),
    podNamespace(place),
  ]);
  return { api: new ApiServer(connection), namespace };
}
