// What the HTTP side needs from a cluster, as one small interface. What it speaks of is stated in recorder/cluster; only
// types come from there, so that a recorder outside of a cluster does not load it.

import type { ClusterMetrics } from '../cluster/access.ts';
import type { ListedCamera, ListedCameras } from '../cluster/camera-list.ts';
import type { Holder, Owner, Peer } from '../cluster/peers.ts';
import type { Answer } from '../cluster/requests.ts';

/** A camera of the cluster, whichever node records it. */
export type ClusterCamera = ListedCamera;

export interface ClusterCameras extends ListedCameras {
  /** False while the API server is away. */
  readonly isCurrent: boolean;
}

export type ClusterAnswer = Answer;

/** What only the operator may change. */
export type ClusterQuestion =
  | { readonly kind: 'AddLearner'; readonly nodeID: string }
  | { readonly kind: 'RemoveNode'; readonly nodeID: string; readonly force: boolean }
  | { readonly kind: 'ChangeMembership'; readonly voters: readonly string[] };

export interface ClusterAccess {
  readonly nodeId: string;
  /** Undefined when no other node records the camera. Asks nobody: who asks may make ids up. */
  ownerOf(cameraId: string): Owner | undefined;
  holdersOf(cameraId: string): readonly Holder[];
  /** Cameras of the other nodes. */
  others(): ReadonlyMap<string, Owner>;
  /** All of them, within about a second, as of now or as it was known last. Never rejects. */
  cameras(): Promise<ClusterCameras>;
  /** Of the pages that its nodes serve. */
  origins(): readonly string[];
  /** Of their playback listeners. */
  playbackOrigins(): readonly string[];
  /** As of now, or as it was known last. Never rejects. */
  metrics(): Promise<ClusterMetrics>;
  /** Undefined without majority. */
  leader(): Peer | undefined;
  /** Never rejects: without an answer 503. */
  ask(question: ClusterQuestion): Promise<Answer>;
  leave(force: boolean): Promise<Answer>;
}
