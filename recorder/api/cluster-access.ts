// What the API needs from a cluster, as one small interface. Only types are imported from recorder/cluster, so that a
// recorder outside of a cluster does not load that code.

import type { ClusterMetrics, Leaving } from '../cluster/access.ts';
import type { ListedCameras } from '../cluster/camera-list.ts';
import type { Holder, Owner, Peer } from '../cluster/peers.ts';
import type { RequestOutcome } from '../cluster/requests.ts';
import type { FootageHolder } from '../contract/other-node.ts';

export interface ClusterCameras extends ListedCameras {
  /** False while the API server cannot be reached. */
  readonly isCurrent: boolean;
}

export type ClusterAnswer = RequestOutcome;

/** A request that only the operator carries out, with the fields that a RecorderNode has for it. */
export type ClusterQuestion =
  | { readonly kind: 'AddLearner'; readonly nodeID: string }
  | { readonly kind: 'RemoveNode'; readonly nodeID: string; readonly force: boolean }
  | { readonly kind: 'ChangeMembership'; readonly voters: readonly string[] };

export interface ClusterAccess {
  readonly nodeId: string;
  /**
   * To be awaited before a question about other nodes is answered: in a large pool they are not watched. Takes a second at most.
   * Never rejects.
   */
  lookAtNodes(): Promise<void>;
  /** Undefined when no other node records the camera. Sends no request: a caller may make ids up. */
  ownerOf(cameraId: string): Owner | undefined;
  holdersOf(cameraId: string): readonly Holder[];
  /** The same with whether each is online, within about a second. Never rejects. */
  footageHolders(cameraId: string): Promise<readonly FootageHolder[]>;
  /** Cameras that other nodes record, by id. */
  others(): ReadonlyMap<string, Owner>;
  /** All cameras of the cluster, within about a second: the current state or the last known one. Never rejects. */
  cameras(): Promise<ClusterCameras>;
  origins(): readonly string[];
  playbackOrigins(): readonly string[];
  /** The base URLs of the listeners of all nodes. */
  places(): readonly { readonly nodeId: string; readonly url: string }[];
  /** The current state, or the last known one. Never rejects. */
  metrics(): Promise<ClusterMetrics>;
  /** Undefined without a majority. */
  leader(): Peer | undefined;
  /** Never rejects: without an answer, the code is 503. */
  ask(question: ClusterQuestion): Promise<RequestOutcome>;
  leave(leaving: Leaving): Promise<RequestOutcome>;
}
