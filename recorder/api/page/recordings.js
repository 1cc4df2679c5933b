// The recordings of a camera from all nodes that hold some, and a dialogue that plays them.

import { recordingUrl } from './api.js';
import { formatSize, formatTime } from './format.js';

const NEWEST = 5;
const DAY_SECONDS = 86_400;

const byId = (id) => document.getElementById(id);

/**
 * The newest recordings of a camera, newest first, each with its playback address, and the nodes that did not answer.
 *
 * @param {object} camera as the page knows it
 * @param {{ nodesOf(camera: object): string[], getFrom(nodeId: string, path: string): Promise<object>,
 *   playbackOf(nodeId: string, camera: object): string | undefined }} nodes
 */
export async function newestRecordings(camera, nodes) {
  const to = Math.ceil(Date.now() / 1000);
  // local=1: the footage of the node itself, whichever node records the camera now.
  const path = `/api/archive/${encodeURIComponent(camera.id)}/segments?from=${to - DAY_SECONDS}&to=${to}&local=1`;
  const nodeIds = nodes.nodesOf(camera);
  const answers = await Promise.allSettled(nodeIds.map((nodeId) => nodes.getFrom(nodeId, path)));
  const found = new Map();
  for (const [i, { value }] of answers.entries()) {
    for (const segment of value?.archive ?? []) {
      const nodeId = segment.node_id ?? nodeIds[i];
      found.set(`${nodeId}/${segment.filename}`, { ...segment, nodeId, playback: nodes.playbackOf(nodeId, camera) });
    }
  }
  return {
    newest: [...found.values()].sort((a, b) => (a.timestamp < b.timestamp ? 1 : -1)).slice(0, NEWEST),
    missing: nodeIds.filter((_, i) => answers[i].status === 'rejected'),
  };
}

/** `label`: the node, where there are several. */
export function recordingItem(segment, label, play) {
  const item = document.createElement('li');
  const button = document.createElement('button');
  button.type = 'button';
  button.dataset.filename = segment.filename;
  button.append(span('time', formatTime(segment.timestamp)));
  if (segment.is_open) button.append(span('now', 'being written'));
  if (label) button.append(span('where', label));
  button.append(span('size', formatSize(segment.size)));
  button.addEventListener('click', play);
  item.append(button);
  return item;
}

function span(className, text) {
  const element = document.createElement('span');
  element.className = className;
  element.textContent = text;
  return element;
}

export function playRecording(name, { playback, filename, timestamp, nodeId }, token) {
  const video = byId('playback-video');
  byId('playback-title').textContent = `${name}, ${formatTime(timestamp)}`;
  byId('playback-problem').hidden = true;
  byId('playback').showModal();
  if (!playback) {
    showProblem(`The playback address of ${nodeId} is not known.`);
    return;
  }
  byId('playback-download').href = recordingUrl(playback, filename, token, { download: '1' });
  // The video comes from another origin: without this attribute, a page could not copy a still of it.
  video.crossOrigin = 'anonymous';
  video.src = recordingUrl(playback, filename, token);
  video.play().catch(() => {});
}

function showProblem(text) {
  byId('playback-problem').textContent = text;
  byId('playback-problem').hidden = false;
}

byId('playback-video').addEventListener('error', () => {
  const { error } = byId('playback-video');
  if (!error || !byId('playback').open) return;
  const isUnplayable = error.code === error.MEDIA_ERR_DECODE || error.message.includes('DEMUXER');
  showProblem(
    isUnplayable
      ? 'This browser cannot play this recording; it can still be downloaded.'
      : 'This recording cannot be loaded now: it may be gone, or its node cannot be reached.',
  );
});
byId('playback').addEventListener('close', () => {
  byId('playback-video').pause();
  byId('playback-video').removeAttribute('src');
  byId('playback-video').load();
});
