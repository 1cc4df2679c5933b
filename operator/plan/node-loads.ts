// Counts the cameras of each node while a plan is made, and chooses the node for a camera.

import { zoneOf } from './parts.ts';
import type { PlannedCamera, PlannedNode, Snapshot } from './snapshot.ts';

/** The cameras of each node, updated while the plan assigns them. */
export class NodeLoads {
  readonly #loads = new Map<string, number>();
  /** Cameras of other nodes that are held. */
  readonly #held = new Map<string, number>();
  /** Nodes that may get cameras. */
  readonly #open: readonly PlannedNode[];
  /** Drained nodes: they get only cameras that would not be recorded otherwise. */
  readonly #spare: readonly PlannedNode[];
  readonly #openByName: ReadonlyMap<string, PlannedNode>;
  readonly #limit: number;
  /** By node. */
  readonly #zones: ReadonlyMap<string, string>;

  constructor({ pool, nodes, cameras }: Snapshot) {
    this.#limit = pool.maxCamerasPerNode;
    this.#zones = new Map(nodes.map((node) => [node.name, zoneOf(node)]));
    const able = nodes.filter(({ canRecord, liveness }) => liveness.heard && canRecord);
    this.#open = able.filter(({ drain }) => !drain);
    this.#spare = able.filter(({ drain, isRemoved }) => drain && !isRemoved);
    this.#openByName = new Map(this.#open.map((node) => [node.name, node]));
    for (const { assignment, standby } of cameras) {
      if (assignment?.node) this.#add(assignment.node, 1);
      if (standby?.node) this.hold(standby.node);
    }
  }

  load(node: string): number {
    return this.#loads.get(node) ?? 0;
  }

  /** The same with the cameras that it holds for others. */
  #all(node: string): number {
    return this.load(node) + (this.#held.get(node) ?? 0);
  }

  hold(node: string): void {
    this.#held.set(node, (this.#held.get(node) ?? 0) + 1);
  }

  /** Standbys are counted again from zero, beside what is recorded after the plan. */
  forgetHeld(): void {
    this.#held.clear();
  }

  /** Whether the node has capacity for a standby. */
  canHold(node: string): boolean {
    return this.#all(node) < this.#limit;
  }

  /** Chooses the node with the most capacity to hold the camera, as for recording it, and rather one of another zone than that of `owner`. */
  bestStandby(camera: PlannedCamera, owner: string | undefined): string | undefined {
    const zone = this.#zones.get(owner ?? '');
    const isAway = (node: PlannedNode): number => Number(zone !== undefined && zoneOf(node) !== zone);
    let best: PlannedNode | undefined;
    for (const node of this.#open) {
      if (node.name === owner || !this.canHold(node.name) || !matches(camera, node)) continue;
      const order = best ? isAway(best) - isAway(node) || this.#compare(undefined, undefined, 0, node, best) : -1;
      if (order < 0) best = node;
    }
    return best?.name;
  }

  /** By how many cameras the node exceeds its limit. */
  excess(node: string): number {
    return Math.max(0, this.load(node) - this.#limit);
  }

  move(from: string | undefined, to: string | undefined): void {
    if (from !== undefined) this.#add(from, -1);
    if (to !== undefined) this.#add(to, 1);
  }

  /** The number of cameras on each open node if `more` were distributed evenly. */
  share(more: number): number {
    const loads = this.#open.reduce((sum, { name }) => sum + this.#all(name), 0);
    return Math.ceil((loads + more) / Math.max(1, this.#open.length));
  }

  /** Whether the node may get cameras, as far as it has capacity. */
  isAble(node: string): boolean {
    return this.#openByName.has(node);
  }

  /** Whether the node could be given the camera now. */
  isOpen(node: string, camera: PlannedCamera): boolean {
    const found = this.#openByName.get(node);
    return found !== undefined && matches(camera, found) && this.load(node) < this.#limit;
  }

  /**
   * Chooses the preferred node, or else `favourite`, or else the node with the most capacity: fewest cameras, then most free bytes,
   * then first name. Nodes that recently did not take up cameras come last. With `share`, nodes are filled one after the other up
   * to that number.
   */
  best(
    camera: PlannedCamera,
    except: string | undefined,
    { favourite, share = 0 }: { readonly favourite?: string | undefined; readonly share?: number } = {},
  ): string | undefined {
    return this.#bestOf(this.#open, camera, except, favourite, share);
  }

  /** The same among nodes that are being drained. */
  lastResort(camera: PlannedCamera, except: string | undefined, favourite: string | undefined): string | undefined {
    return this.#bestOf(this.#spare, camera, except, favourite, 0);
  }

  #bestOf(
    nodes: readonly PlannedNode[],
    camera: PlannedCamera,
    except: string | undefined,
    favourite: string | undefined,
    share: number,
  ): string | undefined {
    let best: PlannedNode | undefined;
    for (const node of nodes) {
      if (node.name === except || this.load(node.name) >= this.#limit || !matches(camera, node)) continue;
      if (!best || this.#compare(camera.preferredNode, favourite, share, node, best) < 0) best = node;
    }
    return best?.name;
  }

  /** Whether any node could record the camera if it had capacity. */
  hasCandidates(camera: PlannedCamera, except: string | undefined): boolean {
    return this.#open.some((node) => node.name !== except && matches(camera, node));
  }

  #compare(
    preferred: string | undefined,
    favourite: string | undefined,
    share: number,
    a: PlannedNode,
    b: PlannedNode,
  ): number {
    return (
      Number(a.reluctant) - Number(b.reluctant) ||
      Number(b.name === preferred) - Number(a.name === preferred) ||
      Number(b.name === favourite) - Number(a.name === favourite) ||
      byLoad(this.#all(a.name), this.#all(b.name), share) ||
      (b.freeBytes ?? 0) - (a.freeBytes ?? 0) ||
      (a.name < b.name ? -1 : 1)
    );
  }

  #add(node: string, count: number): void {
    this.#loads.set(node, this.load(node) + count);
  }
}

/** Compares loads: below `share` the fuller node comes first, otherwise the emptier one. */
function byLoad(a: number, b: number, share: number): number {
  return a < share && b < share ? b - a : a - b;
}

export function matches({ nodeSelector }: PlannedCamera, { labels }: PlannedNode): boolean {
  for (const label in nodeSelector) if (labels[label] !== nodeSelector[label]) return false;
  return true;
}
