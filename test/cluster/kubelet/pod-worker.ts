// One pod on its node: volumes, init containers, containers, status, and an orderly end.

import { mkdirSync, rmSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, type ApiClient } from '../api-client.ts';
import type { ContainerMount } from './container.ts';
import { ContainerSupervisor, timestamp } from './container-supervisor.ts';
import type { PodPlace } from './environment.ts';
import type { Images } from './images.ts';
import {
  podPath,
  type Condition,
  type Container,
  type ContainerStatus,
  type Phase,
  type Pod,
  type PodStatus,
} from './types.ts';
import { PodVolumes } from './volumes.ts';

interface PodWorkerDeps {
  readonly api: ApiClient;
  readonly place: PodPlace;
  readonly images: () => Images;
  /** The node's disk. */
  readonly root: string;
  /** Of this pod; gone with it. */
  readonly directory: string;
  readonly baseEnvironment: Readonly<Record<string, string>>;
  readonly event: (pod: Pod, type: 'Normal' | 'Warning', reason: string, message: string) => void;
}

const RETRY_MS = 1_000;
/** Secrets, config maps and tokens in volumes are looked at again after this, as the kubelet does. */
const REFRESH_VOLUMES_MS = 60_000;
/** Of the conditions of a pod, those that are the kubelet's. */
const OWN_CONDITIONS = ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady'];

export class PodWorker {
  readonly #deps: PodWorkerDeps;
  readonly #volumes: PodVolumes;
  readonly #supervisors = new Map<string, ContainerSupervisor>();
  readonly #initSupervisors = new Map<string, ContainerSupervisor>();
  readonly #ending = new AbortController();
  readonly #startTime: string;
  readonly #publisher: Promise<void>;
  readonly #running: Promise<void>;
  #pod: Pod;
  #conditions: readonly Condition[] = [];
  #initialized = false;
  #ended = false;
  #gone = false;
  #changes = Promise.withResolvers<void>();
  #termination: Promise<void> | undefined;

  constructor(pod: Pod, deps: PodWorkerDeps) {
    this.#pod = pod;
    this.#deps = deps;
    this.#startTime = pod.status?.startTime ?? timestamp(new Date());
    mkdirSync(deps.directory, { recursive: true });
    this.#volumes = new PodVolumes(deps);
    this.#running = this.#run().catch((error: unknown) => {
      deps.event(pod, 'Warning', 'Failed', error instanceof Error ? error.message : String(error));
    });
    this.#publisher = this.#publish();
  }

  get pod(): Pod {
    return this.#pod;
  }

  /** Of its containers that run: name and process. */
  get processes(): readonly { readonly container: string; readonly pid: number }[] {
    return [...this.#initSupervisors, ...this.#supervisors].flatMap(([container, { pid }]) =>
      pid === undefined ? [] : [{ container, pid }],
    );
  }

  supervisor(container: string): ContainerSupervisor | undefined {
    return this.#supervisors.get(container) ?? this.#initSupervisors.get(container);
  }

  /** To all containers, or to one. */
  signal(name: NodeJS.Signals, container?: string): void {
    for (const [key, supervisor] of [...this.#initSupervisors, ...this.#supervisors]) {
      if (container === undefined || key === container) supervisor.signal(name);
    }
  }

  /** Another version of the same pod. */
  update(pod: Pod): void {
    this.#pod = pod;
    if (pod.metadata.deletionTimestamp !== undefined && !this.#termination) {
      const graceMs = (pod.metadata.deletionGracePeriodSeconds ?? 0) * 1000;
      this.#termination = this.#terminate(graceMs);
    }
  }

  /** The pod is no more: what still runs is ended at once. */
  async remove(): Promise<void> {
    this.#gone = true;
    this.#changed();
    await this.#stopContainers(0);
    await this.#publisher;
    rmSync(this.#deps.directory, { recursive: true, force: true });
  }

  async #run(): Promise<void> {
    if (isOver(this.#pod)) return; // ended before this kubelet was started; it waits to be deleted
    if (!(await this.#mountVolumes())) return;
    void this.#keepVolumesFresh();
    const { initContainers = [], containers } = this.#pod.spec;
    for (const container of initContainers) {
      const supervisor = this.#supervise(container, this.#initSupervisors, this.#pod.status?.initContainerStatuses);
      await supervisor.run({ once: true });
      if (this.#ending.signal.aborted) return;
      if (supervisor.status.state.terminated?.exitCode !== 0) return this.#changed();
    }
    this.#initialized = true;
    await Promise.all(
      containers.map((container) =>
        this.#supervise(container, this.#supervisors, this.#pod.status?.containerStatuses).run(),
      ),
    );
    this.#changed();
  }

  #supervise(
    container: Container,
    supervisors: Map<string, ContainerSupervisor>,
    before: readonly ContainerStatus[] = [],
  ): ContainerSupervisor {
    const { api, place, images, directory, baseEnvironment } = this.#deps;
    const supervisor = new ContainerSupervisor(
      container,
      () => this.#pod,
      before.find(({ name }) => name === container.name),
      {
        api,
        place,
        images,
        base: baseEnvironment,
        directory: join(directory, 'containers', container.name),
        mounts: this.#mounts(container),
        changed: () => this.#changed(),
        event: (type, reason, message) => this.#deps.event(this.#pod, type, reason, message),
      },
    );
    supervisors.set(container.name, supervisor);
    this.#changed();
    return supervisor;
  }

  #mounts(container: Container): readonly ContainerMount[] {
    return (container.volumeMounts ?? []).map(({ name, mountPath, subPath, readOnly = false }) => {
      const volume = this.#pod.spec.volumes?.find((volume) => volume.name === name);
      if (!volume) throw new Error(`container ${container.name} mounts ${name}, which is no volume`);
      const source = this.#volumes.path(volume);
      if (subPath !== undefined) mkdirSync(join(source, subPath), { recursive: true });
      return {
        source: subPath === undefined ? source : join(source, subPath),
        target: isAbsolute(mountPath) ? mountPath : `/${mountPath}`,
        readOnly,
      };
    });
  }

  /** False when the pod ended first. */
  async #mountVolumes(): Promise<boolean> {
    const { signal } = this.#ending;
    let told = '';
    for (;;) {
      try {
        await this.#volumes.refresh(this.#pod, this.#deps.place);
        return !signal.aborted;
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        if (message !== told) this.#deps.event(this.#pod, 'Warning', 'FailedMount', message);
        told = message;
      }
      await sleep(RETRY_MS, undefined, { signal }).catch(() => {});
      if (signal.aborted) return false;
    }
  }

  async #keepVolumesFresh(): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      await sleep(REFRESH_VOLUMES_MS, undefined, { signal, ref: false }).catch(() => {});
      // What cannot be read now stays as it is.
      if (!signal.aborted) await this.#volumes.refresh(this.#pod, this.#deps.place).catch(() => {});
    }
  }

  async #terminate(graceMs: number): Promise<void> {
    await this.#stopContainers(graceMs);
    this.#ended = true;
    this.#changed();
  }

  async #stopContainers(graceMs: number): Promise<void> {
    this.#ending.abort();
    const supervisors = [...this.#initSupervisors.values(), ...this.#supervisors.values()];
    await Promise.all(supervisors.map((supervisor) => supervisor.stop(graceMs)));
    await this.#running;
  }

  #changed(): void {
    this.#changes.resolve();
  }

  /** Writes the status whenever it is another, until the pod is gone. */
  async #publish(): Promise<void> {
    let written = '';
    while (!this.#gone) {
      await this.#changes.promise;
      this.#changes = Promise.withResolvers();
      try {
        const status = this.#status();
        if (JSON.stringify(status) !== written && !this.#gone) {
          await this.#write(status);
          written = JSON.stringify(status);
        }
        if (this.#ended) return await this.#delete();
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return;
        await sleep(RETRY_MS);
        this.#changed();
      }
    }
  }

  async #write(status: PodStatus): Promise<void> {
    const { uid } = this.#pod.metadata;
    await this.#deps.api.patch(`${podPath(this.#pod)}/status`, 'merge', { metadata: { uid }, status });
  }

  /** Tells the API server that nothing of the pod runs any more. */
  async #delete(): Promise<void> {
    const { uid } = this.#pod.metadata;
    await this.#deps.api.delete(podPath(this.#pod), { gracePeriodSeconds: 0, preconditions: { uid } });
  }

  #status(): PodStatus {
    const { initContainers = [], containers } = this.#pod.spec;
    const { address } = this.#deps.place;
    // It had ended before this kubelet was started.
    if (isOver(this.#pod) && this.#supervisors.size === 0) return this.#pod.status ?? {};
    const containerStatuses = containers.map((container) => statusOf(container, this.#supervisors));
    const phase = this.#phase(containerStatuses);
    const ready = phase === 'Running' && containerStatuses.every((status) => status.ready);
    this.#conditions = OWN_CONDITIONS.map((type) =>
      this.#condition(type, type.endsWith('Ready') ? ready : type === 'Initialized' ? this.#initialized : true, phase),
    );
    const others = (this.#pod.status?.conditions ?? []).filter(({ type }) => !OWN_CONDITIONS.includes(type));
    return {
      phase,
      startTime: this.#startTime,
      hostIP: address,
      podIP: address,
      podIPs: [{ ip: address }],
      conditions: [...others, ...this.#conditions],
      containerStatuses,
      ...(initContainers.length > 0
        ? { initContainerStatuses: initContainers.map((container) => statusOf(container, this.#initSupervisors)) }
        : {}),
    };
  }

  #condition(type: string, value: boolean, phase: Phase): Condition {
    const status = value ? 'True' : 'False';
    const before =
      this.#conditions.find((condition) => condition.type === type) ??
      this.#pod.status?.conditions?.find((condition) => condition.type === type);
    const over = phase === 'Succeeded' ? { reason: 'PodCompleted' } : phase === 'Failed' ? { reason: 'PodFailed' } : {};
    return {
      type,
      status,
      ...(value || type === 'Initialized' ? {} : { reason: 'ContainersNotReady', ...over }),
      lastTransitionTime:
        before?.status === status && before.lastTransitionTime !== undefined
          ? before.lastTransitionTime
          : timestamp(new Date()),
    };
  }

  #phase(statuses: readonly ContainerStatus[]): Phase {
    const initFailed = [...this.#initSupervisors.values()].some(
      ({ status }) => (status.state.terminated?.exitCode ?? 0) !== 0,
    );
    const policy = this.#pod.spec.restartPolicy ?? 'Always';
    if (initFailed && policy === 'Never') return 'Failed';
    const ended = statuses.every(({ state }) => state.terminated !== undefined);
    const failed = statuses.some(({ state }) => (state.terminated?.exitCode ?? 0) !== 0);
    if (this.#ended) return ended && !failed ? 'Succeeded' : 'Failed';
    if (ended && policy === 'Never') return failed ? 'Failed' : 'Succeeded';
    if (ended && policy === 'OnFailure' && !failed) return 'Succeeded';
    return statuses.every(({ containerID }) => containerID !== undefined) ? 'Running' : 'Pending';
  }
}

const isOver = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed';

/** Of a container that was not reached yet: it waits. */
function statusOf({ name, image }: Container, supervisors: ReadonlyMap<string, ContainerSupervisor>): ContainerStatus {
  return (
    supervisors.get(name)?.status ?? {
      name,
      image,
      imageID: '',
      ready: false,
      started: false,
      restartCount: 0,
      state: { waiting: { reason: 'PodInitializing' } },
      lastState: {},
    }
  );
}
