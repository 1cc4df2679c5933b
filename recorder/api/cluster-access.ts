// What the HTTP side needs from a cluster, as one small interface.

/** Another node that records a camera. */
export interface CameraOwner {
  readonly nodeID: string;
  /** Base of its API; undefined until it has said so. */
  readonly url: string | undefined;
  /** Of the assignment: of two claims the one with the higher epoch is true. */
  readonly epoch: number;
}

/** Another node that holds footage of a camera; milliseconds since 1970, coarse. */
export interface FootageHolder {
  readonly nodeID: string;
  readonly url: string | undefined;
  /** Where it plays its recordings. */
  readonly playbackUrl: string | undefined;
  readonly oldestMs: number | undefined;
  readonly newestMs: number | undefined;
}

export interface ClusterNode {
  readonly nodeID: string;
  readonly nodeName: string;
  readonly address: string | undefined;
  readonly role: 'voter' | 'learner' | 'removed';
  readonly isOnline: boolean;
  /** Since its last sign of life. */
  readonly lastSeenMs: number | undefined;
  readonly cameras: number;
  readonly version: string | undefined;
}

export interface ClusterMetrics {
  readonly leader: string | undefined;
  readonly hasMajority: boolean;
  readonly voters: readonly string[];
  readonly nodes: readonly ClusterNode[];
}

/** A camera of the cluster, whichever node records it. */
export interface ClusterCamera {
  readonly id: string;
  readonly name: string;
  /** Who records it, or did last while it is stopped; undefined when nobody does. */
  readonly nodeID: string | undefined;
  readonly epoch: number;
  readonly state: 'connecting' | 'recording' | 'silent' | 'failed' | 'stopped' | 'unassigned' | 'unknown';
  readonly reason: { readonly code: string; readonly message: string } | undefined;
  readonly lastWrittenMs: number | undefined;
  readonly archives: readonly Pick<FootageHolder, 'nodeID' | 'oldestMs' | 'newestMs'>[];
}

export interface ClusterCameras {
  /** False while the API server is away. */
  readonly isCurrent: boolean;
  readonly nodes: readonly {
    readonly nodeID: string;
    readonly url: string | undefined;
    readonly playbackUrl: string | undefined;
    readonly isOnline: boolean;
    readonly lastSeenMs: number | undefined;
  }[];
  readonly cameras: readonly ClusterCamera[];
}

/** What only the operator may change. */
export type ClusterQuestion =
  | { readonly kind: 'AddLearner'; readonly nodeID: string }
  | { readonly kind: 'RemoveNode'; readonly nodeID: string; readonly force: boolean }
  | { readonly kind: 'ChangeMembership'; readonly voters: readonly string[] };

/** An HTTP status, and what a person should know. */
export interface ClusterAnswer {
  readonly code: number;
  readonly message: string;
}

export interface ClusterAccess {
  readonly nodeID: string;
  /** Undefined when no other node records the camera. Never rejects. */
  ownerOf(cameraId: string): Promise<CameraOwner | undefined>;
  holdersOf(cameraId: string): readonly FootageHolder[];
  /** Cameras of the other nodes. */
  others(): ReadonlyMap<string, CameraOwner>;
  /** All of them, within about a second, as of now or as it was known last. Never rejects. */
  cameras(): Promise<ClusterCameras>;
  /** Of the pages that its nodes serve. */
  origins(): readonly string[];
  /** As of now, or as it was known last. Never rejects. */
  metrics(): Promise<ClusterMetrics>;
  /** Undefined without majority. */
  leader(): { readonly nodeID: string; readonly url: string | undefined } | undefined;
  /** Never rejects: without an answer 503. */
  ask(question: ClusterQuestion): Promise<ClusterAnswer>;
  leave(force: boolean): Promise<ClusterAnswer>;
}
