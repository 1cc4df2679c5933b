// The cameras of all nodes of a cluster.

import type { Directory } from '../cluster.js';
import type { Camera } from './camera.ts';

/** As of `GET /cluster/cameras`. */
interface Listed {
  readonly id: string;
  readonly name: string;
  readonly group?: string | null;
  readonly node_id: string | null;
  readonly state: string;
  readonly reason: Camera['reason'];
  readonly last_written: string | null;
  readonly archives: readonly { readonly node_id: string }[];
}

/** The state of each camera comes from its node, or from the cluster if the node does not answer. */
export const clusterCameras = (directory: Directory): readonly Camera[] =>
  (directory.cameras as readonly Listed[]).map((listed) => {
    const { cameras = [], problem } = listed.node_id ? directory.detailsOf(listed.node_id) : {};
    const isAway = listed.state === 'unknown' || listed.state === 'unassigned';
    const detail = isAway ? undefined : (cameras as readonly Camera[]).find(({ id }) => id === listed.id);
    const base: string | undefined = listed.node_id ? directory.baseOf(listed.node_id) : undefined;
    return {
      ...briefCamera(listed),
      ...detail,
      name: listed.name,
      group: listed.group ?? null,
      archives: listed.archives,
      base,
      ...(detail ? {} : { problem }),
    };
  });

/** A camera whose node does not answer, as the cluster knows it. */
const briefCamera = ({ id, name, node_id, state, reason, last_written }: Listed): Camera => ({
  id,
  name,
  state: STATES[state] ?? (state as Camera['state']),
  silent: state === 'silent',
  silent_since: null,
  reason,
  node: { name: node_id, playback: null },
  transport: null,
  codecs: { video: null, video_remark: null, audio: null, audio_dropped: null },
  bitrate: 0,
  recording: {
    state: state === 'recording' ? 'writing' : state === 'failed' ? 'failed' : 'idle',
    reason: state === 'failed' ? reason : null,
    last_written,
  },
  ptz: false,
});

const STATES: Readonly<Record<string, Camera['state']>> = { silent: 'recording', failed: 'retrying' };
