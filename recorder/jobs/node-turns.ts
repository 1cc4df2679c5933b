// Which node gives which part of an export of all nodes. Pure.

import type { Interval } from '../../base/interval.ts';
import { gapsIn, type JoinWindow } from '../mp4/join.ts';
import type { Elsewhere } from '../footage/holders.ts';
import { withCauses, type KnownGap } from './gap-causes.ts';
import type { JobGap } from './job.ts';

/** The footage of a camera on one node. */
interface NodeFootage {
  readonly nodeId: string;
  readonly footage: readonly Interval[];
}

/** A part of a window that one node gives. */
export interface NodeTurn extends Interval {
  readonly nodeId: string;
}

/** A shorter hole in the footage of a node is no reason to change to another one, and no shorter part is taken. */
const MIN_TURN_MS = 1_000;

/**
 * The turns that cover the window, in order and without overlap: a node has its turn as long as it has footage. Empty without
 * any footage. Where no node has footage, the turn before the hole, or the first one, extends over it.
 */
export function turnsOf({ fromMs, toMs }: JoinWindow, nodes: readonly NodeFootage[]): NodeTurn[] {
  const stretches = nodes.flatMap(({ nodeId, footage }) => footage.map((part) => ({ ...part, nodeId })));
  const turns: { nodeId: string; fromMs: number; toMs: number }[] = [];
  for (let atMs = fromMs; atMs < toMs;) {
    const last = turns.at(-1);
    const here = stretches.filter((one) => one.fromMs <= atMs && Math.min(one.toMs, toMs) - atMs >= MIN_TURN_MS);
    const resumed = stretches.find(
      ({ nodeId, ...one }) =>
        nodeId === last?.nodeId && one.toMs > atMs && one.fromMs - atMs < MIN_TURN_MS && one.fromMs < toMs,
    );
    const next = resumed ?? here.reduce<NodeTurn | undefined>((a, b) => (a && a.toMs >= b.toMs ? a : b), undefined);
    if (!next) {
      const starts = stretches.map((one) => one.fromMs).filter((ms) => ms > atMs);
      atMs = Math.min(...starts);
      continue;
    }
    const endMs = Math.min(next.toMs, toMs);
    if (last?.nodeId === next.nodeId) last.toMs = endMs;
    else turns.push({ nodeId: next.nodeId, fromMs: atMs, toMs: endMs });
    atMs = endMs;
  }
  return turns.map((turn, i) => ({
    nodeId: turn.nodeId,
    fromMs: i === 0 ? fromMs : turn.fromMs,
    toMs: turns[i + 1]?.fromMs ?? toMs,
  }));
}

/** The time of the window without footage on any of the nodes, with causes. */
export function gapsOfAll(
  { fromMs, toMs }: JoinWindow,
  nodes: readonly NodeFootage[],
  known: readonly KnownGap[],
  elsewhere: readonly Elsewhere[],
): JobGap[] {
  const footage = nodes
    .flatMap((node) => node.footage)
    .filter((part) => part.fromMs < toMs && part.toMs > fromMs)
    .sort((a, b) => a.fromMs - b.fromMs)
    .map((part) => ({ wallStartMs: part.fromMs, wallEndMs: part.toMs }));
  return withCauses(gapsIn({ fromMs, toMs }, footage), known, elsewhere);
}
