// The cameras of this recorder, or of all nodes of its cluster, kept up to date while the page is seen.

import { computed, effect, signal } from '@preact/signals';
import { Directory } from '../cluster.js';
import { api } from './api.ts';
import type { Camera, Warning } from './camera.ts';
import { clusterCameras } from './cluster-cameras.ts';
import { conditionOf } from './condition.ts';
import { isStale } from './contact.ts';
import type { EventType } from '../../recorder/contract/event.ts';
import { onEvent } from './events.ts';
import { session } from './session.ts';

interface ClusterNode {
  readonly node_id: string;
  readonly url: string | null;
  readonly playback: string | null;
  readonly online: boolean;
  readonly last_seen_seconds: number | null;
}

/** Undefined until the recorder has answered. */
export const cameras = signal<readonly Camera[] | undefined>(undefined);
export const warnings = signal<readonly Warning[]>([]);
/** Nodes of the cluster; empty for a single recorder. */
export const nodes = signal<readonly ClusterNode[]>([]);
/** By node id: why this browser gets no answer from the node. */
export const unreachedNodes = signal<ReadonlyMap<string, string>>(new Map());
/** Where cameras and footage are in a cluster; undefined for a single recorder. */
export const directory = signal<Directory | undefined>(undefined);

/** Cameras with a problem that a person has to know about. */
export const alarms = computed(() => (cameras.value ?? []).filter((camera) => conditionOf(camera).level === 'alarm'));

/** Events report changes. The interval is for bit rates, and for events that were missed. */
const EVERY_MS = 15_000;
/** In a cluster, events come only from the node that serves the page, so the list of all cameras is requested this often. */
const CLUSTER_EVERY_MS = 3_000;
/** While a camera connects for the first time. */
const NEW_MS = 2_000;
/** While a camera moves to another node, and after a request that failed. */
const SOON_MS = 1_000;
/** The first tiles of a cluster wait this long for the answers of their nodes. */
const DETAILS_WAIT_MS = 1_000;
const DETAILS_EVERY_MS = 15_000;

interface Answer {
  readonly cameras: readonly Camera[];
  readonly elsewhere?: number;
  readonly warnings: readonly WarningItem[];
}

interface WarningItem {
  readonly code: string;
  readonly detail: string;
  readonly todo?: string;
  readonly camera_id?: string;
}

const toWarning = ({ code, detail, todo, camera_id }: WarningItem, nodeId?: string): Warning => ({
  code,
  message: detail,
  todo,
  cameraId: camera_id,
  nodeId,
});

let detailsAtMs = -Infinity;
let placesBefore = '';

async function read(): Promise<readonly Camera[]> {
  const found = directory.peek();
  if (found) return readCluster(found);
  const answer = await api<Answer>('/api/cameras');
  if (answer.elsewhere === undefined) {
    warnings.value = answer.warnings.map((item) => toWarning(item));
    return answer.cameras.map((camera) => ({ ...camera, base: window.location.origin }));
  }
  // A session's cookie is valid for this address only, so with a session, other nodes are asked through this one.
  directory.value = new Directory({ relay: session.peek()?.hasEnd ?? true });
  return readCluster(directory.peek() as Directory);
}

async function readCluster(found: Directory): Promise<readonly Camera[]> {
  await found.refresh();
  const places = JSON.stringify(found.cameras.map(({ id, node_id, state }) => [id, node_id, state]));
  const isOld = performance.now() - detailsAtMs > DETAILS_EVERY_MS;
  if (isOld || places !== placesBefore) {
    placesBefore = places;
    detailsAtMs = performance.now();
    await Promise.race([found.refreshDetails(), new Promise((resolve) => setTimeout(resolve, DETAILS_WAIT_MS))]);
  }
  nodes.value = found.nodes;
  warnings.value = nodes.value.flatMap(({ node_id }) =>
    (found.detailsOf(node_id).warnings as readonly WarningItem[]).map((item) => toWarning(item, node_id)),
  );
  unreachedNodes.value = new Map(
    nodes.value.flatMap(({ node_id, online }) => {
      const { problem } = found.detailsOf(node_id);
      return online && problem !== undefined ? [[node_id, problem] as const] : [];
    }),
  );
  return clusterCameras(found);
}

let running: Promise<void> | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
let isWantedAgain = false;

/** Asks for the cameras now; calls meanwhile share one more request. */
export async function refreshCameras(): Promise<void> {
  if (running) {
    isWantedAgain = true;
    return running;
  }
  clearTimeout(timer);
  running = read()
    .then((found) => {
      cameras.value = found;
    })
    // The shell's banner shows that the recorder is away; the session shows that no user is signed in.
    .catch(() => void (isWantedAgain = true))
    .finally(() => {
      running = undefined;
      timer = setTimeout(() => void refreshIfSeen(), isWantedAgain ? SOON_MS : pauseMs());
      isWantedAgain = false;
    });
  return running;
}

function pauseMs(): number {
  if (!directory.peek()) return cameras.peek()?.some(({ state }) => state === 'connecting') ? NEW_MS : EVERY_MS;
  const isMoving = cameras.peek()?.some(({ state }) => state !== 'recording' && state !== 'stopped');
  return isMoving ? SOON_MS : CLUSTER_EVERY_MS;
}

const refreshIfSeen = (): Promise<void> | undefined =>
  document.hidden || !session.peek() ? undefined : refreshCameras();

/** Events that change the list of cameras. */
const CHANGES: ReadonlySet<EventType> = new Set([
  'recorder.started',
  'camera.state',
  'camera.silent',
  'camera.heard',
  'camera.taken',
  'camera.given_up',
  'warning.raised',
  'warning.cleared',
  'events.missed',
]);
/** Several events of one moment share a request. */
const TOGETHER_MS = 300;

export function watchCameras(): void {
  let soon: ReturnType<typeof setTimeout> | undefined;
  onEvent(({ type }) => {
    if (!CHANGES.has(type)) return;
    clearTimeout(soon);
    soon = setTimeout(() => void refreshIfSeen(), TOGETHER_MS);
  });
  document.addEventListener('visibilitychange', () => void refreshIfSeen());
  effect(() => {
    if (!session.value) {
      clearTimeout(timer);
      cameras.value = undefined;
      directory.value = undefined;
    } else if (!isStale.value) void refreshIfSeen();
  });
}
