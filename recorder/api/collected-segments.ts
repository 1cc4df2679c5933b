// The segments of a camera in an interval, from all nodes that have some: this node's and what the others list.

import type { Interval } from '../../base/interval.ts';
import { holdersIn, silentAt, type Elsewhere } from '../footage/holders.ts';
import type { Holder, SegmentListing } from '../footage/holder.ts';
import type { Asker } from '../peers/peer-requests.ts';

/**
 * `holders`: all that have footage of the camera, of whatever time: the days of all footage are listed. `query`: the page that was
 * asked for, in the form of the route. By start, with all segments of that page; `next`: whether a holder has more after them.
 */
export async function collectSegments(
  holders: readonly Holder[],
  own: SegmentListing,
  cameraId: string,
  query: string,
  past: Interval,
  by: Asker,
): Promise<SegmentListing & { readonly elsewhere: readonly Elsewhere[]; readonly hasMore: boolean }> {
  const answers = await Promise.all(
    holders.map(async (holder) => ({ holder, answer: await holder.segments(cameraId, query, by) })),
  );
  const segments = new Map(own.archive.map((item) => [`${item.node_id ?? ''} ${item.filename}`, item]));
  const days = new Set(own.days);
  const elsewhere: Elsewhere[] = [];
  let hasMore = false;
  for (const { holder, answer } of answers) {
    if (answer.kind !== 'answer') {
      elsewhere.push(...holdersIn([holder], past).map((one) => silentAt(one, past, answer)));
      continue;
    }
    hasMore ||= typeof answer.value.next === 'string';
    for (const day of answer.value.days) days.add(day);
    if (holder.copiesAt !== undefined) {
      addCopies(segments, answer.value.archive, holder.nodeId, holder.copiesAt);
      continue;
    }
    for (const item of answer.value.archive) {
      // With a database, a node lists the segments of others, too.
      if (item.node_id !== undefined) continue;
      segments.set(`${holder.nodeId} ${item.filename}`, { ...item, node_id: holder.nodeId });
    }
  }
  const archive = [...segments.values()].sort((a, b) => a.start_ms - b.start_ms || (a.filename < b.filename ? -1 : 1));
  return { archive, days: [...days].sort(), elsewhere, hasMore };
}

type Item = SegmentListing['archive'][number];

/** Names the target in the segments that it has copies of, and adds those that only it has. */
function addCopies(segments: Map<string, Item>, copies: readonly Item[], nodeId: string, target: string): void {
  const keys = Map.groupBy(segments.keys(), (key) => segments.get(key)?.filename);
  for (const copy of copies) {
    const same = keys.get(copy.filename) ?? [`${nodeId} ${copy.filename}`];
    for (const key of same) {
      const item = segments.get(key) ?? { ...copy, node_id: nodeId };
      // A file that was extended since is not the one that was copied.
      if (item.size === copy.size) segments.set(key, { ...item, copies: [...(item.copies ?? []), target] });
    }
  }
}
