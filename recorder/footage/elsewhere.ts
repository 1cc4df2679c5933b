// Which footage of a camera is on other nodes, and what that means for gaps. Pure.

import type { Interval } from '../../base/interval.ts';
import type { Gap } from '../contract/gap-report.ts';
import { MIN_GAP_MS } from '../mp4/join.ts';
import type { GapCause } from '../contract/gap-cause.ts';
import { IntervalSet } from '../contract/intervals.ts';
import type { Elsewhere } from './holders.ts';

/** What one node knows of a camera in an interval. */
export interface NodeAccount {
  /** Footage on its disk. */
  readonly footage: readonly Interval[];
  readonly gaps: readonly Pick<Gap, 'fromMs' | 'toMs' | 'cause'>[];
}

/** The other nodes that hold footage of a camera. */
export interface OtherNodes {
  readonly answered: readonly (NodeAccount & { readonly nodeId: string })[];
  /** Those that did not answer, or refused to, and the interval in which they may have footage, as far as others know. */
  readonly away: readonly Elsewhere[];
}

export const NO_OTHER_NODES: OtherNodes = { answered: [], away: [] };

/** The footage of [fromMs, toMs) that `own` does not have, by node and time. */
export function elsewhereIn({ fromMs, toMs }: Interval, own: NodeAccount, { answered, away }: OtherNodes): Elsewhere[] {
  const here = setOf(own.footage);
  const found: Elsewhere[] = [];
  for (const { nodeId, footage } of answered) {
    for (const { fromMs: start, toMs: end } of setOf(footage).overlapping(fromMs, toMs)) {
      for (const hole of here.holes(Math.max(start, fromMs), Math.min(end, toMs))) {
        if (isLong(hole)) found.push({ ...hole, nodeId, isOnline: true });
      }
    }
  }
  // Nodes that do not answer cannot have footage of a gap whose cause is known.
  const explained = here.with(found);
  for (const { gaps } of [own, ...answered]) {
    for (const gap of gaps) if (!mayBeElsewhere(gap.cause)) explained.add(gap.fromMs, gap.toMs);
  }
  for (const part of away) {
    for (const hole of explained.holes(Math.max(part.fromMs, fromMs), Math.min(part.toMs, toMs))) {
      if (isLong(hole)) found.push({ ...part, ...plain(hole) });
    }
  }
  return found.sort((a, b) => a.fromMs - b.fromMs || (a.nodeId < b.nodeId ? -1 : 1));
}

/** The same gaps, divided where their footage is on another node, which is then the cause. */
export function withElsewhere<T extends Interval & { readonly cause: GapCause }>(
  gaps: readonly T[],
  elsewhere: readonly Elsewhere[],
): T[] {
  const online = setOf(elsewhere.filter(({ isOnline }) => isOnline));
  const away = setOf(elsewhere.filter(({ isOnline }) => !isOnline));
  return gaps.flatMap((gap) =>
    divided(gap, online, 'on-other-node').flatMap((part) =>
      mayBeElsewhere(part.cause) ? divided(part, away, 'on-node-away') : [part],
    ),
  );
}

/** During a handover the next node is `starting` while the one before it still records. */
const mayBeElsewhere = (cause: GapCause): boolean => cause === 'unknown' || cause === 'starting';

/** The parts of a gap; those in `set` get the cause. */
function divided<T extends Interval & { readonly cause: GapCause }>(gap: T, set: IntervalSet, cause: GapCause): T[] {
  const { fromMs, toMs } = gap;
  const inside = Array.from(set.overlapping(fromMs, toMs), (part) => ({
    ...gap,
    fromMs: Math.max(part.fromMs, fromMs),
    toMs: Math.min(part.toMs, toMs),
    cause,
  }));
  const outside = Array.from(set.holes(fromMs, toMs), (part) => ({ ...gap, ...plain(part) }));
  return [...inside, ...outside].sort((a, b) => a.fromMs - b.fromMs);
}

type CausedGap = Interval & { readonly cause: GapCause };

/** The gaps of a node, and the time for which other nodes have footage, as causes of gaps in a result of this node. */
export const causesIn = ({
  gaps,
  elsewhere,
}: {
  readonly gaps: readonly CausedGap[];
  readonly elsewhere: readonly Elsewhere[];
}): CausedGap[] => [
  ...gaps,
  ...elsewhere.map(({ fromMs, toMs, isOnline }) => ({
    fromMs,
    toMs,
    cause: isOnline ? ('on-other-node' as const) : ('on-node-away' as const),
  })),
];

export const setOf = (intervals: Iterable<Interval>): IntervalSet => new IntervalSet(MIN_GAP_MS - 1).with(intervals);
const plain = ({ fromMs, toMs }: Interval): Interval => ({ fromMs, toMs });
const isLong = ({ fromMs, toMs }: Interval): boolean => toMs - fromMs >= MIN_GAP_MS;
