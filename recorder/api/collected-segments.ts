// The segments of a camera in an interval, from all nodes that have some: this node's and what the others list.

import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { askerOf } from '../http/access.ts';
import { holdersIn, silentAt, type Elsewhere } from '../footage/holders.ts';
import type { PeerSender } from '../peers/peer-requests.ts';
import { viewerOf, wholeAnswer, type WholeAnswer } from '../peers/whole-answer.ts';
import type { ClusterAccess } from './cluster-access.ts';
import { SegmentItem } from './segment-item.ts';

interface Listed {
  readonly archive: readonly z.output<typeof SegmentItem>[];
  /** Ascending. */
  readonly days: readonly string[];
}

interface CollectDeps {
  readonly cluster: Pick<ClusterAccess, 'footageHolders'>;
  readonly peers: PeerSender;
  readonly clock: Clock;
  readonly log: Log;
}

const LIST_MS = 4_000;
/** A day of ten-second files. */
const MAX_BYTES = 8 * 1024 * 1024;

/** Nodes of an older version do not tell `duration_ms`. */
const Item = SegmentItem.partial({ duration_ms: true }).transform(({ duration_ms, ...item }) => {
  const { start_ms, end_ms } = item;
  return { ...item, duration_ms: duration_ms ?? (end_ms === null ? null : end_ms - start_ms) };
});

const Answer = z.object({ archive: z.array(Item), days: z.array(z.iso.date()) });

/** `interval`: in seconds since 1970. By start. */
export async function collectSegments(
  deps: CollectDeps,
  own: Listed,
  request: FastifyRequest,
  cameraId: string,
  { from, to, tzOffsetMinutes }: { from: number; to: number; tzOffsetMinutes: number | undefined },
): Promise<Listed & { readonly elsewhere: readonly Elsewhere[] }> {
  const zone = tzOffsetMinutes === undefined ? '' : `&tz_offset_minutes=${tzOffsetMinutes}`;
  const path = `/api/archive/${encodeURIComponent(cameraId)}/segments?local=1&from=${from}&to=${to}${zone}`;
  const caller = viewerOf(askerOf(request), cameraId);
  const list = (nodeId: string): Promise<WholeAnswer<Listed>> => {
    const signal = AbortSignal.timeout(2 * LIST_MS);
    const asked = { listener: 'api', caller, path, headMs: LIST_MS, signal } as const;
    return wholeAnswer(deps, nodeId, asked, MAX_BYTES, Answer);
  };
  const past = { fromMs: from * 1000, toMs: Math.min(to * 1000, deps.clock.wallMs()) };
  const all = await deps.cluster.footageHolders(cameraId);
  // The days of all footage are returned, not only those of the interval.
  const answers = await Promise.all(all.map(async (holder) => ({ holder, answer: await list(holder.nodeId) })));
  const segments = new Map(own.archive.map((item) => [`${item.node_id ?? ''} ${item.filename}`, item]));
  const days = new Set(own.days);
  for (const { holder, answer } of answers) {
    if (answer.kind !== 'answer') continue;
    for (const day of answer.value.days) days.add(day);
    for (const item of answer.value.archive) {
      // With a database, a node lists the segments of others, too.
      if (item.node_id !== undefined) continue;
      segments.set(`${holder.nodeId} ${item.filename}`, { ...item, node_id: holder.nodeId });
    }
  }
  return {
    archive: [...segments.values()].sort((a, b) => a.start_ms - b.start_ms || (a.filename < b.filename ? -1 : 1)),
    days: [...days].sort(),
    elsewhere: answers.flatMap(({ holder, answer }) =>
      answer.kind === 'answer' ? [] : holdersIn([holder], past).map((one) => silentAt(one, past, answer)),
    ),
  };
}
