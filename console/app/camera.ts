// A camera as the console knows it: from `GET /api/cameras` of its node, or from the cluster while that node does not answer.

export interface Reason {
  readonly code: string;
  readonly message: string;
  /** What to do, where the recorder knows that. */
  readonly todo?: string | undefined;
}

export interface Camera {
  readonly id: string;
  readonly name: string;
  /** Absent and null: cameras whose ids begin alike are a group. */
  readonly group?: string | null;
  /** `unassigned` and `unknown` (its node is away) only in a cluster. */
  readonly state: 'connecting' | 'recording' | 'retrying' | 'stopped' | 'unassigned' | 'unknown';
  readonly state_since?: string;
  readonly reason: Reason | null;
  readonly node: { readonly name: string | null; readonly playback: string | null };
  readonly transport: string | null;
  readonly codecs: {
    readonly video: {
      readonly codec: string;
      readonly codec_string: string;
      readonly width: number;
      readonly height: number;
    } | null;
    readonly video_remark: Reason | null;
    readonly audio: { readonly codec: string; readonly sample_rate: number; readonly channels: number } | null;
    readonly audio_dropped: Reason | null;
  };
  /** Its second, smaller stream; absent and null: it has none. */
  readonly preview?: {
    readonly state: 'idle' | 'connecting' | 'live' | 'failed';
    readonly reason: Reason | null;
    /** null until it was connected for the first time. */
    readonly codecs: Pick<Camera['codecs'], 'video' | 'audio'>;
    readonly bitrate?: number;
    /** null: it is not recorded. */
    readonly recording?: object | null;
  } | null;
  readonly bitrate: number;
  /** Pictures per second now, and usually; null in the first minute. Undefined from nodes of earlier versions. */
  readonly frame_rate?: number;
  readonly usual_frame_rate?: number | null;
  /** How long its footage should be kept; null: as long as there is space. */
  readonly max_age_seconds?: number | null;
  readonly frames?: { readonly video: number; readonly discarded: number; readonly lost_packets: number };
  readonly recording: {
    readonly state: 'idle' | 'writing' | 'failed';
    readonly reason: Reason | null;
    readonly last_written: string | null;
  };
  readonly silent: boolean;
  readonly silent_since: string | null;
  readonly viewers?: number;
  readonly ptz: boolean;
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
