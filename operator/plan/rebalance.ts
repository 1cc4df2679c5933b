// Proposes which cameras should belong to other nodes so that all nodes have equally many. A person approves the proposal by its
// id; then the cameras move as those do that return to their home. Pure.

import { someOf } from '../../base/some-of.ts';
import { REBALANCE } from '../../crds/names.ts';
import { mayTake, type Context } from './needs.ts';
import { condition } from './parts.ts';
import type { Assignment, PlannedCamera, PlannedCondition } from './snapshot.ts';

interface Move {
  readonly camera: PlannedCamera;
  /** Of the camera. */
  readonly assignment: Assignment;
  readonly to: string;
}

interface Proposal {
  readonly moves: readonly Move[];
  /** Names the moves. They never get this id again: it depends on the epochs of the cameras. */
  readonly id: string;
}

/** So many writes does an API server accept in a second. The rest is a proposal of its own. */
const MAX_MOVES = 256;
/** A message names this many moves and counts the others. */
const MAX_NAMED = 5;

/** Where the camera is, or returns to. */
const belongsTo = ({ assignment }: PlannedCamera, { nodes }: Context): string | undefined =>
  assignment?.home !== undefined && nodes.has(assignment.home) ? assignment.home : assignment?.node;

/** It is at home, nothing is under way, and nobody has chosen its node. */
const isMovable = ({ assignment, preferredNode, suspend, wasTakenUp }: PlannedCamera, home: string): boolean =>
  assignment?.node === home &&
  (assignment.lostNodes ?? []).length === 0 &&
  preferredNode === undefined &&
  !suspend &&
  wasTakenUp;

/** Moves cameras from the fullest node to the emptiest as long as that makes the two more equal, those with the lowest priority first. */
export function rebalanceOf(cameras: readonly PlannedCamera[], context: Context): Proposal {
  const { nodes, nodeLoads } = context;
  const open = [...nodes.keys()].filter((name) => nodeLoads.isAble(name)).sort();
  const loads = new Map(open.map((name) => [name, 0]));
  const movable = new Map(open.map((name): [string, PlannedCamera[]] => [name, []]));
  for (const camera of cameras) {
    const home = belongsTo(camera, context);
    const load = loads.get(home ?? '');
    if (home === undefined || load === undefined) continue;
    loads.set(home, load + 1);
    // Cameras come in the order of their priorities.
    if (isMovable(camera, home)) movable.get(home)?.unshift(camera);
  }
  const loadOf = (name: string): number => loads.get(name) ?? 0;
  const moves: Move[] = [];
  for (let found = true; found && moves.length < MAX_MOVES;) {
    found = false;
    const byLoad = open.toSorted((a, b) => loadOf(a) - loadOf(b));
    for (const from of byLoad.toReversed()) {
      const to = byLoad.filter((name) => loadOf(from) - loadOf(name) >= 2);
      const own = movable.get(from) ?? [];
      const index = own.findIndex((camera) => to.some((name) => mayTake(camera, name, context)));
      const [camera] = index < 0 ? [] : own.splice(index, 1);
      const target = camera && to.find((name) => mayTake(camera, name, context));
      if (!camera?.assignment || target === undefined) continue;
      moves.push({ camera, assignment: camera.assignment, to: target });
      loads.set(from, loadOf(from) - 1);
      loads.set(target, loadOf(target) + 1);
      found = true;
      break;
    }
  }
  return { moves, id: idOf(moves) };
}

/** The condition `Balanced` of the pool. Undefined: cameras are being moved, so the proposal would change all the time. */
export function balancedCondition(proposal: Proposal | undefined): PlannedCondition {
  if (!proposal) return condition('Balanced', 'Unknown', 'Moving', 'cameras are being moved');
  const { moves, id } = proposal;
  if (moves.length === 0) return condition('Balanced', 'True', 'Even', 'no move would make the nodes more equal');
  const texts = moves.map(({ camera, assignment, to }) => `${camera.name} from ${assignment.node ?? ''} to ${to}`);
  const message = `would move ${someOf(texts, MAX_NAMED)}; to approve, annotate the pool: ${REBALANCE}=${id}`;
  return condition('Balanced', 'False', 'Uneven', message);
}

/** FNV-1a, 32 bits (draft-eastlake-fnv §5). */
function idOf(moves: readonly Move[]): string {
  const text = moves.map(({ camera, assignment, to }) => `${camera.uid}@${assignment.epoch}>${to}`).join();
  let hash = 0x81_1c_9d_c5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01_00_01_93);
  return (hash >>> 0).toString(16).padStart(8, '0');
}
