// The failure detector of one pool: what is seen of the nodes' Leases comes in, who is live goes out. Time is a value
// on the observer's own monotonic clock; the times inside a Lease are never read (docs/design/failover.md).

import { isNewer } from '../../base/kubernetes/resource-version.ts';
import type { Liveness, Role } from './snapshot.ts';

/** A node counts as heard while no more than this many renewals are missing. */
const HEARD_RENEWALS = 3;
/** Silence after which a Lease is read directly: a watch may be late or dead. */
const SUSPECT_RENEWALS = 2;
/** How often a node that is known to be unavailable is read, beside the watch. */
const UNAVAILABLE_READ_MS = 10_000;

export type DetectorOptions = { readonly unavailableAfterMs: number; readonly renewMs: number };

type Observed = {
  role: Role;
  resourceVersion: string | undefined;
  /** No change was seen since nobody was heard: the next one may be an old one. */
  isStale: boolean;
  /** When a change was seen last. */
  heardMs: number | undefined;
  /** Since when the node has been Live without a break. */
  liveSinceMs: number;
  /** Where the silence that may condemn the node begins: its last change, or the end of a time without a majority. */
  silentFromMs: number;
  readSentMs: number | undefined;
  /** When the last read was sent that found the Lease unchanged. */
  unchangedMs: number | undefined;
};

/**
 * Silence of a node counts only while more than half of the voters are heard. When the API server is away, does not
 * take writes, is cut off from everybody, or this process was frozen, nobody is heard: then all clocks start over as
 * soon as a majority speaks again, and every node has the whole time once more. The first change that is seen of a node
 * after such a time is no sign of life, as at the start: it may have happened before.
 */
export class LivenessDetector {
  #unavailableAfterMs = 0;
  #renewMs = 0;
  readonly #nodes = new Map<string, Observed>();
  /** Since when a majority has been heard without a break; undefined while there is none. */
  #majoritySinceMs: number | undefined;
  /** Until when more than half of the voters count as heard, if nothing more is seen. */
  #majorityEndMs = -Infinity;

  constructor(options: DetectorOptions) {
    this.configure(options);
  }

  configure(options: DetectorOptions): void {
    this.#unavailableAfterMs = options.unavailableAfterMs;
    this.#renewMs = options.renewMs;
  }

  /** The nodes of the pool. Those that are new are Unknown; those that are gone are forgotten. */
  track(nodes: readonly { readonly name: string; readonly role: Role }[], nowMs: number): void {
    this.#advance(nowMs);
    let isChanged = false;
    for (const { name, role } of nodes) {
      const known = this.#nodes.get(name);
      if (known?.role === role) continue;
      if (known) known.role = role;
      else this.#nodes.set(name, newcomer(role, nowMs));
      isChanged = true;
    }
    if (this.#nodes.size > nodes.length) {
      const there = new Set(nodes.map(({ name }) => name));
      for (const name of this.#nodes.keys()) if (!there.has(name)) this.#nodes.delete(name);
      isChanged = true;
    }
    if (isChanged) this.#count(nowMs);
  }

  /** A watch or a list from a cache shows the Lease at this version. The first sight of a Lease is no sign of life. */
  saw(name: string, resourceVersion: string, nowMs: number): void {
    const node = this.#nodes.get(name);
    if (!node) return;
    this.#advance(nowMs);
    if (node.resourceVersion === undefined || isNewer(resourceVersion, node.resourceVersion)) {
      this.#changed(node, resourceVersion, nowMs);
    }
  }

  /**
   * The API server itself (a read without `resourceVersion`) answered a request of `sentMs`; undefined: there is no
   * such Lease. Not to be called for requests that failed.
   */
  read(name: string, resourceVersion: string | undefined, sentMs: number, nowMs: number): void {
    const node = this.#nodes.get(name);
    if (!node) return;
    this.#advance(nowMs);
    const last = node.resourceVersion;
    if (resourceVersion === undefined || resourceVersion === last) {
      node.unchangedMs = sentMs;
    } else if (last === undefined || isNewer(resourceVersion, last) || (node.heardMs ?? 0) <= sentMs) {
      // Older than what was seen before the request was sent: the API server was restored from a backup.
      this.#changed(node, resourceVersion, nowMs);
    }
  }

  /** The Leases to read now. Each call counts as having sent them; what is not answered is asked for again. */
  reads(nowMs: number): readonly string[] {
    this.#advance(nowMs);
    const due: string[] = [];
    for (const [name, node] of this.#nodes) {
      if (nowMs < this.#readDueMs(node, nowMs)) continue;
      node.readSentMs = nowMs;
      due.push(name);
    }
    return due;
  }

  /** In how many milliseconds `reads` or `liveness` can say something new although nothing was seen. */
  nextMs(nowMs: number): number {
    this.#advance(nowMs);
    let next = Infinity;
    for (const node of this.#nodes.values()) {
      next = Math.min(next, this.#readDueMs(node, nowMs));
      if (node.heardMs === undefined) continue;
      for (const end of [this.#heardForMs(), this.#unavailableAfterMs]) {
        if (node.heardMs + end > nowMs) next = Math.min(next, node.heardMs + end);
      }
    }
    return Math.max(0, next - nowMs);
  }

  liveness(name: string, nowMs: number): Liveness {
    this.#advance(nowMs);
    const node = this.#nodes.get(name);
    if (!node) return { state: 'Unknown', heard: false, silentMs: undefined, liveForMs: 0 };
    const silentMs = node.heardMs === undefined ? undefined : nowMs - node.heardMs;
    if (silentMs !== undefined && silentMs < this.#unavailableAfterMs) {
      const heard = silentMs <= this.#heardForMs();
      return { state: 'Live', heard, silentMs, liveForMs: nowMs - node.liveSinceMs };
    }
    const state = this.#isUnavailable(node) ? 'Unavailable' : 'Unknown';
    return { state, heard: false, silentMs, liveForMs: 0 };
  }

  /** Changes when a node is judged otherwise than before: then a plan is due. */
  summary(nowMs: number): string {
    let summary = this.majoritySinceMs(nowMs) === undefined ? '' : 'majority ';
    for (const name of this.#nodes.keys()) {
      const { state, heard } = this.liveness(name, nowMs);
      summary += heard ? 'heard ' : `${state} `;
    }
    return summary;
  }

  /** Since when more than half of the voters have been heard without a break; undefined while they are not. */
  majoritySinceMs(nowMs: number): number | undefined {
    this.#advance(nowMs);
    return this.#majoritySinceMs;
  }

  #isUnavailable(node: Observed): boolean {
    const condemnedFromMs = node.silentFromMs + this.#unavailableAfterMs;
    return this.#majoritySinceMs !== undefined && node.unchangedMs !== undefined && node.unchangedMs >= condemnedFromMs;
  }

  #heardForMs(): number {
    return HEARD_RENEWALS * this.#renewMs;
  }

  #readDueMs(node: Observed, nowMs: number): number {
    const againMs = (node.readSentMs ?? -Infinity) + this.#renewMs / 2;
    if (this.#isUnavailable(node)) return (node.readSentMs ?? nowMs) + UNAVAILABLE_READ_MS;
    const condemnedMs = node.silentFromMs + this.#unavailableAfterMs;
    // Exactly when the time is up, whenever the last read was: no second is given away.
    if (nowMs >= condemnedMs && (node.readSentMs ?? -Infinity) < condemnedMs) return condemnedMs;
    const suspectMs = (node.heardMs ?? node.silentFromMs) + SUSPECT_RENEWALS * this.#renewMs;
    const dueMs = Math.max(suspectMs, againMs);
    return nowMs < condemnedMs ? Math.min(dueMs, condemnedMs) : dueMs;
  }

  #changed(node: Observed, resourceVersion: string, nowMs: number): void {
    node.resourceVersion = resourceVersion;
    // However old the change is, the node is given the benefit of the doubt, and the majority is not.
    node.silentFromMs = nowMs;
    if (node.isStale) {
      node.isStale = false;
      return;
    }
    if (node.heardMs === undefined || nowMs - node.heardMs >= this.#unavailableAfterMs) node.liveSinceMs = nowMs;
    node.heardMs = nowMs;
    this.#count(nowMs);
  }

  /** Notices that the majority was lost since the last call, however long ago that is. */
  #advance(nowMs: number): void {
    if (this.#majoritySinceMs === undefined || this.#majorityEndMs >= nowMs) return;
    this.#majoritySinceMs = undefined;
    for (const node of this.#nodes.values()) node.isStale = true;
  }

  #count(nowMs: number): void {
    const heard: number[] = [];
    for (const { role, heardMs } of this.#nodes.values()) if (role === 'Voter') heard.push(heardMs ?? -Infinity);
    const needed = Math.floor(heard.length / 2) + 1;
    this.#majorityEndMs = (heard.sort((a, b) => b - a)[needed - 1] ?? -Infinity) + this.#heardForMs();
    this.#advance(nowMs);
    if (this.#majoritySinceMs === undefined && this.#majorityEndMs >= nowMs) {
      // A majority speaks again: everybody's silence begins now.
      this.#majoritySinceMs = nowMs;
      for (const node of this.#nodes.values()) node.silentFromMs = nowMs;
    }
  }
}

function newcomer(role: Role, nowMs: number): Observed {
  return {
    role,
    resourceVersion: undefined,
    isStale: true,
    heardMs: undefined,
    liveSinceMs: nowMs,
    silentFromMs: nowMs,
    readSentMs: undefined,
    unchangedMs: undefined,
  };
}
