// The page: a tile for each camera with its live picture, its state and its newest recordings. In a cluster, the page of
// every node shows the cameras of all nodes.

import { ApiError, getJson, loadToken, saveToken } from './api.js';
import { Directory } from './cluster.js';
import { clusterCameras, ClusterNodes } from './nodes.js';
import { Tile } from './tile.js';

const CAMERAS_EVERY_MS = 2_000;
/** While a camera changes its state. */
const SOON_MS = 1_000;
/** The page reloads for new nodes at most this often. */
const RELOAD_MS = 30_000;
/** How long the first tiles wait for the answers of their nodes. */
const DETAILS_WAIT_MS = 1_000;

const byId = (id) => document.getElementById(id);
/** Camera id to its tile. */
const tiles = new Map();

/** For the tiles: the token, and the addresses of cameras and their recordings. */
const session = {
  token: loadToken(),
  /** The directory of the cluster; undefined for a single node. */
  directory: undefined,
  describe: (error) => (error instanceof ApiError ? error.message : 'The recorder cannot be reached.'),
  missingText: (nodeIds) =>
    session.directory ? `The recordings of ${nodeIds.join(', ')} cannot be listed now.` : 'They cannot be listed now.',
  nodesOf(camera) {
    if (!session.directory) return [camera.node.name];
    const holders = (camera.archives ?? []).map(({ node_id }) => node_id);
    return [...new Set([...holders, ...(camera.node.name ? [camera.node.name] : [])])];
  },
  getFrom: (nodeId, path) => session.directory?.getFrom(nodeId, path) ?? getJson(path, session.token),
  playbackOf(nodeId, camera) {
    const { directory } = session;
    // The node that serves the page knows best which playback address this browser can reach.
    if (!directory || (nodeId === camera.node.name && camera.base === window.location.origin))
      return camera.node.playback;
    return directory.nodes.find(({ node_id }) => node_id === nodeId)?.playback ?? undefined;
  },
};
const nodes = new ClusterNodes(byId('nodes'), session);

// The policy of the page names the nodes that were known when it was loaded. For a node that joined or moved later, the
// page is loaded again.
document.addEventListener('securitypolicyviolation', ({ blockedURI }) => {
  const isOfNode = ({ url, playback }) => [url, playback].some((base) => base && isSameHost(base, blockedURI));
  const loadedMs = performance.now();
  if (loadedMs > RELOAD_MS && session.directory?.nodes.some(isOfNode)) window.location.reload();
});

const isSameHost = (a, b) => URL.canParse(a) && URL.canParse(b) && new URL(a).host === new URL(b).host;

function showCameras(cameras) {
  for (const [id, tile] of tiles) {
    if (cameras.some((camera) => camera.id === id)) continue;
    tile.remove();
    tiles.delete(id);
  }
  for (const camera of cameras) {
    const tile = tiles.get(camera.id);
    if (tile) tile.update(camera);
    else {
      const added = new Tile(camera, session);
      tiles.set(camera.id, added);
      byId('cameras').append(added.element);
    }
  }
  const recording = cameras.filter((camera) => camera.recording.state === 'writing' && !camera.silent).length;
  byId('empty').hidden = cameras.length > 0;
  const summary = cameras.length > 0 ? `${recording} of ${cameras.length} cameras recording` : '';
  if (byId('summary').textContent !== summary) byId('summary').textContent = summary;
  const title = session.directory ? 'Cluster' : cameras[0]?.node.name;
  if (title) {
    byId('node').textContent = title;
    document.title = `${title} · Recorder`;
  }
}

/** Asks for a token until the recorder accepts it. */
function logIn(problem) {
  const dialog = byId('login');
  byId('login-problem').textContent = problem;
  byId('login-problem').hidden = problem === '';
  byId('login-token').value = '';
  if (!dialog.open) dialog.showModal();
  return new Promise((resolve) => {
    byId('login-form').addEventListener(
      'submit',
      () => {
        session.token = byId('login-token').value.trim();
        saveToken(session.token);
        resolve();
      },
      { once: true },
    );
  });
}

function startOver() {
  for (const tile of tiles.values()) tile.remove();
  tiles.clear();
}

/** Cameras of this node, or of all nodes of the cluster. */
async function readCameras() {
  if (!session.directory) {
    const { cameras, elsewhere } = await getJson('/api/cameras', session.token);
    if (elsewhere === undefined) return cameras.map((camera) => ({ ...camera, base: window.location.origin }));
    session.directory = new Directory({ token: () => session.token });
  }
  const { directory } = session;
  await directory.refresh();
  await Promise.race([directory.refreshDetails(), new Promise((resolve) => setTimeout(resolve, DETAILS_WAIT_MS))]);
  nodes.show();
  return clusterCameras(directory);
}

async function refresh() {
  let isMoving = false;
  try {
    const cameras = await readCameras();
    isMoving =
      session.directory !== undefined && cameras.some(({ state }) => state !== 'recording' && state !== 'stopped');
    byId('problem').hidden = true;
    byId('change-token').hidden = session.token === '';
    showCameras(cameras);
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
      startOver();
      await logIn(session.token ? 'The recorder does not accept this token.' : '');
      return refresh();
    }
    byId('problem').textContent = session.describe(error);
    byId('problem').hidden = false;
  }
  setTimeout(refresh, isMoving ? SOON_MS : CAMERAS_EVERY_MS);
  return undefined;
}

byId('change-token').addEventListener('click', () => {
  session.token = '';
  saveToken('');
  startOver();
});
// Without a token, the page has nothing to show: the dialogue cannot be cancelled.
byId('login').addEventListener('cancel', (event) => event.preventDefault());

void refresh();
