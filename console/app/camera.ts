// A camera as the console knows it: from `GET /api/cameras` of its node, or from the cluster while that node does not answer.

import type { CameraItem as Item } from './answers.ts';

export type Reason = NonNullable<Item['reason']>;
type Codecs = Pick<Item['codecs'], 'video' | 'audio'>;
type Preview = NonNullable<Item['preview']>;

/** Nodes of older versions leave out what is optional. */
export interface Camera
  extends
    Pick<Item, 'id' | 'name' | 'reason' | 'bitrate' | 'silent' | 'silent_since' | 'ptz' | 'transport'>,
    Partial<Pick<Item, 'group' | 'state_since' | 'frame_rate' | 'usual_frame_rate' | 'max_age_seconds' | 'viewers'>> {
  /** `unassigned` and `unknown` (its node is away) only in a cluster. */
  readonly state: Item['state'] | 'unassigned' | 'unknown';
  readonly node: { readonly name: string | null; readonly playback: string | null };
  readonly codecs: Omit<Item['codecs'], 'mime'>;
  readonly preview?:
    | (Pick<Preview, 'state' | 'reason'> &
        Partial<Pick<Preview, 'bitrate'>> & { readonly codecs: Codecs; readonly recording?: object | null })
    | null;
  readonly frames?: Omit<Item['frames'], 'audio'>;
  readonly recording: Omit<Item['recording'], 'filename'>;
  /** Address of its node; undefined while no node has it. */
  readonly base?: string | undefined;
  /** In a cluster: the nodes that hold footage of it. */
  readonly archives?: readonly { readonly node_id: string }[];
  /** Why its node did not answer this browser. */
  readonly problem?: string | undefined;
}

/** The nodes that record a camera or have footage of it: in a cluster. */
export const nodesOf = (camera: Pick<Camera, 'archives' | 'node'> | undefined): readonly string[] => [
  ...new Set([
    ...(camera?.archives ?? []).map(({ node_id }) => node_id),
    ...(camera?.node.name ? [camera.node.name] : []),
  ]),
];

/** A problem that needs attention although the recorder works. */
export interface Warning extends Reason {
  /** Undefined when it is about the node. */
  readonly cameraId?: string | undefined;
  /** In a cluster. */
  readonly nodeId?: string | undefined;
}
