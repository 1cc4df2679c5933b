// The recorder of one node: its own cluster code (recorder/cluster), with cameras that connect and write after some time, and a
// copy of the assignments on a disk that survives the process.

import { silentLog } from '../../../base/log.ts';
import { isSuspended } from '../../../crds/camera.ts';
import type { CameraReport, Cluster, NodeFacts } from '../../../recorder/cluster/cluster.ts';
import type { KeptContent } from '../../../recorder/cluster/kept-state.ts';
import type { ApiServer, VersionedPool } from './api-server.ts';
import { NAMESPACE, POOL, ProcessClock } from './kubernetes.ts';
import { heldMsOf, restartMs, wantedFromMs } from '../../../recorder/cameras/held-time.ts';
import { UNWRITTEN_MS, type Monitor } from './monitor.ts';
import { RecorderApi } from './recorder-api.ts';
import { Process, type Random, type Timeline } from './world.ts';

/** How often a recorder looks after its part in the cluster. */
const TICK_MS = 500;

type RecorderDeps = {
  readonly timeline: Timeline;
  readonly random: Random;
  readonly api: ApiServer;
  readonly monitor: Monitor;
  readonly renewMs: number;
  /** The recorder's, or one with a rule broken. */
  readonly Cluster: typeof Cluster;
  /** Something of the camera is read: there are some that no recorder survives. */
  readonly reads: (recorder: Recorder, camera: string) => void;
};

/** A camera of another node in memory: since when, in true time; undefined: it is being connected. */
type Held = { sinceMs: number | undefined };

const SYNC_MS = 5_000;
/** A frozen recorder finds this much of each camera in its sockets. */
const BUFFERED_MS = 8_000;
/** From being told to the first fragment of what was held. */
const PROMOTED_MS = 100;
const BRIDGE_MS = 10_000;

type Recording = { readonly uid: string; epoch: number; state: CameraReport['state'] };

export class Recorder extends Process {
  readonly #deps: RecorderDeps;
  /** Survives the process. */
  #disk: KeptContent | undefined;
  #recordings = new Map<string, Recording>();
  #held = new Map<string, Held>();
  #frozenAtMs = 0;
  #cluster: Cluster | undefined;
  /** Of all lives of the process. */
  readonly #clusters: Cluster[] = [];
  #oldPool: VersionedPool | undefined;

  constructor(name: string, deps: RecorderDeps) {
    super(name, deps.timeline, deps.random);
    this.#deps = deps;
  }

  /** The node that records the camera, as far as this one knows. */
  ownerOf(camera: string): string | undefined {
    return this.#cluster?.peers.ownerOf(camera)?.nodeId;
  }

  get followsPool(): boolean {
    return this.#oldPool === undefined;
  }

  /** From now on it does not follow changes of the pool, as recorders of older versions do not. */
  ignorePool(): void {
    this.#oldPool = this.#deps.api.all('RecorderPool').get(POOL);
  }

  /** The camera refuses its login: the Secret is read again. */
  refuseLogin(camera: string): void {
    if (this.isUp && !this.isFrozen) this.#cluster?.loginRefused(camera);
  }

  /** At the end of the world: what still waits in it would keep it in memory. */
  dispose(): void {
    for (const cluster of this.#clusters) void cluster.close();
  }

  protected onStart(): void {
    const { api: server, random, timeline, monitor, renewMs, Cluster } = this.#deps;
    this.#recordings = new Map();
    this.#held = new Map();
    const kept = [...(this.#disk?.assignments.values() ?? [])].map(({ camera }) => camera.metadata.uid ?? '');
    monitor.starts(this, new Set(kept));
    const api = new RecorderApi({
      process: this,
      server,
      timeline,
      random,
      oldPool: () => this.#oldPool,
      renewalLost: () => monitor.renewalLost(this.name),
    });
    const cluster = new Cluster({
      api,
      leaseApi: api,
      namespace: NAMESPACE,
      nodeId: this.name,
      pool: POOL,
      renewMs,
      state: {
        path: 'assignments.json',
        load: async () => (this.#disk ? { kind: 'kept', kept: this.#disk } : { kind: 'none' }),
        save: async (kept) => void (this.#disk = kept),
        erase: async () => void (this.#disk = undefined),
        close: async () => {},
      },
      facts: async () => this.#facts(),
      held: () => [],
      account: { takeOver: () => {}, giveUp: () => {} },
      ownerRestarted: (camera) => this.#bridge(camera),
      certified: () => {},
      changed: () => this.#apply(),
      clock: new ProcessClock(this),
      log: silentLog,
      random: () => random.next(),
    });
    this.#cluster = cluster;
    this.#clusters.push(cluster);
    timeline.isStirred = true;
    this.after(random.between(0, TICK_MS), () => {
      timeline.isStirred = true;
      void cluster.start().catch((err: unknown) => (timeline.failure ??= err));
      this.#tick(cluster);
    });
  }

  /** SIGTERM: it says that it ends. */
  release(): void {
    this.timeline.isStirred = true;
    this.#cluster?.release();
  }

  protected override onKill(): void {
    const { monitor, timeline } = this.#deps;
    for (const [camera, { uid }] of this.#recordings) {
      monitor.stopped(this, camera, uid, 'killed');
      monitor.footage.ends(this.name, camera, timeline.nowMs - UNWRITTEN_MS);
    }
    this.#held.clear();
    this.#recordings.clear();
    this.#cluster = undefined;
  }

  override freeze(): void {
    this.#frozenAtMs = this.timeline.nowMs;
    super.freeze();
  }

  /** What was sent meanwhile is in the sockets, or lost. */
  override thaw(): void {
    const { monitor, timeline } = this.#deps;
    if (this.isFrozen && timeline.nowMs - this.#frozenAtMs > BUFFERED_MS) {
      for (const [camera, { state }] of this.#recordings) {
        monitor.footage.ends(this.name, camera, this.#frozenAtMs - UNWRITTEN_MS);
        if (state === 'Recording') monitor.footage.begins(this.name, camera, timeline.nowMs);
      }
      for (const held of this.#held.values()) if (held.sinceMs !== undefined) held.sinceMs = timeline.nowMs;
    }
    super.thaw();
  }

  #tick(cluster: Cluster): void {
    this.#deps.timeline.isStirred = true;
    cluster.tick();
    this.after(TICK_MS, () => this.#tick(cluster));
  }

  /** What the monitor objects to is thrown where only promises would hear of it. */
  #apply(): void {
    const { timeline } = this.#deps;
    try {
      this.#follow();
    } catch (violation) {
      timeline.failure ??= violation;
    }
  }

  #follow(): void {
    const { monitor } = this.#deps;
    const cluster = this.#cluster;
    if (!cluster) return;
    const { assignments } = cluster;
    const wanted = new Set(cluster.cameras().cameras.flatMap(({ id, enabled }) => (enabled ? [id] : [])));
    for (const [name, { uid }] of this.#recordings) {
      const camera = assignments.get(name)?.camera;
      if (camera?.metadata.uid !== uid) this.#stop(name, 'told');
      else if (!wanted.has(name)) this.#stop(name, isSuspended(camera) ? 'suspended' : 'told');
    }
    for (const [name, { camera, state, epoch }] of assignments) {
      const { uid = '' } = camera.metadata;
      if (state === 'own') monitor.sawEpoch(this, name, uid, epoch);
      if (wanted.has(name)) this.#record(name, uid, epoch);
    }
    this.#hold(new Set(cluster.cameras().held.map(({ id }) => id)));
  }

  #hold(wanted: ReadonlySet<string>): void {
    const { random, timeline, reads } = this.#deps;
    for (const name of this.#held.keys()) if (!wanted.has(name)) this.#held.delete(name);
    for (const name of wanted) {
      if (this.#held.has(name)) continue;
      const held: Held = { sinceMs: undefined };
      this.#held.set(name, held);
      this.after(random.between(100, 1_400), () => {
        held.sinceMs = timeline.nowMs;
        reads(this, name);
      });
    }
  }

  /** What the node that records the camera has missed is written here, for ten seconds. */
  #bridge(name: string): void {
    const held = this.#held.get(name);
    if (held?.sinceMs === undefined) return;
    const { footage } = this.#deps.monitor;
    const { nowMs } = this.timeline;
    const writer = `${this.name} for another`;
    footage.begins(writer, name, Math.max(held.sinceMs, nowMs - restartMs(this.#cluster?.pool, SYNC_MS)));
    this.after(BRIDGE_MS, () => footage.ends(writer, name, this.timeline.nowMs));
  }

  /** True time from which on what was held is written; undefined without anything. */
  #heldFromMs(name: string): number | undefined {
    const held = this.#held.get(name);
    const cluster = this.#cluster;
    this.#held.delete(name);
    if (held?.sinceMs === undefined || !cluster) return undefined;
    const { nowMs } = this.timeline;
    const clock = new ProcessClock(this);
    const wallMs = wantedFromMs(cluster.assignmentOf(name), cluster.pool, SYNC_MS, clock.wallMs());
    const agoMs = Math.min(clock.wallMs() - wallMs, heldMsOf(cluster.pool));
    return Math.max(held.sinceMs, nowMs - agoMs);
  }

  #record(name: string, uid: string, epoch: number): void {
    const { monitor, random, reads } = this.#deps;
    const now = this.#recordings.get(name);
    if (now) {
      if (now.epoch === epoch) return;
      now.epoch = epoch;
      if (now.state === 'Recording') monitor.writes(this, name, uid, epoch);
      return;
    }
    const recording: Recording = { uid, epoch, state: 'Connecting' };
    this.#recordings.set(name, recording);
    const heldFromMs = this.#heldFromMs(name);
    // Connect, and the wait for a key frame.
    const afterMs = heldFromMs === undefined ? random.between(100, 400) + random.between(0, 1_000) : PROMOTED_MS;
    this.after(afterMs, () => {
      if (this.#recordings.get(name) !== recording) return;
      recording.state = 'Recording';
      reads(this, name);
      monitor.writes(this, name, uid, recording.epoch);
      monitor.footage.begins(this.name, name, heldFromMs ?? this.timeline.nowMs);
    });
  }

  #stop(name: string, why: 'told' | 'suspended'): void {
    const recording = this.#recordings.get(name);
    if (!recording) return;
    this.#recordings.delete(name);
    this.#deps.monitor.stopped(this, name, recording.uid, why);
    this.#deps.monitor.footage.ends(this.name, name, this.timeline.nowMs);
  }

  #facts(): NodeFacts {
    return {
      address: this.name,
      playbackAddress: this.name,
      certificateRequest: undefined,
      sessionKey: 'A'.repeat(43),
      endedSessions: [],
      version: '1',
      archiveID: this.name,
      freeBytes: undefined,
      fault: undefined,
      cameras: new Map(Array.from(this.#recordings, ([name, { state }]) => [name, { state }])),
      standbys: new Map(),
      archives: [],
    };
  }
}
