// The recorder of one node, as docs/design/cluster.md tells it to behave: two watches, a copy on disk, a Lease, a report.

import type { CameraReport, CameraView } from '../../../operator/plan/snapshot.ts';
import { BURST, LEAST_MS, TOGETHER_MS } from '../../../recorder/cluster/report.ts';
import type { ApiServer } from './api-server.ts';
import type { Monitor } from './monitor.ts';
import type { RecorderMutation } from './mutation.ts';
import { Reflector } from './reflector.ts';
import { Process, type Random, type Timeline } from './world.ts';

const REQUEST_MS = 2_000;
const RETRY_MS = 1_000;

type RecorderDeps = {
  readonly timeline: Timeline;
  readonly random: Random;
  readonly api: ApiServer;
  readonly monitor: Monitor;
  readonly renewMs: number;
  readonly mutation: RecorderMutation | undefined;
  /** Something of the camera is read: there are some that no recorder survives. */
  readonly reads: (recorder: Recorder, camera: string) => void;
};

type Recording = { readonly uid: string; epoch: number; state: 'Connecting' | 'Recording' };

export class Recorder extends Process {
  readonly #deps: RecorderDeps;
  /** Survives the process: what was assigned last, and the highest epoch seen of each camera (by uid). */
  readonly #disk = { copy: new Map<string, { uid: string; epoch: number }>(), highest: new Map<string, number>() };
  #recordings = new Map<string, Recording>();
  #owned!: Reflector<'Camera'>;
  #previous!: Reflector<'Camera'>;
  /** Cameras that are being read; true: something was seen since, so the answer may be old. */
  #asking = new Map<string, boolean>();
  #renewedMs = 0;
  #report: 'clean' | 'dirty' | 'sending' = 'clean';
  #tokens = BURST;
  #tokensMs = 0;
  #reportedMs = -Infinity;
  /** The cameras and epochs of the last report. */
  #named = '';
  #incarnation = 0;

  constructor(name: string, deps: RecorderDeps) {
    super(name, deps.timeline, deps.random);
    this.#deps = deps;
  }

  protected onStart(): void {
    const { api, renewMs, mutation } = this.#deps;
    this.#incarnation += 1;
    this.#recordings = new Map();
    this.#asking = new Map();
    this.#report = 'clean';
    this.#tokens = BURST;
    this.#tokensMs = this.nowMs();
    this.#reportedMs = -Infinity;
    this.#named = '';
    this.#renewedMs = this.nowMs();
    if (mutation === 'recorder forgets') this.#disk.copy.clear();
    for (const [camera, { uid, epoch }] of this.#disk.copy) this.#record(camera, uid, epoch);
    const onChange = (name: string, camera: CameraView | undefined): void => this.#look(name, camera);
    const onListed = (): void => this.#compare();
    const common = { kind: 'Camera', client: this, api, onChange, onListed } as const;
    this.#owned = new Reflector({ ...common, selects: ({ assignment }) => assignment?.node === this.name });
    this.#previous = new Reflector({ ...common, selects: ({ assignment }) => assignment?.previousNode === this.name });
    this.#listAnew();
    this.#touchReport();
    this.after(this.#deps.random.between(0, renewMs), () => this.#renew());
  }

  protected override onKill(): void {
    for (const [camera, { uid }] of this.#recordings) this.#deps.monitor.stopped(this, camera, uid, 'killed');
    this.#recordings.clear();
  }

  // ── what is to be recorded ──

  #listAnew(): void {
    this.#owned.list();
    this.#previous.list();
  }

  /** With what is recorded, not with the list before: a camera may have come and gone between two lists. */
  #compare(): void {
    for (const name of this.#recordings.keys())
      if (!this.#owned.objects.has(name)) this.#look(name, this.#previous.objects.get(name));
  }

  /** A watch or a list shows the Camera, or shows it no longer. */
  #look(name: string, camera: CameraView | undefined): void {
    const { mutation } = this.#deps;
    const assignment = camera?.assignment;
    if (camera && assignment?.node === this.name) return this.#own(camera);
    if (!this.#recordings.has(name)) return;
    if (mutation === 'recorder stops without asking') {
      const handover = assignment ?? this.#previous.objects.get(name)?.assignment;
      const goesOn = handover?.previousNode === this.name && handover.handover === 'Pending';
      return goesOn || this.#owned.objects.has(name) ? undefined : this.#stop(name);
    }
    const isPending = assignment?.previousNode === this.name && assignment.handover === 'Pending';
    if (!isPending) this.#ask(name);
  }

  /** A read of the Camera itself decides to stop. */
  #ask(name: string): void {
    const { api, mutation } = this.#deps;
    if (this.#asking.has(name)) return void this.#asking.set(name, true);
    this.#asking.set(name, false);
    const work = (): ReturnType<typeof api.get<'Camera'>> => api.get('Camera', name);
    api.call(this, REQUEST_MS, work, (answer) => {
      const isOld = this.#asking.get(name) === true;
      this.#asking.delete(name);
      if (!this.#recordings.has(name)) return;
      if (isOld) return this.#ask(name);
      if (!answer) {
        if (mutation === 'recorder stops without an answer') return this.#stop(name);
        return this.after(RETRY_MS, () => this.#recordings.has(name) && this.#ask(name));
      }
      if (!('ok' in answer)) return this.#stop(name);
      const { assignment, uid } = answer.ok;
      // Read before this recorder was given the camera once more.
      if ((assignment?.epoch ?? 0) < (this.#disk.highest.get(uid) ?? 0)) return;
      if (assignment?.node === this.name) this.#own(answer.ok);
      else if (assignment?.previousNode !== this.name || assignment.handover !== 'Pending') this.#stop(name);
    });
  }

  #own({ name, uid, assignment }: CameraView): void {
    const epoch = assignment?.epoch ?? 0;
    const highest = this.#disk.highest.get(uid) ?? 0;
    if (epoch < highest && this.#deps.mutation !== 'recorder believes lower epochs') return;
    this.#deps.monitor.sawEpoch(this, name, uid, epoch);
    this.#disk.highest.set(uid, Math.max(epoch, highest));
    this.#disk.copy.set(name, { uid, epoch });
    this.#record(name, uid, epoch);
  }

  #record(name: string, uid: string, epoch: number): void {
    const { monitor, random } = this.#deps;
    let now = this.#recordings.get(name);
    // Made anew under its old name.
    if (now && now.uid !== uid) {
      this.#stop(name);
      this.#disk.copy.set(name, { uid, epoch });
      now = undefined;
    }
    if (now) {
      if (now.epoch === epoch) return;
      now.epoch = epoch;
      if (now.state === 'Recording') monitor.writes(this, name, uid, epoch);
      return this.#touchReport();
    }
    const recording: Recording = { uid, epoch, state: 'Connecting' };
    this.#recordings.set(name, recording);
    this.#touchReport();
    // Connect, and the wait for a key frame.
    this.after(random.between(100, 400) + random.between(0, 1_000), () => {
      if (this.#recordings.get(name) !== recording) return;
      recording.state = 'Recording';
      this.#deps.reads(this, name);
      monitor.writes(this, name, uid, recording.epoch);
      this.#touchReport();
    });
  }

  #stop(name: string): void {
    const recording = this.#recordings.get(name);
    if (!recording) return;
    this.#recordings.delete(name);
    this.#disk.copy.delete(name);
    this.#deps.monitor.stopped(this, name, recording.uid, 'told');
    this.#touchReport();
  }

  // ── what is told ──

  #renew(): void {
    const { api, renewMs, mutation } = this.#deps;
    const holder = `${this.name}/${this.#incarnation}`;
    const renewedWallMs = this.wallMs();
    this.after(renewMs, () => this.#renew());
    const work = (): true => {
      api.put('Lease', { name: this.name, resourceVersion: '', holder, renewedWallMs }, this);
      return true;
    };
    api.call(this, renewMs, work, (answer) => {
      if (!answer) {
        if (mutation === 'recorder stops without an answer' && this.nowMs() - this.#renewedMs > 4 * renewMs) {
          for (const name of this.#recordings.keys()) this.#stop(name);
        }
        return;
      }
      const silentMs = this.nowMs() - this.#renewedMs;
      this.#renewedMs = this.nowMs();
      if (silentMs <= 2 * renewMs || mutation === 'no list after a silence') return;
      this.#listAnew();
    });
  }

  #touchReport(): void {
    if (this.#report === 'sending') {
      this.#report = 'dirty';
      return;
    }
    if (this.#report === 'dirty') return;
    this.#report = 'dirty';
    this.after(TOGETHER_MS, () => this.#sendReport());
  }

  /** At most one a second in the long run; a few at once for cameras that are newly named: a failover waits for those. */
  #sendReport(): void {
    const { api } = this.#deps;
    if (this.#report !== 'dirty') return;
    const nowMs = this.nowMs();
    const named = [...this.#recordings].map(([name, { epoch }]) => `${name}@${epoch}`).join();
    const gained = Math.floor((nowMs - this.#tokensMs) / LEAST_MS);
    this.#tokens = Math.min(BURST, this.#tokens + gained);
    this.#tokensMs += gained * LEAST_MS;
    const waitMs = this.#tokens > 0 && named !== this.#named ? 0 : this.#reportedMs + LEAST_MS - nowMs;
    if (waitMs > 0) {
      this.#report = 'clean';
      return this.after(waitMs, () => this.#touchReport());
    }
    this.#tokens = Math.max(0, this.#tokens - 1);
    this.#named = named;
    this.#reportedMs = nowMs;
    this.#report = 'sending';
    const cameras: ReadonlyMap<string, CameraReport> = new Map(
      [...this.#recordings].map(([name, { epoch, state }]) => [name, { epoch, state }]),
    );
    const work = (): unknown =>
      api.replace('RecorderNode', this.name, undefined, (node) => ({ ...node, cameras }), this);
    api.call(this, REQUEST_MS, work, (answer) => {
      const isDirty = this.#report !== 'sending' || !answer;
      this.#report = 'clean';
      if (isDirty && answer) this.#touchReport();
      else if (isDirty) {
        this.#report = 'dirty';
        this.after(RETRY_MS, () => this.#sendReport());
      }
    });
  }
}
