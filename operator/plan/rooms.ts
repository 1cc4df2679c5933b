// How many cameras each node has while a plan is made, and which node a camera should go to.

import type { PlannedCamera, PlannedNode, Snapshot } from './snapshot.ts';

/** Cameras of each node; grows as the plan hands them out. */
export class Rooms {
  readonly #loads = new Map<string, number>();
  /** Nodes that may be given something at all. */
  readonly #open: readonly PlannedNode[];
  readonly #openByName: ReadonlyMap<string, PlannedNode>;
  readonly #limit: number;

  constructor({ pool, nodes, cameras }: Snapshot) {
    this.#limit = pool.maxCamerasPerNode;
    this.#open = nodes.filter(({ drain, canRecord, liveness }) => liveness.heard && canRecord && !drain);
    this.#openByName = new Map(this.#open.map((node) => [node.name, node]));
    for (const { assignment } of cameras) if (assignment?.node) this.#add(assignment.node, 1);
  }

  load(node: string): number {
    return this.#loads.get(node) ?? 0;
  }

  /** How many cameras the node has beyond its limit. */
  excess(node: string): number {
    return Math.max(0, this.load(node) - this.#limit);
  }

  move(from: string | undefined, to: string | undefined): void {
    if (from !== undefined) this.#add(from, -1);
    if (to !== undefined) this.#add(to, 1);
  }

  /** How many cameras each open node has when `more` have been given out evenly. */
  share(more: number): number {
    const loads = this.#open.reduce((sum, { name }) => sum + this.load(name), 0);
    return Math.ceil((loads + more) / Math.max(1, this.#open.length));
  }

  /** The node could be given the camera now. */
  isOpen(node: string, camera: PlannedCamera): boolean {
    const found = this.#openByName.get(node);
    return found !== undefined && matches(camera, found) && this.load(node) < this.#limit;
  }

  /**
   * The preferred node, or else `favourite`, or else the one with the most room: the fewest cameras, then the most free
   * bytes, then the first name. Nodes that lately did not take cameras up come last. With `share`, nodes are filled up to
   * it one after the other.
   */
  best(
    camera: PlannedCamera,
    except: string | undefined,
    { favourite, share = 0 }: { readonly favourite?: string | undefined; readonly share?: number } = {},
  ): string | undefined {
    let best: PlannedNode | undefined;
    for (const node of this.#open) {
      if (node.name === except || this.load(node.name) >= this.#limit || !matches(camera, node)) continue;
      if (!best || this.#compare(camera, favourite, share, node, best) < 0) best = node;
    }
    return best?.name;
  }

  /** Somebody could record the camera, were there room. */
  hasCandidates(camera: PlannedCamera, except: string | undefined): boolean {
    return this.#open.some((node) => node.name !== except && matches(camera, node));
  }

  #compare(
    camera: PlannedCamera,
    favourite: string | undefined,
    share: number,
    a: PlannedNode,
    b: PlannedNode,
  ): number {
    return (
      Number(a.reluctant) - Number(b.reluctant) ||
      Number(b.name === camera.preferredNode) - Number(a.name === camera.preferredNode) ||
      Number(b.name === favourite) - Number(a.name === favourite) ||
      byLoad(this.load(a.name), this.load(b.name), share) ||
      (b.freeBytes ?? 0) - (a.freeBytes ?? 0) ||
      (a.name < b.name ? -1 : 1)
    );
  }

  #add(node: string, count: number): void {
    this.#loads.set(node, this.load(node) + count);
  }
}

/** The fuller one of those below `share`, otherwise the emptier one. */
function byLoad(a: number, b: number, share: number): number {
  return a < share && b < share ? b - a : a - b;
}

/** The node has all labels that the camera asks for. */
export function matches({ nodeSelector }: PlannedCamera, { labels }: PlannedNode): boolean {
  for (const label in nodeSelector) if (labels[label] !== nodeSelector[label]) return false;
  return true;
}
