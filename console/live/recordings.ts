// The newest recordings of a camera, from all nodes that hold some.

import { api } from '../app/api.ts';
import { nodesOf, type Camera } from '../app/camera.ts';
import { directory } from '../app/cameras.ts';
import { now } from '../app/clock.ts';

const NEWEST = 5;
const DAY_SECONDS = 86_400;

export interface Recording {
  readonly filename: string;
  readonly startMs: number;
  readonly sizeBytes: number;
  readonly isOpen: boolean;
  readonly nodeId: string;
}

interface Segments {
  readonly archive: readonly {
    readonly filename: string;
    readonly timestamp: string;
    readonly size: number;
    readonly is_open: boolean;
    readonly node_id?: string;
  }[];
}

/** Newest first, and the nodes that did not answer. */
export async function newestRecordings(
  camera: Camera,
): Promise<{ readonly newest: readonly Recording[]; readonly missing: readonly string[] }> {
  const to = Math.ceil(now() / 1000);
  // local=1: the node's own footage, also if another node records the camera now.
  const path = `/api/archive/${encodeURIComponent(camera.id)}/segments?from=${to - DAY_SECONDS}&to=${to}&local=1`;
  const places = directory.peek();
  const nodeIds = places ? nodesOf(camera) : [camera.node.name ?? ''];
  const answers = await Promise.allSettled(
    nodeIds.map((nodeId) => (places ? (places.getFrom(nodeId, path) as Promise<Segments>) : api<Segments>(path))),
  );
  const found = new Map<string, Recording>();
  for (const [i, answer] of answers.entries()) {
    if (answer.status === 'rejected') continue;
    for (const { filename, timestamp, size, is_open, node_id } of answer.value.archive) {
      const nodeId = node_id ?? nodeIds[i] ?? '';
      const startMs = Date.parse(timestamp);
      found.set(`${nodeId}/${filename}`, { filename, startMs, sizeBytes: size, isOpen: is_open, nodeId });
    }
  }
  return {
    newest: [...found.values()].sort((a, b) => b.startMs - a.startMs).slice(0, NEWEST),
    missing: nodeIds.filter((_, i) => answers[i]?.status === 'rejected'),
  };
}
