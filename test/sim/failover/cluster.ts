// Nodes, operators, cameras and an API server in one virtual world, and the faults that can befall them.

import type { CameraView, NodeView, PoolView } from '../../../operator/plan/snapshot.ts';
import { ApiServer } from './api-server.ts';
import { Monitor, type Limits } from './monitor.ts';
import type { Rules } from './mutation.ts';
import { POOL } from './kubernetes.ts';
import { Operator, OPERATOR_LEASE } from './operator.ts';
import { Recorder } from './recorder.ts';
import { type Process, Random, Timeline } from './world.ts';

type ClusterOptions = {
  readonly seed: number;
  readonly nodes: number;
  readonly cameras: number;
  readonly pool: Partial<PoolView>;
  readonly newsMs: number;
  readonly rules: Rules;
  /** Of the nodes at the start; otherwise they vote. */
  readonly role?: 'Learner';
};

const SAMPLE_MS = 1_000;
/** A connection outlives a cut of this length: what was lost is sent again. */
const CONNECTION_MS = 5_000;
/** Kubernetes says so late that a machine is lost. */
const MACHINE_MS = { least: 40_000, most: 50_000 };

export class Cluster {
  readonly timeline = new Timeline();
  readonly random: Random;
  readonly api: ApiServer;
  readonly monitor: Monitor;
  readonly recorders: readonly Recorder[];
  readonly operators: readonly Operator[];
  readonly limits: Limits;
  /** A camera that no recorder survives. */
  poison: string | undefined;
  /** Up to when processes are cut off: one cut may outlast another. */
  readonly #cutUntilMs = new Map<Process, number>();

  constructor({ seed, nodes, cameras, pool, newsMs, rules, role }: ClusterOptions) {
    this.random = new Random(seed);
    const first: PoolView = {
      name: POOL,
      maxCamerasPerNode: cameras,
      maxConcurrentMoves: 8,
      unavailableAfterMs: 15_000,
      renewMs: 2_000,
      failbackAfterMs: 600_000,
      membership: 'Manual',
      standby: false,
      ...pool,
    };
    const { unavailableAfterMs, renewMs } = first;
    this.limits = { unavailableAfterMs, renewMs, newsMs };
    const { timeline, random } = this;
    this.api = new ApiServer(timeline, random);
    const processes = new Map<string, Process>();
    this.monitor = new Monitor(timeline, this.api, processes, this.limits);
    const common = { timeline, random, api: this.api, monitor: this.monitor };
    const reads = (recorder: Recorder, camera: string): void => {
      if (camera === this.poison) recorder.after(random.between(0, 2_000), () => this.crash(recorder));
    };
    const recorderDeps = { ...common, renewMs, Cluster: rules.Cluster, reads };
    this.recorders = Array.from({ length: nodes }, (_, i) => new Recorder(`n${i + 1}`, recorderDeps));
    const operatorDeps = { ...common, pool: first, Assigner: rules.Assigner };
    this.operators = [1, 2].map((i) => new Operator(`operator${i}`, operatorDeps));
    for (const process of [...this.recorders, ...this.operators]) processes.set(process.name, process);

    this.api.put('RecorderPool', { ...first, resourceVersion: '' });
    this.api.put('Lease', { name: OPERATOR_LEASE, resourceVersion: '', holder: '', renewedWallMs: 0 });
    for (const { name } of this.recorders) this.addNode(name, role);
    for (let i = 0; i < cameras; i++) this.addCamera(`c${i + 1}`);
    for (const process of processes.values()) process.start();
    this.#sample();
  }

  run(untilMs: number): Promise<void> {
    return this.timeline.runUntil(untilMs);
  }

  at(atMs: number, run: () => void): void {
    this.timeline.at(atMs, run);
  }

  /** Ends what still waits in this world, which would keep all of it in memory. */
  dispose(): void {
    for (const recorder of this.recorders) recorder.dispose();
  }

  get nowMs(): number {
    return this.timeline.nowMs;
  }

  recorder(name: string): Recorder {
    return this.recorders.find((recorder) => recorder.name === name) ?? this.monitor.fail(`no node ${name}`);
  }

  get pool(): PoolView {
    return this.api.all('RecorderPool').get(POOL) ?? this.monitor.fail('the pool is gone');
  }

  changePool(change: Partial<PoolView>): void {
    this.api.replace('RecorderPool', POOL, undefined, (pool) => ({ ...pool, ...change }));
  }

  leader(): Operator | undefined {
    return this.operators.find((operator) => operator.isUp && operator.isLeader());
  }

  camerasOf(node: string): string[] {
    return [...this.api.all('Camera').values()]
      .filter(({ assignment }) => assignment?.node === node)
      .map(({ name }) => name);
  }

  addNode(name: string, role: NodeView['role'] = 'Voter'): void {
    const node: NodeView = {
      name,
      resourceVersion: '',
      labels: {},
      role,
      drain: false,
      isRemoved: false,
      canRecord: true,
      hasRecorder: true,
      hasReported: true,
      cameras: new Map(),
    };
    this.api.put('RecorderNode', node);
    // The operator makes it, and the recorder renews it.
    this.api.put('Lease', { name, resourceVersion: '', holder: '', renewedWallMs: 0 });
  }

  addCamera(name: string, over: Partial<CameraView> = {}): void {
    this.api.put('Camera', {
      name,
      uid: `${name}-${this.random.next()}`,
      resourceVersion: '',
      suspend: false,
      priority: Math.floor(this.random.between(0, 3)),
      nodeSelector: {},
      failover: 'Automatic',
      ...over,
    });
  }

  changeCamera(name: string, change: Partial<CameraView>): void {
    this.api.replace('Camera', name, undefined, (camera) => ({ ...camera, ...change }));
  }

  changeNode(name: string, change: Partial<NodeView>): void {
    this.api.replace('RecorderNode', name, undefined, (node) => ({ ...node, ...change }));
  }

  // ── faults: each with the time after which it is over ──

  kill(process: Process, forMs: number): void {
    this.#disturb(process);
    process.kill();
    this.api.forget(process);
    this.#over(forMs, process, () => process.start());
  }

  /** With SIGTERM: the recorder says that it ends, and does a little later. */
  end(recorder: Recorder, forMs: number): void {
    this.#disturb(recorder);
    recorder.release();
    this.at(this.nowMs + this.random.between(300, 3_000), () => this.kill(recorder, forMs));
  }

  /** The recorder alone, whose machine lives: it is started again, later each time. */
  crash(recorder: Recorder): void {
    if (recorder.isUp) this.kill(recorder, this.random.between(20_000, 40_000));
  }

  /** With all that is on it. */
  loseMachine({ name }: Recorder, forMs: number): void {
    const recorder = this.recorder(name);
    const knownMs = this.random.between(MACHINE_MS.least, MACHINE_MS.most);
    this.kill(recorder, forMs);
    if (forMs > knownMs) this.at(this.nowMs + knownMs, () => this.changeNode(name, { hasRecorder: false }));
    if (forMs < Infinity) this.at(this.nowMs + forMs, () => this.changeNode(name, { hasRecorder: true }));
  }

  freeze(process: Process, forMs: number): void {
    this.#disturb(process);
    process.freeze();
    this.#over(forMs, process, () => process.thaw());
  }

  cut(process: Process, forMs: number): void {
    this.#disturb(process);
    process.isCut = true;
    this.#cutUntilMs.set(process, Math.max(this.nowMs + forMs, this.#cutUntilMs.get(process) ?? 0));
    if (forMs > CONNECTION_MS) this.api.forget(process);
    this.#over(forMs, process, () => {
      if (this.nowMs < (this.#cutUntilMs.get(process) ?? 0)) return;
      process.isCut = false;
      this.api.reconnect(process);
    });
  }

  apiDown(forMs: number): void {
    this.api.goDown();
    this.at(this.nowMs + forMs, () => this.api.comeUp());
  }

  /** etcd does not answer: requests hang. */
  apiPaused(forMs: number): void {
    this.api.pause();
    this.at(this.nowMs + forMs, () => this.api.comeUp());
  }

  #over(forMs: number, process: Process, end: () => void): void {
    if (forMs === Infinity) return;
    this.at(this.nowMs + forMs, () => {
      end();
      this.#disturb(process);
    });
  }

  #disturb(process: Process): void {
    this.monitor.disturbed(process.name);
  }

  #sample(): void {
    this.at(this.nowMs + SAMPLE_MS, () => {
      this.monitor.sample();
      this.#sample();
    });
  }
}
