// The failure detector of one pool: decides from the changes of the nodes' Leases which nodes are live. Times are on the
// observer's own monotonic clock; the times inside a Lease are never used (docs/design/failover.md).

import { isNewer } from '../../base/kubernetes/resource-version.ts';
import type { LeaseView, Liveness, PoolView, Role } from './snapshot.ts';
import { electoratesOf, majorityOf } from './voters.ts';

/** A node counts as heard until more than this many renewals are missing. */
const HEARD_RENEWALS = 3;
/**
 * A renewal shows that the API server accepts renewals until the next one is due. A quarter more, because it may come later than
 * the one before it did.
 */
const SERVED_RENEWALS = 1.25;
/** Such a renewal may be this much late at any interval: the time that a watch needs does not depend on the interval. */
const SERVED_LATE_MS = 500;
/** After this many missing renewals the Lease is read directly, because the watch may be late or dead. */
const SUSPECT_RENEWALS = 2;
/** How often the Lease of an unavailable node is read, in addition to the watch. */
const UNAVAILABLE_READ_MS = 10_000;

type DetectorOptions = Pick<PoolView, 'unavailableAfterMs' | 'renewMs' | 'membership'>;

type Observed = {
  role: Role;
  /** Its recorder does not come back after it has ended. */
  isLeaving: boolean;
  resourceVersion: string | undefined;
  /** How often the node renews, according to its Lease; undefined until a recorder has renewed it. */
  renewMs: number | undefined;
  process: string | undefined;
  /** Its recorder has said that it ends. */
  isReleased: boolean;
  /** It was unavailable when the limits were changed, and has not been heard since. */
  isLost: boolean;
  /** No change was seen since the last time without a majority, so the next change may have happened during it. */
  isStale: boolean;
  /** When a change was last seen. */
  heardMs: number | undefined;
  /** When the node last became Live. */
  liveSinceMs: number;
  /**
   * The start of the silence after which the node counts as unavailable: its last change, or the end of a time without a
   * majority.
   */
  silentFromMs: number;
  /** The same start, moved on by the time in which the API server was not seen to accept renewals. */
  missingFromMs: number;
  readSentMs: number | undefined;
  /** When the last read was sent that found the Lease unchanged. */
  unchangedMs: number | undefined;
};

/**
 * Each node is judged by the interval that its own Lease announces, not by the one that the pool asks for: while the pool's values
 * change, some nodes follow later than others.
 *
 * The silence of a node counts only while a majority of the voters is heard. If the API server is down, refuses writes or is
 * cut off from every node, or if this process was frozen, no node is heard. All clocks then restart once a majority is heard
 * again, so that every node gets the full time once more. The first change of a node after such an outage, as after the start, is
 * no sign of life, because it may have happened earlier.
 *
 * A majority counts as heard for three renewals, so a shorter outage goes unnoticed by this rule. Therefore a node must also have
 * missed three of its own renewals while the majority was renewing: the time in which the API server accepts none is no silence.
 */
export class LivenessDetector {
  #options: DetectorOptions;
  readonly #nodes = new Map<string, Observed>();
  /** Since when a majority has been heard without interruption; undefined while there is none. */
  #majoritySinceMs: number | undefined;
  /** The time until which a majority of the voters counts as heard if no further change is seen. */
  #majorityEndMs = -Infinity;
  /** The time until which the renewals of a majority show that the API server accepts renewals. */
  #servedEndMs = -Infinity;
  #advancedMs = -Infinity;

  constructor(options: DetectorOptions) {
    this.#options = options;
  }

  /** `renewMs` is that of nodes whose Lease does not say how often they renew. */
  configure(options: DetectorOptions, nowMs: number): void {
    const { unavailableAfterMs, renewMs, membership } = this.#options;
    const isSame = unavailableAfterMs === options.unavailableAfterMs && renewMs === options.renewMs;
    if (isSame && membership === options.membership) return;
    this.#advance(nowMs);
    // A longer limit does not bring back a node that is lost already.
    for (const node of this.#nodes.values()) node.isLost ||= this.#isUnavailable(node);
    this.#options = options;
    this.#count(nowMs);
  }

  /** Sets the nodes of the pool. New nodes are Unknown; nodes that are gone are forgotten. */
  track(
    nodes: readonly { readonly name: string; readonly role: Role; readonly drain?: boolean }[],
    nowMs: number,
  ): void {
    this.#advance(nowMs);
    let isChanged = false;
    for (const { name, role, drain = false } of nodes) {
      const known = this.#nodes.get(name);
      if (known) known.isLeaving = drain;
      if (known?.role === role) continue;
      if (known) known.role = role;
      else this.#nodes.set(name, newcomer(role, drain, nowMs));
      isChanged = true;
    }
    if (this.#nodes.size > nodes.length) {
      const there = new Set(nodes.map(({ name }) => name));
      for (const name of this.#nodes.keys()) if (!there.has(name)) this.#nodes.delete(name);
      isChanged = true;
    }
    if (isChanged) this.#count(nowMs);
  }

  /** A watch or a list from a cache shows the Lease at this version. The first version seen is no sign of life. */
  saw(name: string, lease: LeaseView, nowMs: number): void {
    const node = this.#nodes.get(name);
    if (!node) return;
    this.#advance(nowMs);
    if (node.resourceVersion === undefined || isNewer(lease.resourceVersion, node.resourceVersion)) {
      this.#changed(node, lease, nowMs);
    }
  }

  /**
   * Records the response of the API server itself (a read without `resourceVersion`) to a request sent at `sentMs`; undefined
   * means that there is no such Lease. Not called for failed requests.
   */
  read(name: string, lease: LeaseView | undefined, sentMs: number, nowMs: number): void {
    const node = this.#nodes.get(name);
    if (!node) return;
    this.#advance(nowMs);
    const last = node.resourceVersion;
    if (lease === undefined || lease.resourceVersion === last) {
      node.unchangedMs = sentMs;
    } else if (last === undefined || isNewer(lease.resourceVersion, last) || (node.heardMs ?? 0) <= sentMs) {
      // Older than what was seen before the request: the API server was restored from a backup.
      this.#changed(node, lease, nowMs);
    }
  }

  /** Returns the Leases to read now, and counts them as requested; a Lease without a response is returned again later. */
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

  /** The milliseconds after which `reads` or `liveness` can change even if nothing is seen. */
  nextMs(nowMs: number): number {
    this.#advance(nowMs);
    let next = Infinity;
    for (const node of this.#nodes.values()) {
      next = Math.min(next, this.#readDueMs(node, nowMs));
      if (node.heardMs === undefined) continue;
      for (const end of [this.#heardForMs(node), this.#lostAfterMs(node)]) {
        if (node.heardMs + end > nowMs) next = Math.min(next, node.heardMs + end);
      }
    }
    return Math.max(0, next - nowMs);
  }

  liveness(name: string, nowMs: number): Liveness {
    this.#advance(nowMs);
    const node = this.#nodes.get(name);
    if (!node)
      return { state: 'Unknown', heard: false, silentMs: undefined, liveForMs: 0, renewMs: this.#options.renewMs };
    const renewMs = this.#renewMsOf(node);
    const silentMs = node.heardMs === undefined ? undefined : nowMs - node.heardMs;
    if (this.#hasEnded(node) && this.#isUnavailable(node))
      return { state: 'Unavailable', heard: false, silentMs, liveForMs: 0, renewMs, isReleased: true };
    if (silentMs !== undefined && silentMs < this.#lostAfterMs(node) && !node.isLost) {
      const heard = silentMs <= this.#heardForMs(node);
      return { state: 'Live', heard, silentMs, liveForMs: nowMs - node.liveSinceMs, renewMs };
    }
    const state = this.#isUnavailable(node) ? 'Unavailable' : 'Unknown';
    return { state, heard: false, silentMs, liveForMs: 0, renewMs, ...(node.isReleased && { isReleased: true }) };
  }

  /** The process that renewed the Lease of the node last. */
  processOf(name: string): string | undefined {
    return this.#nodes.get(name)?.process;
  }

  /** A string that changes when the state of any node does, or its process: a new plan is then due. */
  summary(nowMs: number): string {
    let summary = this.majoritySinceMs(nowMs) === undefined ? '' : 'majority ';
    for (const name of this.#nodes.keys()) {
      const { state, heard } = this.liveness(name, nowMs);
      summary += `${heard ? 'heard' : state} ${this.processOf(name) ?? ''} `;
    }
    return summary;
  }

  /** Since when a majority of the voters has been heard without interruption; undefined while it is not. */
  majoritySinceMs(nowMs: number): number | undefined {
    this.#advance(nowMs);
    return this.#majoritySinceMs;
  }

  #isUnavailable(node: Observed): boolean {
    if (this.#majoritySinceMs === undefined) return false;
    if (this.#hasEnded(node)) return true;
    return node.isLost || (node.unchangedMs !== undefined && node.unchangedMs >= this.#condemnedFromMs(node));
  }

  /** A recorder that says so may be starting again; that of a node that is left is not. */
  #hasEnded({ isReleased, isLeaving }: Observed): boolean {
    return isReleased && isLeaving;
  }

  /** A read that was sent then, or later, and finds the Lease unchanged shows that the node is unavailable. */
  #condemnedFromMs(node: Observed): number {
    return Math.max(node.silentFromMs + this.#lostAfterMs(node), node.missingFromMs + this.#heardForMs(node));
  }

  #renewMsOf({ renewMs = this.#options.renewMs }: Observed): number {
    return renewMs;
  }

  #heardForMs(node: Observed): number {
    return HEARD_RENEWALS * this.#renewMsOf(node);
  }

  /** As the schema of a pool demands, never shorter than three renewals. */
  #lostAfterMs(node: Observed): number {
    return Math.max(this.#options.unavailableAfterMs, this.#heardForMs(node));
  }

  #readDueMs(node: Observed, nowMs: number): number {
    const renewMs = this.#renewMsOf(node);
    const againMs = (node.readSentMs ?? -Infinity) + renewMs / 2;
    if (this.#isUnavailable(node)) return (node.readSentMs ?? nowMs) + UNAVAILABLE_READ_MS;
    const condemnedMs = this.#condemnedFromMs(node);
    // Exactly at this time, whenever the last read was, so that failover is not delayed.
    if (nowMs >= condemnedMs && (node.readSentMs ?? -Infinity) < condemnedMs) return condemnedMs;
    const suspectMs = (node.heardMs ?? node.silentFromMs) + SUSPECT_RENEWALS * renewMs;
    const dueMs = Math.max(suspectMs, againMs);
    return nowMs < condemnedMs ? Math.min(dueMs, condemnedMs) : dueMs;
  }

  #changed(node: Observed, lease: LeaseView, nowMs: number): void {
    const { resourceVersion, renewMs, process, isReleased = false } = lease;
    node.isReleased = isReleased;
    if (isReleased) {
      // No sign of life, but until now it lived: a renewal before it may not have been seen.
      node.resourceVersion = resourceVersion;
      node.silentFromMs = nowMs;
      node.missingFromMs = nowMs;
      return;
    }
    const wasAway = node.heardMs === undefined || node.isLost || nowMs - node.heardMs >= this.#lostAfterMs(node);
    node.resourceVersion = resourceVersion;
    node.renewMs = renewMs;
    node.process = process;
    node.isLost = false;
    // The change may be old. The node gets the benefit of the doubt; the majority does not.
    node.silentFromMs = nowMs;
    node.missingFromMs = nowMs;
    if (node.isStale) {
      node.isStale = false;
      return;
    }
    if (wasAway) node.liveSinceMs = nowMs;
    node.heardMs = nowMs;
    this.#count(nowMs);
  }

  /** Detects that renewals or the majority were missing since the last call, however long ago. */
  #advance(nowMs: number): void {
    const unservedMs = nowMs - Math.max(this.#advancedMs, this.#servedEndMs);
    this.#advancedMs = nowMs;
    if (this.#majoritySinceMs === undefined) return;
    if (this.#majorityEndMs < nowMs) {
      this.#majoritySinceMs = undefined;
      for (const node of this.#nodes.values()) node.isStale = true;
    } else if (unservedMs > 0) {
      for (const node of this.#nodes.values()) if (!this.#isUnavailable(node)) node.missingFromMs += unservedMs;
    }
  }

  #count(nowMs: number): void {
    const groups = electoratesOf(
      [...this.#nodes.values()],
      ({ role }) => role === 'Voter',
      ({ heardMs }) => heardMs !== undefined,
      this.#options,
    );
    const endMs = (shownForMs: (renewMs: number) => number): number => {
      const endOf = (voters: readonly Observed[]): number => {
        const needed = majorityOf(voters.length, this.#options);
        const ends = voters.map((node) => (node.heardMs ?? -Infinity) + shownForMs(this.#renewMsOf(node)));
        return ends.sort((a, b) => b - a)[needed - 1] ?? -Infinity;
      };
      return Math.max(...groups.map(endOf));
    };
    this.#majorityEndMs = endMs((renewMs) => HEARD_RENEWALS * renewMs);
    this.#servedEndMs = endMs((renewMs) => Math.max(SERVED_RENEWALS * renewMs, renewMs + SERVED_LATE_MS));
    this.#advance(nowMs);
    if (this.#majoritySinceMs === undefined && this.#majorityEndMs >= nowMs) {
      // A majority is heard again: the silence of every node starts now.
      this.#majoritySinceMs = nowMs;
      for (const node of this.#nodes.values()) {
        node.silentFromMs = nowMs;
        node.missingFromMs = nowMs;
        node.isLost = false;
      }
    }
  }
}

function newcomer(role: Role, isLeaving: boolean, nowMs: number): Observed {
  return {
    role,
    isLeaving,
    resourceVersion: undefined,
    renewMs: undefined,
    process: undefined,
    isReleased: false,
    isLost: false,
    isStale: true,
    heardMs: undefined,
    liveSinceMs: nowMs,
    silentFromMs: nowMs,
    missingFromMs: nowMs,
    readSentMs: undefined,
    unchangedMs: undefined,
  };
}
