// A recording that is not on this node's disk: its name and the other nodes in, the address at the one that should have it
// out. Several may hold footage of a camera, and what they tell is coarse: each sends on to one that was not asked before.

import type { SegmentName } from '../archive/names.ts';
import type { PlaybackCluster, RecordingHolder } from './deps.ts';

/** In the query of a redirected request, once for each node that does not have it. */
const ASKED = 'asked';

/** `url`: of the request, with its query, which is kept. Undefined when nobody else is left to ask. */
export function elsewhere(
  url: string,
  { cameraId, startMs }: Pick<SegmentName, 'cameraId' | 'startMs'>,
  cluster: PlaybackCluster,
): string | undefined {
  const request = new URL(url, 'http://node');
  const asked = new Set(request.searchParams.getAll(ASKED));
  const holders = cluster
    .holdersOf(cameraId)
    .filter(({ nodeID, playbackUrl }) => playbackUrl !== undefined && !asked.has(nodeID));
  const holder = holders.find((one) => covers(one, startMs)) ?? holders[0];
  if (!holder) return undefined;
  request.searchParams.append(ASKED, cluster.nodeID);
  return `${holder.playbackUrl}${request.pathname}${request.search}`;
}

const covers = ({ oldestMs = Infinity, newestMs = -Infinity }: RecordingHolder, startMs: number): boolean =>
  // Whole seconds.
  oldestMs <= startMs + 1_000 && startMs <= newestMs + 1_000;
