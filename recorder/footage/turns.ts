// Orders the footage of several nodes. Where two nodes recorded the same time, as during a handover or while one of them was cut
// off, only one of them is played: the one with the higher epoch. Each file gets the turns in which it is played.

import type { Interval } from '../../base/interval.ts';
import type { FileParts } from '../mp4/parts.ts';
import type { Footage, Turn } from './footage.ts';
import { partsWithin, wallOfPart } from './part-times.ts';

/** Clocks and networks of two nodes date the same picture differently. Pictures of most cameras are further apart than this. */
const SAME_PICTURE_MS = 15;

/** By time. `footage`: that of all nodes. */
export function inTurns(footage: readonly Footage[]): Footage[] {
  const shared = sharedEpochs(footage);
  const groups = [
    ...Map.groupBy(footage, (item) => rankOf(item, shared.get(item.parts.meta.epoch ?? 0))).entries(),
  ].sort(([a], [b]) => (a > b ? -1 : 1));
  const taken: { readonly nodeId: string; readonly time: Time }[] = [];
  const played: Footage[] = [];
  for (const [, group] of groups) {
    for (const item of group) {
      const others = taken.filter(({ nodeId }) => nodeId !== item.nodeId).map(({ time }) => time);
      played.push(...turnsOf(item, others));
    }
    taken.push(...joined(group.map(timeOf)).map((time) => ({ nodeId: (group[0] as Footage).nodeId, time })));
  }
  return played.sort((a, b) => startOf(a) - startOf(b) || a.parts.meta.sequence - b.parts.meta.sequence);
}

/**
 * Epochs of which two nodes have files: one of them held the camera in memory while the other was restarted, and wrote
 * what the other had missed (docs/design/standby.md).
 */
function sharedEpochs(footage: readonly Footage[]): ReadonlyMap<number, FilesOfNodes> {
  const epochs = Map.groupBy(footage, ({ parts }) => parts.meta.epoch ?? 0);
  const shared = new Map<number, FilesOfNodes>();
  for (const [epoch, files] of epochs) {
    const nodes = Map.groupBy(files, ({ nodeId }) => nodeId);
    if (epoch > 0 && nodes.size > 1) shared.set(epoch, nodes);
  }
  return shared;
}

/** The files of an epoch by node. */
type FilesOfNodes = ReadonlyMap<string, readonly Footage[]>;

/**
 * Sorts as text: the higher epoch is greater. Of a shared epoch, the file that begins later is: each file that begins
 * later continues the one before. Of files without an epoch, one node is greater.
 */
function rankOf(item: Footage, shared: FilesOfNodes | undefined): string {
  const { epoch = 0 } = item.parts.meta;
  const start = shared ? String(Math.round(continuesFrom(item, shared))).padStart(15, '0') : '';
  return `${String(epoch).padStart(10, '0')} ${start} ${item.nodeId}`;
}

/**
 * Since when a file continues the others of its epoch: its start, unless all of it lies within a file of another node.
 * That is the last file of a process that was restarted, if it began shortly before: what the other node wrote begins
 * before it and ends after it, and would continue within a group of pictures.
 */
function continuesFrom(item: Footage, shared: FilesOfNodes): number {
  const { fromMs, toMs } = timeOf(item);
  let startMs = fromMs;
  for (const [nodeId, files] of shared) {
    if (nodeId === item.nodeId) continue;
    for (const other of files.map(timeOf)) {
      const isWithin = fromMs >= other.fromMs - SAME_PICTURE_MS && toMs < other.toMs;
      if (isWithin) startMs = Math.min(startMs, other.fromMs - 1);
    }
  }
  return startMs;
}

/** The time of a file, or of several that follow one another. */
interface Time extends Interval {
  /** Of the first one. */
  readonly lead: FileParts['lead'];
}

const timeOf = ({ parts }: Footage): Time => ({
  lead: parts.lead,
  fromMs: wallOfPart(parts, 0),
  // A file that is still being written continues.
  toMs: parts.complete ? wallOfPart(parts, parts.starts.length - 1) : Infinity,
});

/** The time of what counts of a file; one that is being written continues. */
export const countedTime = ({ parts, isOpen, turn }: Footage): Interval => ({
  fromMs: Math.max(wallOfPart(parts, 0), turn?.fromMs ?? -Infinity),
  toMs: Math.min(
    isOpen && !parts.complete ? Infinity : wallOfPart(parts, parts.starts.length - 1),
    turn?.toMs ?? Infinity,
  ),
});

/** When the played part of a file begins. */
export const startOf = (item: Footage): number => countedTime(item).fromMs;

function joined(times: readonly Time[]): Time[] {
  const found: Time[] = [];
  for (const time of [...times].sort((a, b) => a.fromMs - b.fromMs)) {
    const last = found.at(-1);
    if (last && time.fromMs <= last.toMs + SAME_PICTURE_MS) {
      found[found.length - 1] = { ...last, toMs: Math.max(last.toMs, time.toMs) };
    } else found.push(time);
  }
  return found;
}

/**
 * The item, once for each of its stretches that are not played from another node. A turn ends when the first picture of
 * the other node was captured, by the clock of that node: see `untilTurnEnds`.
 */
function turnsOf(item: Footage, others: readonly Time[]): Footage[] {
  const { lead: _, ...whole } = timeOf(item);
  let left: Turn[] = [whole];
  for (const { fromMs, toMs, lead } of others) {
    if (toMs <= whole.fromMs || fromMs >= whole.toMs) continue;
    left = left.flatMap((one) => [
      fromMs < one.toMs ? { fromMs: one.fromMs, toMs: fromMs, next: lead } : one,
      { ...one, fromMs: Math.max(one.fromMs, toMs - SAME_PICTURE_MS) },
    ]);
    left = left.filter((one) => one.fromMs < one.toMs);
  }
  if (left.length === 1 && left[0]?.fromMs === whole.fromMs && left[0].toMs === whole.toMs) return [item];
  return left.map((one) => ({
    ...item,
    turn: {
      ...one,
      fromMs: one.fromMs === whole.fromMs ? -Infinity : one.fromMs,
      toMs: one.toMs === whole.toMs ? Infinity : one.toMs,
    },
  }));
}

/** The first part that is completely in the turn: a part begins with a key frame. */
export function firstPartOf(parts: FileParts, turn: Turn | undefined): number {
  let part = 0;
  if (turn) while (part < parts.starts.length && wallOfPart(parts, part) < turn.fromMs) part++;
  return part;
}

/** The complete parts of a file that are played in [fromMs, toMs): the first, and the one after the last. */
export function partsInTurn({ parts, turn }: Footage, { fromMs, toMs }: Interval): [from: number, to: number] {
  // A part that begins with the first picture of the other node belongs to the other node.
  const endMs = Math.min(toMs, (turn?.toMs ?? Infinity) - SAME_PICTURE_MS);
  const [first, end] = partsWithin(parts, fromMs, endMs);
  const from = Math.max(first, firstPartOf(parts, turn));
  // The turn may have ended inside a part, before `fromMs`, although the part contains `fromMs`.
  return [from, endMs <= fromMs ? from : Math.max(from, end)];
}

/** The played part of the file will not grow. */
export const isSettled = ({ parts, turn }: Footage): boolean =>
  parts.complete || (turn !== undefined && wallOfPart(parts, parts.starts.length - 1) >= turn.toMs);
