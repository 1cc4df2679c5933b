// Changes of `renewSeconds` and `unavailableAfterSeconds`, in any order and at any size, as the failure detector and the
// roll-out see them: some nodes follow soon, some late, and some only when their pod is replaced.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { MAX_RENEW_SECONDS } from '../../crds/renewal.ts';
import { Random } from './failover/world.ts';
import { newSeed } from '../support/random.ts';
import { LONG } from '../support/variant.ts';
import { LivenessDetector } from '../../operator/plan/liveness.ts';
import { planRollout, type RolloutNode, type RolloutPod } from '../../operator/plan/rollout.ts';

type Values = { readonly renewMs: number; readonly unavailableAfterMs: number };

const valuesOf = (renewSeconds: number, unavailableAfterSeconds: number): Values => ({
  renewMs: renewSeconds * 1_000,
  unavailableAfterMs: unavailableAfterSeconds * 1_000,
});
const DEFAULTS = valuesOf(2, 15);
const STEP_MS = 1_000;
/** A new pod is ready this soon. */
const START_MS = 4_000;
/** Most of the time that a watch needs. */
const NEWS_MS = 500;

interface Node {
  readonly name: string;
  readonly role: 'Voter' | 'Learner';
  /** What the node renews at, and its Lease says. */
  renewMs: number;
  version: number;
  isDead: boolean;
  /** How long after a change of the pool it follows; undefined: when its pod is replaced. */
  followsAfterMs: number | undefined;
  isCurrent: boolean;
  isReady: boolean;
  updatingSinceMs: number | undefined;
  isDrained: boolean;
  timer: { cancel(): void } | undefined;
}

class World {
  readonly clock = new VirtualClock();
  readonly detector: LivenessDetector;
  readonly nodes: readonly Node[];
  readonly random: Random;
  #values: Values;
  /** Nodes that were said to be unavailable. */
  readonly lost = new Map<string, number>();
  withoutMajorityMs = 0;

  constructor(seed: number, count: number, values: Values, follow: (random: Random) => number | undefined) {
    this.random = new Random(seed);
    this.#values = values;
    this.detector = new LivenessDetector({ ...values, membership: 'Automatic' });
    const voters = Math.min(7, count % 2 === 0 ? count - 1 : count);
    this.nodes = Array.from({ length: count }, (_, i) => ({
      name: `n${i}`,
      role: i < voters ? 'Voter' : 'Learner',
      renewMs: values.renewMs,
      version: 1,
      isDead: false,
      followsAfterMs: follow(this.random),
      isCurrent: true,
      isReady: true,
      updatingSinceMs: undefined,
      isDrained: false,
      timer: undefined,
    }));
    this.detector.track(this.nodes, this.nowMs);
    for (const node of this.nodes) this.#renewAfter(node, this.random.between(0, node.renewMs));
  }

  get nowMs(): number {
    return this.clock.monotonicMs();
  }

  /** The pool is changed: the operator knows it at once. */
  change(values: Values): void {
    this.#values = values;
    this.detector.configure({ ...values, membership: 'Automatic' }, this.nowMs);
    for (const node of this.nodes) {
      if (node.followsAfterMs === undefined) continue;
      this.clock.after(node.followsAfterMs, () => this.#follow(node, values));
    }
  }

  #follow(node: Node, values: Values): void {
    if (values !== this.#values || node.isDead || !node.isReady) return;
    node.renewMs = values.renewMs;
    this.#renewAfter(node, 0);
  }

  #renewAfter(node: Node, delayMs: number): void {
    node.timer?.cancel();
    node.timer = this.clock.after(delayMs, () => {
      if (node.isDead || !node.isReady) return;
      node.version += 1;
      const lease = this.#lease(node);
      this.clock.after(this.random.between(0, NEWS_MS), () => this.detector.saw(node.name, lease, this.nowMs));
      this.#renewAfter(node, node.renewMs);
    });
  }

  #lease = ({ version, renewMs }: Node) => ({ resourceVersion: String(version), renewMs });

  pass(ms: number, each: () => void = () => {}): void {
    for (const endMs = this.nowMs + ms; this.nowMs < endMs;) {
      this.clock.advance(STEP_MS);
      for (const name of this.detector.reads(this.nowMs)) {
        const node = this.nodes.find((one) => one.name === name) as Node;
        this.detector.read(name, this.#lease(node), this.nowMs, this.nowMs);
      }
      if (this.detector.majoritySinceMs(this.nowMs) === undefined) this.withoutMajorityMs += STEP_MS;
      for (const { name } of this.nodes) {
        const { state } = this.detector.liveness(name, this.nowMs);
        if (state === 'Unavailable' && !this.lost.has(name)) this.lost.set(name, this.nowMs);
      }
      each();
    }
  }

  /** Every node has been heard twice. */
  warmUp(): void {
    this.pass(2 * this.#values.renewMs + STEP_MS);
    this.withoutMajorityMs = 0;
  }

  /** Replaces all pods; returns after how long the first turn began and the last one ended. */
  rollOut(limitMs: number): { readonly beganMs: number | undefined; readonly endedMs: number | undefined } {
    for (const node of this.nodes) node.isCurrent = false;
    const startMs = this.nowMs;
    let beganMs: number | undefined;
    let endedMs: number | undefined;
    this.pass(limitMs, () => {
      if (endedMs !== undefined) return;
      const { step, condition } = planRollout({
        type: 'Rolling',
        drain: true,
        maxUnavailable: 1,
        stalledForMs: 0,
        progressDeadlineMs: 600_000,
        leader: 'n0',
        nodes: this.nodes.map((node) => this.#rolloutNode(node)),
        pods: this.nodes.map((node) => podOf(node)),
      });
      if (condition.reason === 'UpToDate') endedMs = this.nowMs - startMs;
      if (step.kind === 'none') return;
      beganMs ??= this.nowMs - startMs;
      this.#take(step);
    });
    return { beganMs, endedMs };
  }

  #take(step: ReturnType<typeof planRollout>['step']): void {
    if (step.kind === 'none') return;
    const node = this.nodes.find(({ name }) => name === step.node) as Node;
    if (step.kind === 'begin') Object.assign(node, { updatingSinceMs: this.nowMs, isDrained: step.drain });
    if (step.kind === 'end') Object.assign(node, { updatingSinceMs: undefined, isDrained: false });
    if (step.kind !== 'delete') return;
    Object.assign(node, { isCurrent: true, isReady: false });
    this.clock.after(START_MS, () => {
      Object.assign(node, { isReady: true, renewMs: this.#values.renewMs });
      this.#renewAfter(node, 0);
    });
  }

  #rolloutNode({ name, role, updatingSinceMs, isDrained }: Node): RolloutNode {
    return {
      name,
      isOnline: this.detector.liveness(name, this.nowMs).heard,
      isReachable: true,
      lostForMs: this.detector.liveness(name, this.nowMs).state === 'Unavailable' ? 0 : undefined,
      fault: undefined,
      isVoter: role === 'Voter',
      updatingForMs: updatingSinceMs === undefined ? undefined : this.nowMs - updatingSinceMs,
      isDrained,
      cameras: isDrained ? 0 : 5,
    };
  }
}

const podOf = ({ name, isCurrent, isReady }: Node): RolloutPod => ({
  name: `p-${name}`,
  node: name,
  isCurrent,
  isReady,
  isTerminating: false,
  hasStarted: isReady,
  problem: undefined,
  unscheduled: undefined,
  notReadyForMs: isReady ? 0 : 1,
});

const SEEDS = LONG ? 200 : 10;
const base = Number(process.env['SEED'] ?? newSeed());
const seedsOf = (count: number): number[] =>
  process.env['SEED'] === undefined ? Array.from({ length: count }, (_, i) => base + i) : [base];

for (const [count, from, to] of [
  [3, valuesOf(20, 60), DEFAULTS],
  [5, valuesOf(20, 60), DEFAULTS],
  [10, valuesOf(20, 60), DEFAULTS],
  [10, valuesOf(10, 30), DEFAULTS],
  [50, valuesOf(10, 30), DEFAULTS],
  [3, DEFAULTS, valuesOf(20, 60)],
  [10, DEFAULTS, valuesOf(20, 60)],
  [3, DEFAULTS, valuesOf(2, 6)],
] as const) {
  const change = `${from.renewMs / 1_000}/${from.unavailableAfterMs / 1_000} s to ${to.renewMs / 1_000}/${to.unavailableAfterMs / 1_000} s`;
  for (const [how, follow] of [
    ['recorders that follow with their next pod', () => undefined],
    ['recorders that follow the pool', (random: Random) => random.between(0, 5_000)],
  ] as const) {
    test(`${count} nodes, ${change}, ${how}: failover is never suspended, and the roll-out ends`, (t) => {
      let slowestMs = 0;
      const seeds = seedsOf(count > 10 ? 2 : SEEDS);
      for (const seed of seeds) {
        const world = new World(seed, count, from, follow);
        world.warmUp();
        world.change(to);
        const { beganMs, endedMs } = world.rollOut(60_000 + count * 30_000);
        assert.ok(beganMs !== undefined && endedMs !== undefined, `SEED=${seed}: began ${beganMs}, ended ${endedMs}`);
        assert.equal(world.withoutMajorityMs, 0, `SEED=${seed}: milliseconds without a majority`);
        assert.deepEqual([...world.lost.keys()], [], `SEED=${seed}: said to be unavailable`);
        slowestMs = Math.max(slowestMs, beganMs);
      }
      t.diagnostic(`began in ${seeds.length}/${seeds.length}, after at most ${slowestMs} ms; seeds from ${base}`);
    });
  }
}

const anyValues = (random: Random): Values => {
  const renewSeconds = random.pick([1, 2, 2, 5, 10, 20, 60, 300, MAX_RENEW_SECONDS]);
  return valuesOf(renewSeconds, Math.min(3_600, Math.max(3 * renewSeconds, random.pick([3, 6, 15, 60, 600, 3_600]))));
};

test('any changes, in any order: live nodes are live, a dead one is lost, and only that one', (t) => {
  const seeds = seedsOf(LONG ? 2_000 : 60);
  for (const seed of seeds) {
    const random = new Random(seed ^ 0x5eed);
    const follow = (): number | undefined =>
      random.chance(0.3) ? undefined : random.pick([0, random.between(0, 60_000)]);
    let values = anyValues(random);
    const world = new World(seed, random.pick([3, 4, 5, 8]), values, follow);
    world.warmUp();
    for (let i = 0; i < 6; i++) {
      world.change((values = anyValues(random)));
      // Often shorter than an interval, old or new: nobody has followed yet when the next change comes.
      world.pass(random.pick([1_000, 5_000, 30_000, 200_000]));
    }
    assert.equal(world.withoutMajorityMs, 0, `SEED=${seed}: milliseconds without a majority`);
    assert.deepEqual([...world.lost.keys()], [], `SEED=${seed}: said to be unavailable`);

    const dead = random.pick(world.nodes);
    dead.isDead = true;
    const limitMs = Math.max(values.unavailableAfterMs, 3 * dead.renewMs);
    const deadSinceMs = world.nowMs;
    // Its last renewal may still be on the way.
    world.pass(limitMs + NEWS_MS + 2 * STEP_MS);
    assert.deepEqual([...world.lost.keys()], [dead.name], `SEED=${seed}: lost after its ${limitMs} ms`);
    const tookMs = (world.lost.get(dead.name) ?? 0) - deadSinceMs;
    assert.ok(tookMs >= Math.min(limitMs, values.unavailableAfterMs) - dead.renewMs, `SEED=${seed}: too early`);

    world.change(valuesOf(2, 3_600));
    assert.equal(world.detector.liveness(dead.name, world.nowMs).state, 'Unavailable', `SEED=${seed}: still lost`);
  }
  t.diagnostic(`${seeds.length} worlds, seeds from ${base}`);
});
