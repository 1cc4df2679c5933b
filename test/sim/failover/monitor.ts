// Sees everything that really happens, which no process in the simulation can, and says when it must not have.
// The invariants are those of docs/design/failover.md.

import type { AssignmentWrite, CameraView, NodeView, PoolView, Snapshot } from '../../../operator/plan/snapshot.ts';
import { NO_PROCESS, renewMsOf } from '../../../crds/renewal.ts';
import type { ApiServer, Kind, LeaseView } from './api-server.ts';
import { Footage } from './footage.ts';
import { POOL } from './kubernetes.ts';
import type { Process, Timeline } from './world.ts';

export class Violation extends Error {}

type Move = {
  readonly atMs: number;
  readonly camera: string;
  readonly from: string;
  readonly to: string;
  readonly reason: string;
};

export type Limits = {
  readonly unavailableAfterMs: number;
  readonly renewMs: number;
  /** How old news of a node can be that an operator acts on: watches stall. */
  readonly newsMs: number;
};

/** Clocks of processes run up to 0.1 % fast. */
const CLOCK_TOLERANCE = 0.998;
/** After a fault a recorder connects again within this time. */
const CONNECT_MS = 5_000;
/** Two nodes record a camera no longer than this once everything works. */
const DOUBLE_MS = 5_000;

/** So long a voter counts as heard, from the news of its last renewal. */
const HEARD_RENEWALS = 3;

/** After this time a recorder gives up a renewal, and tries again at once. */
const RENEW_TIMEOUT_MS = 2_500;
/** A read and a write of the Lease that are answered take less. */
const RENEWAL_MS = 500;

/** What a recorder has received and not written when it dies. */
export const UNWRITTEN_MS = 900;

const PLANNED = ['Drain', 'Failback', 'Preferred', 'Ineligible'];

export class Monitor {
  readonly footage = new Footage();
  readonly moves: Move[] = [];
  readonly writers = new Map<string, Map<string, number>>();
  /** When a camera was first written by this node after it was moved there. */
  readonly firstWritten = new Map<string, number>();
  /** Last sign of life of each node: a change of its Lease that was committed. */
  readonly signs = new Map<string, number>();
  readonly renewals = new Map<string, number>();
  /** When the recorder of a node said that it ends, and has not renewed since. */
  readonly releasedMs = new Map<string, number>();
  readonly #resumedMs = new Map<string, number>();
  readonly #undrainedMs = new Map<string, number>();
  /** When each node spoke again after a silence that condemns it. */
  readonly #returnedMs = new Map<string, number>();
  /** What the network lost of each node's requests for its Lease since its last sign of life. */
  readonly #losses = new Map<string, { readonly isAnswered: boolean; readonly count: number }>();
  /** When each node renewed after a silence in which it did not count as heard: the operator learns of it a little later. */
  readonly #heardAgainMs = new Map<string, number>();
  /** The network lost so many renewals that the operator may have no majority, and it has had none since. */
  #isMajorityLost = false;
  /** Signs of life since then. */
  readonly #signsSinceLoss = new Map<string, readonly number[]>();
  /** Cameras that were taken from a live node, rightly: of its renewals, the network lost as many in a row as its limit covers. */
  readonly lostByNetwork = new Set<string>();
  /** Nothing befalls any node but the loss of single requests: failover must not be suspended. */
  mustHaveMajority = false;
  #poolBefore: PoolView | undefined;
  #poolChangedMs = -Infinity;
  /** Everything works since then; undefined: it does not. */
  healthySinceMs: number | undefined;
  readonly #timeline: Timeline;
  readonly #api: ApiServer;
  readonly #limits: Limits;
  readonly #processes: ReadonlyMap<string, Process>;
  readonly #disturbedMs = new Map<string, number>();
  readonly #owners = new Map<string, string>();
  readonly #highest = new Map<string, number>();
  /** When a camera was suspended or was no longer: a recorder stops or starts it before the operator takes note. */
  readonly #suspendedMs = new Map<string, number>();
  readonly #assignedMs = new Map<string, number>();
  readonly #doubleSinceMs = new Map<string, number>();
  readonly #startedRecording = new Set<string>();

  constructor(timeline: Timeline, api: ApiServer, processes: ReadonlyMap<string, Process>, limits: Limits) {
    this.#timeline = timeline;
    this.#api = api;
    this.#processes = processes;
    this.#limits = limits;
    api.onChange = (kind, before, after) => this.#changed(kind, before, after);
  }

  /** A fault befell this process, or ended. */
  disturbed(name: string): void {
    this.#disturbedMs.set(name, this.#timeline.nowMs);
  }

  // ── assignments ──

  #changed(kind: Kind, before: unknown, after: unknown): void {
    if (kind === 'Lease') {
      const { name, holder } = after as LeaseView;
      if (holder === '') return;
      if (holder.endsWith(NO_PROCESS)) return void this.releasedMs.set(name, this.#timeline.nowMs);
      if (this.#isCondemned(name)) this.#returnedMs.set(name, this.#timeline.nowMs);
      const renewMs = renewMsOf((before as LeaseView | undefined)?.leaseDurationSeconds) ?? this.#limits.renewMs;
      if (this.#silentMs(name) >= HEARD_RENEWALS * renewMs) this.#heardAgainMs.set(name, this.#timeline.nowMs);
      this.signs.set(name, this.#timeline.nowMs);
      if (this.releasedMs.delete(name)) this.#resumedMs.set(name, this.#timeline.nowMs);
      if (this.#isMajorityLost)
        this.#signsSinceLoss.set(name, [...(this.#signsSinceLoss.get(name) ?? []), this.#timeline.nowMs]);
      this.#losses.delete(name);
      this.renewals.set(name, (this.renewals.get(name) ?? 0) + 1);
    } else if (kind === 'RecorderNode') {
      const [node, now] = [before as NodeView | undefined, after as NodeView | undefined];
      if (node?.drain === true && now?.drain !== true) this.#undrainedMs.set(node.name, this.#timeline.nowMs);
    } else if (kind === 'RecorderPool') {
      this.#poolBefore = (before as PoolView | undefined) ?? (after as PoolView);
      this.#poolChangedMs = this.#timeline.nowMs;
    } else if (kind === 'Camera') this.#assigned(before as CameraView | undefined, after as CameraView | undefined);
  }

  #assigned(before: CameraView | undefined, after: CameraView | undefined): void {
    if (after && before?.suspend !== after.suspend) this.#suspendedMs.set(after.name, this.#timeline.nowMs);
    const old = before?.assignment;
    const now = after?.assignment;
    if (!after || !now) return;
    if (old && now.epoch < old.epoch) this.#fail(`epoch of ${after.name} fell from ${old.epoch} to ${now.epoch}`);
    if (now.node === undefined || (now.node === old?.node && now.epoch === old.epoch)) return;
    this.#owns(after.uid, after.name, now.epoch, now.node);
    this.#assignedMs.set(after.name, this.#timeline.nowMs);
    if (old?.node === undefined || old.node === now.node) return;
    this.moves.push({
      atMs: this.#timeline.nowMs,
      camera: after.name,
      from: old.node,
      to: now.node,
      reason: now.reason,
    });
  }

  /** At most one owner an epoch: in the API server, and in what is written to disks. */
  #owns(uid: string, camera: string, epoch: number, node: string): void {
    const key = `${uid}@${epoch}`;
    const owner = this.#owners.get(key) ?? node;
    if (owner !== node) this.#fail(`${camera} has two owners in epoch ${epoch}: ${owner} and ${node}`);
    this.#owners.set(key, node);
  }

  /** An operator sends a write. */
  decides(
    operator: Process,
    { camera, assignment, fromEpoch }: Pick<AssignmentWrite, 'camera' | 'assignment' | 'fromEpoch'>,
  ): void {
    const now = this.#api.all('Camera').get(camera)?.assignment;
    if (assignment.node === undefined || assignment.node === now?.node) return;
    // What is planned on an old epoch will be refused.
    if (fromEpoch !== (now?.epoch ?? 0)) return;
    const { newsMs } = this.#limits;
    const isAutomatic = this.#api.all('RecorderPool').get(POOL)?.membership === 'Automatic';
    const nodes = [...this.#api.all('RecorderNode').values()];
    const votes = nodes.filter(({ role }) => role === 'Voter');
    // Beside the first vote that the operator gave, all nodes decide.
    const voters = votes.length === 1 && isAutomatic ? nodes : votes;
    const live = voters.filter(
      ({ name }) => this.#silentMs(name) < Math.max(this.limitMs(name), HEARD_RENEWALS * this.#renewMs(name) + newsMs),
    );
    // With two voters that the operator chose, the API server is the third.
    const isPair = voters.length === 2 && isAutomatic;
    if (2 * live.length + (isPair ? 1 : 0) <= voters.length) {
      this.#fail(`${operator.name} moves ${camera} with ${live.length} of ${voters.length} voters live`);
    }
    if (assignment.reason !== 'NodeUnavailable') return;
    if (now?.node === undefined) return;
    this.#condemns(now.node, camera);
    if (!this.#canRenew(now.node, this.limitMs(now.node))) this.lostByNetwork.add(camera);
  }

  #condemns(node: string, camera: string): void {
    if (!this.#wasCondemned(node)) this.#fail(`${camera} leaves ${node}, silent for ${this.#silentMs(node)} ms`);
  }

  /** Now, or so lately that an operator may not know that it is back. */
  #wasCondemned(node: string): boolean {
    const isJustBack = this.#timeline.nowMs - (this.#returnedMs.get(node) ?? -Infinity) <= this.#limits.newsMs;
    return this.#isCondemned(node) || isJustBack;
  }

  #isCondemned(node: string): boolean {
    // An operator may not know yet that the recorder has started again.
    const isNews = this.#timeline.nowMs - (this.#resumedMs.get(node) ?? -Infinity) <= this.#limits.newsMs;
    const hasEnded = (this.releasedMs.has(node) || isNews) && this.#isDrained(node);
    return hasEnded || this.#silentMs(node) >= this.limitMs(node) * CLOCK_TOLERANCE;
  }

  /** Or was until a moment ago. */
  #isDrained(node: string): boolean {
    const sinceMs = this.#timeline.nowMs - (this.#undrainedMs.get(node) ?? -Infinity);
    return this.#api.all('RecorderNode').get(node)?.drain === true || sinceMs <= this.#limits.newsMs;
  }

  /** The silence after which this node counts as lost. A changed pool is known a little later. */
  limitMs(node: string): number {
    const { unavailableAfterMs } = this.#api.all('RecorderPool').get(POOL) ?? this.#limits;
    const isNews = this.#timeline.nowMs - this.#poolChangedMs < this.#limits.newsMs;
    const before = isNews ? (this.#poolBefore?.unavailableAfterMs ?? Infinity) : Infinity;
    return Math.max(Math.min(unavailableAfterMs, before), HEARD_RENEWALS * this.#renewMs(node));
  }

  #renewMs(node: string): number {
    return renewMsOf(this.#api.all('Lease').get(node)?.leaseDurationSeconds) ?? this.#limits.renewMs;
  }

  /** The network lost a request of this node for its Lease, or the reply. */
  renewalLost(node: string): void {
    const isAnswered = this.signs.get(node) !== this.#timeline.nowMs;
    const before = this.#losses.get(node) ?? { isAnswered, count: 0 };
    this.#losses.set(node, { ...before, count: before.count + 1 });
  }

  /** The leading operator has made a plan. */
  planned(operator: Process, { majorityForMs }: Snapshot): void {
    if (majorityForMs > 0) this.#isMajorityLost = false;
    if (majorityForMs > 0 || !this.mustHaveMajority) return;
    const voters = [...this.#api.all('RecorderNode').values()].filter(({ role }) => role === 'Voter');
    const { nowMs } = this.#timeline;
    const isNews = (name: string): boolean => nowMs - (this.#heardAgainMs.get(name) ?? -Infinity) < this.#limits.newsMs;
    const able = voters.filter(
      ({ name }) => this.#canRenew(name, HEARD_RENEWALS * this.#renewMs(name)) && !isNews(name),
    );
    const isLost = 2 * able.length <= voters.length;
    if (isLost) this.#signsSinceLoss.clear();
    this.#isMajorityLost ||= isLost;
    // The first sign after a time without a majority may be older: a node counts from its second one.
    const heard = able.filter(
      ({ name }) =>
        !this.#isMajorityLost || (this.#signsSinceLoss.get(name)?.[1] ?? Infinity) < nowMs - this.#limits.newsMs,
    );
    if (2 * heard.length > voters.length) this.#fail(`${operator.name} hears no majority`);
  }

  /**
   * Whether a node that does what it should renews within this time of its last sign of life, in spite of what the network lost.
   * Each loss costs it the time limit of a request: with an interval of two seconds, two lost requests in a row take longer
   * than three renewals (2 + 2 * 2.5 s), and the operator is right not to count on the node. A renewal that was carried out and
   * not answered is tried again after the time limit, without the interval, so there a second loss is not too many (2 * 2.5 s).
   */
  #canRenew(node: string, withinMs: number): boolean {
    const renewMs = this.#renewMs(node);
    const { isAnswered, count } = this.#losses.get(node) ?? { isAnswered: true, count: 0 };
    return (isAnswered ? renewMs : 0) + count * RENEW_TIMEOUT_MS + RENEWAL_MS < withinMs;
  }

  #silentMs(node: string): number {
    return this.#timeline.nowMs - (this.signs.get(node) ?? -Infinity);
  }

  // ── recordings ──

  /**
   * A recorder starts with what its disk has. The recorder has forgotten the epoch of a camera that it gave up. Only a list of an
   * earlier state could bring that epoch back, and an API server gives such a list only to a client that asks for it.
   */
  starts(recorder: Process, kept: ReadonlySet<string>): void {
    for (const key of this.#highest.keys()) {
      const [name, uid = ''] = key.split('/');
      if (name === recorder.name && !kept.has(uid)) this.#highest.delete(key);
    }
  }

  /** The recorder learns that it is the owner under this epoch. */
  sawEpoch(recorder: Process, camera: string, uid: string, epoch: number): void {
    const key = `${recorder.name}/${uid}`;
    const highest = this.#highest.get(key) ?? 0;
    if (epoch < highest) this.#fail(`${recorder.name} takes ${camera} in epoch ${epoch} after ${highest}`);
    this.#highest.set(key, epoch);
  }

  /** A key frame of the camera is in a file, under this epoch. */
  writes(recorder: Process, camera: string, uid: string, epoch: number): void {
    const highest = this.#highest.get(`${recorder.name}/${uid}`) ?? 0;
    if (epoch < highest) this.#fail(`${recorder.name} writes ${camera} under epoch ${epoch} after ${highest}`);
    this.#owns(uid, camera, epoch, recorder.name);
    const writers = this.writers.get(camera) ?? new Map<string, number>();
    this.writers.set(camera, writers.set(recorder.name, epoch));
    this.#startedRecording.add(`${recorder.name}/${uid}@${epoch}`);
    const key = `${camera}>${recorder.name}`;
    if (!this.firstWritten.has(key)) this.firstWritten.set(key, this.#timeline.nowMs);
  }

  stopped(recorder: Process, camera: string, uid: string, why: 'told' | 'suspended' | 'killed'): void {
    const writers = this.writers.get(camera);
    const wasWriting = writers?.delete(recorder.name) === true;
    const truth = this.#api.all('Camera').get(camera);
    const assignment = truth?.assignment;
    // One that was deleted is stopped, also when there is another of its name by now.
    if (why === 'killed' || truth?.uid !== uid || truth.suspend || !assignment?.node) return;
    // Recorders follow the suspension of a camera by themselves and in its order, but the watch may be late: it may be over by
    // then, before the operator took note of it, so that the same assignment is in force. The next event starts the camera.
    if (why === 'suspended' && (this.#wasSuspended(camera) || this.#isDisturbed(recorder.name, CONNECT_MS))) return;
    if (assignment.node === recorder.name && this.#sinceAssignedMs(camera) > CONNECT_MS) {
      this.#fail(`${recorder.name} stops ${camera}, which is its own`);
    }
    if (!wasWriting || this.activeWriters(camera).length > 0) return;
    // Of two handovers in a row, the first may have been to a node that died before anybody could know.
    const { node, previousNode = node } = assignment;
    // The network lost the renewals of this recorder for so long that the operator was right not to wait for the next one.
    const isExplained =
      [node, previousNode, recorder.name].some((name) => this.#isDisturbed(name)) || this.#wasCondemned(recorder.name);
    if (PLANNED.includes(assignment.reason) && !isExplained) {
      this.#fail(`nobody records ${camera} after ${recorder.name} handed it over to ${assignment.node}`);
    }
  }

  activeWriters(camera: string): string[] {
    return [...(this.writers.get(camera)?.keys() ?? [])].filter((name) => this.#isRunning(name));
  }

  /** To be called once a second. */
  sample(): void {
    for (const { name, uid, suspend, assignment } of this.#api.all('Camera').values()) {
      const writers = this.activeWriters(name);
      const owner = assignment?.node;
      const isToldToStop = suspend || this.#wasSuspended(name);
      if (
        !isToldToStop &&
        owner !== undefined &&
        !writers.includes(owner) &&
        this.#hasHadIt(owner, uid, assignment?.epoch ?? 0)
      ) {
        this.#fail(`${owner} runs and does not record ${name}, which it had taken up`);
      }
      const canKnow = writers.every((writer) => this.#processes.get(writer)?.isCut === false);
      const isDouble = writers.length > 1 && canKnow && assignment?.handover !== 'Pending';
      if (!isDouble || this.healthySinceMs === undefined) this.#doubleSinceMs.delete(name);
      else {
        const sinceMs = this.#doubleSinceMs.get(name) ?? this.#timeline.nowMs;
        this.#doubleSinceMs.set(name, sinceMs);
        if (this.#timeline.nowMs - sinceMs > DOUBLE_MS) this.#fail(`${name} is recorded by ${writers.join(' and ')}`);
      }
    }
  }

  /** Long after the last fault: every camera is recorded by its owner and nobody else, and nothing is under way. */
  settled(nodes: ReadonlyMap<string, NodeView>, maxCamerasPerNode: number): void {
    const loads = new Map<string, number>();
    for (const { name, suspend, assignment } of this.#api.all('Camera').values()) {
      const writers = this.activeWriters(name);
      if (suspend) {
        if (assignment?.node !== undefined || writers.length > 0) this.#fail(`${name} is suspended and recorded`);
        continue;
      }
      const owner = assignment?.node;
      const epoch = owner === undefined ? undefined : this.writers.get(name)?.get(owner);
      if (owner === undefined || writers.length !== 1 || writers[0] !== owner || epoch !== assignment?.epoch) {
        this.#fail(
          `${name} is recorded by [${writers.join()}] (epoch ${epoch}), assigned ${JSON.stringify(assignment)}`,
        );
      }
      if (assignment?.handover === 'Pending') this.#fail(`the handover of ${name} does not end`);
      if (nodes.get(owner)?.drain) this.#fail(`${name} stays on ${owner}, which is drained`);
      loads.set(owner, (loads.get(owner) ?? 0) + 1);
    }
    for (const [node, load] of loads) {
      if (load > maxCamerasPerNode) this.#fail(`${node} has ${load} cameras, ${maxCamerasPerNode} are allowed`);
    }
  }

  /** All of each camera since then is on some disk, up to what is just being written. */
  complete(sinceMs: number): void {
    for (const { name } of this.#api.all('Camera').values()) {
      const [hole] = this.footage.missing(name, sinceMs, this.#timeline.nowMs - UNWRITTEN_MS);
      if (!hole) continue;
      const times = [hole.fromMs, hole.toMs].map((ms) => (ms / 1_000).toFixed(3)).join(' to ');
      this.#fail(`${name} is missing from ${times} s`);
    }
  }

  fail(message: string): never {
    return this.#fail(message);
  }

  #fail(message: string): never {
    throw new Violation(`at ${(this.#timeline.nowMs / 1_000).toFixed(3)} s: ${message}`);
  }

  /** It wrote the camera under this epoch before, and nothing has hindered it for some seconds. */
  #hasHadIt(node: string, uid: string, epoch: number): boolean {
    if (!this.#isRunning(node) || this.#isDisturbed(node, CONNECT_MS)) return false;
    return this.#startedRecording.has(`${node}/${uid}@${epoch}`);
  }

  #isRunning(name: string): boolean {
    const process = this.#processes.get(name);
    return process !== undefined && process.isUp && !process.isFrozen;
  }

  #isDisturbed(name: string, forMs = 20_000): boolean {
    return !this.#isRunning(name) || this.#timeline.nowMs - (this.#disturbedMs.get(name) ?? -Infinity) < forMs;
  }

  /** So lately that a recorder may still hear of it, or be about to start the camera again. */
  #wasSuspended(camera: string): boolean {
    return this.#timeline.nowMs - (this.#suspendedMs.get(camera) ?? -Infinity) < CONNECT_MS + this.#limits.newsMs;
  }

  #sinceAssignedMs(camera: string): number {
    return this.#timeline.nowMs - (this.#assignedMs.get(camera) ?? -Infinity);
  }
}
