// The list of nodes of a cluster on the page, and the cameras of all nodes for its tiles.

/**
 * Cameras as in `GET /api/cameras`, with `base`, the address of the node, and `archives`. The data come from the node of
 * the camera; if it does not answer, from the cluster.
 */
export const clusterCameras = (directory) =>
  directory.cameras.map((listed) => {
    const { cameras = [], problem } = listed.node_id ? directory.detailsOf(listed.node_id) : {};
    const isAway = listed.state === 'unknown' || listed.state === 'unassigned';
    const detail = isAway ? undefined : cameras.find(({ id }) => id === listed.id);
    const { archives } = listed;
    const base = listed.node_id ? directory.baseOf(listed.node_id) : undefined;
    return { ...briefCamera(listed), ...detail, name: listed.name, archives, base, ...(!detail && { problem }) };
  });

/** A camera whose node does not answer, as the cluster knows it. */
const briefCamera = ({ id, node_id, state, reason, last_written }) => ({
  id,
  state: STATES[state] ?? state,
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

const STATES = { silent: 'recording', failed: 'retrying' };

/** A row of nodes: how many cameras each has, which are offline, and which this browser cannot reach. */
export class ClusterNodes {
  #list;
  #session;
  #shown = '';

  /** @param {HTMLElement} list @param {{ directory?: object, token: string }} session */
  constructor(list, session) {
    this.#list = list;
    this.#session = session;
  }

  show() {
    const { directory } = this.#session;
    const facts = directory.nodes.map((node) => {
      const cameras = directory.cameras.filter(({ node_id }) => node_id === node.node_id).length;
      const isUnreached = node.online && directory.detailsOf(node.node_id).problem !== undefined;
      return { id: node.node_id, url: node.url, isOnline: node.online, isUnreached, cameras };
    });
    const shown = JSON.stringify(facts);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#list.hidden = facts.length === 0;
    this.#list.replaceChildren(...facts.map((node) => this.#item(node)));
  }

  #item({ id, url, isOnline, isUnreached, cameras }) {
    const item = document.createElement('li');
    item.className = isOnline ? (isUnreached ? 'node-unreached' : 'node-online') : 'node-away';
    const name = document.createElement('b');
    name.textContent = id;
    const count = `${cameras} ${cameras === 1 ? 'camera' : 'cameras'}`;
    item.append(name, ` ${isOnline ? (isUnreached ? `${count}, not reachable from this browser` : count) : 'offline'}`);
    if (isUnreached && url) item.append(' ', this.#link(id, url));
    return item;
  }

  /** A link to the page of the node: it can reach the node even if this page cannot. */
  #link(id, url) {
    const link = document.createElement('a');
    const { token } = this.#session;
    link.href = token ? `${url}/#${new URLSearchParams({ access_token: token })}` : `${url}/`;
    link.textContent = 'its page';
    link.setAttribute('aria-label', `The page of ${id}`);
    return link;
  }
}
