// Keeps one container of a pod as its restart policy says: starts it, probes it, starts it again with a growing pause.

import { join } from 'node:path';
import { mkdirSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { containerEnvironment, expand, type EnvironmentDeps } from './environment.ts';
import { ContainerProcess, type ContainerMount, type Termination } from './container.ts';
import { ImageError, launchOf, type Images } from './images.ts';
import { ask, watchProbe, type ProbeTarget } from './probe.ts';
import type { Container, ContainerState, ContainerStatus, Pod, Probe } from './types.ts';

interface SupervisorDeps extends EnvironmentDeps {
  readonly images: () => Images;
  /** Of this container. */
  readonly directory: string;
  readonly mounts: readonly ContainerMount[];
  /** The status is another. */
  readonly changed: () => void;
  readonly event: (type: 'Normal' | 'Warning', reason: string, message: string) => void;
}

/** The first restart comes at once, the second after 10 s, each further one after twice as long. */
const FIRST_BACKOFF_MS = 10_000;
const MAX_BACKOFF_MS = 300_000;
/** Who ran so long has not crashed in a loop. */
const FORGET_AFTER_MS = 600_000;
/** A container whose environment or image cannot be had is tried again. */
const RETRY_START_MS = 2_000;
const CONTAINER_RUNTIME = 'process';

export class ContainerSupervisor {
  readonly container: Container;
  readonly #deps: SupervisorDeps;
  readonly #stopping = new AbortController();
  readonly #pod: () => Pod;
  #process: ContainerProcess | undefined;
  #state: ContainerState = { waiting: { reason: 'ContainerCreating' } };
  #lastState: ContainerState = {};
  #containerId: string | undefined;
  #restarts: number;
  #ready = false;
  #started = false;

  constructor(container: Container, pod: () => Pod, before: ContainerStatus | undefined, deps: SupervisorDeps) {
    this.container = container;
    this.#pod = pod;
    this.#deps = deps;
    // After a crash of the node what ran is gone: what comes is another run of the same container.
    const ran = before?.containerID !== undefined;
    this.#restarts = (before?.restartCount ?? 0) + (ran ? 1 : 0);
    if (ran) this.#lastState = lostState(before);
  }

  get status(): ContainerStatus {
    return {
      name: this.container.name,
      image: this.container.image,
      imageID: `${CONTAINER_RUNTIME}://${this.container.image}`,
      ...(this.#containerId === undefined ? {} : { containerID: this.#containerId }),
      ready: this.#ready,
      started: this.#started,
      restartCount: this.#restarts,
      state: this.#state,
      lastState: this.#lastState,
    };
  }

  /** Of the command, in the kubelet's PID namespace. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** The output of the run that is now, or of the one before. */
  logFile(previous = false): string {
    return join(this.#deps.directory, `${this.#restarts - (previous ? 1 : 0)}.log`);
  }

  signal(name: NodeJS.Signals): void {
    this.#process?.signal(name);
  }

  /** Runs it until it need not run any more, or is stopped; `once` is for init containers. */
  async run({ once = false } = {}): Promise<void> {
    let backoffMs = 0;
    while (!this.#stopping.signal.aborted) {
      const termination = await this.#runOnce();
      if (!termination || this.#stopping.signal.aborted) return;
      const policy = this.#pod().spec.restartPolicy ?? 'Always';
      const failed = termination.exitCode !== 0;
      if ((once && !failed) || policy === 'Never' || (policy === 'OnFailure' && !failed)) return;
      const ranMs = termination.finishedAt.getTime() - termination.startedAt.getTime();
      if (ranMs > FORGET_AFTER_MS) backoffMs = 0;
      if (backoffMs > 0) await this.#backOff(backoffMs);
      backoffMs = Math.min(backoffMs === 0 ? FIRST_BACKOFF_MS : backoffMs * 2, MAX_BACKOFF_MS);
      if (this.#stopping.signal.aborted) return;
      this.#lastState = this.#state;
      this.#restarts++;
    }
  }

  /** Ends it, with its `preStop` first: the grace is for both. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort();
    const process = this.#process;
    if (!process?.running) return;
    this.#deps.event('Normal', 'Killing', `Stopping container ${this.container.name}`);
    const deadlineMs = performance.now() + graceMs;
    if (graceMs > 0) await this.#preStop(graceMs);
    await process.stop(Math.max(0, deadlineMs - performance.now()));
  }

  async #runOnce(): Promise<Termination | undefined> {
    const process = await this.#launch();
    if (!process) return undefined;
    this.#process = process;
    this.#containerId = `${CONTAINER_RUNTIME}://${randomUUID()}`;
    this.#state = { running: { startedAt: timestamp(process.startedAt) } };
    const { startupProbe, readinessProbe } = this.container;
    this.#started = startupProbe === undefined;
    this.#ready = this.#started && readinessProbe === undefined;
    this.#deps.changed();
    this.#deps.event('Normal', 'Started', `Started container ${this.container.name}`);
    const over = new AbortController();
    const probes = this.#probe(process, over.signal);
    const termination = await process.terminated;
    over.abort();
    await probes;
    this.#ready = false;
    this.#started = false;
    this.#state = { terminated: terminatedState(termination) };
    this.#deps.changed();
    return termination;
  }

  /** Undefined when it was stopped before it could start. */
  async #launch(): Promise<ContainerProcess | undefined> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        const launch = launchOf(this.container, this.#deps.images());
        const own = await containerEnvironment(this.container, this.#pod(), {
          ...this.#deps,
          base: { ...this.#deps.base, ...launch.env },
        });
        if (signal.aborted) return undefined;
        mkdirSync(this.#deps.directory, { recursive: true });
        return new ContainerProcess({
          directory: this.#deps.directory,
          hostname: this.#pod().spec.hostname ?? this.#pod().metadata.name,
          command: launch.command.map((word) => expand(word, own)),
          workingDir: launch.workingDir,
          env: own,
          mounts: withPaths(this.#deps.mounts, launch.paths),
          logFile: this.logFile(),
        });
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        const reason = error instanceof ImageError ? 'ErrImagePull' : 'CreateContainerConfigError';
        if (this.#state.waiting?.message !== message) this.#deps.event('Warning', 'Failed', `Error: ${message}`);
        this.#state = { waiting: { reason, message } };
        this.#deps.changed();
        await sleep(RETRY_START_MS, undefined, { signal }).catch(() => {});
      }
    }
    return undefined;
  }

  async #backOff(ms: number): Promise<void> {
    const message = `back-off ${ms / 1000}s restarting failed container ${this.container.name}`;
    this.#lastState = this.#state;
    this.#state = { waiting: { reason: 'CrashLoopBackOff', message } };
    this.#deps.changed();
    this.#deps.event('Warning', 'BackOff', message);
    await sleep(ms, undefined, { signal: this.#stopping.signal }).catch(() => {});
    this.#state = this.#lastState;
  }

  async #probe(process: ContainerProcess, signal: AbortSignal): Promise<void> {
    const target: ProbeTarget = {
      container: this.container,
      address: this.#deps.place.address,
      execute: (command, timeoutMs) => process.execute(command, timeoutMs),
    };
    const { startupProbe, readinessProbe, livenessProbe } = this.container;
    if (startupProbe) await this.#untilStarted(startupProbe, process, target, signal);
    if (signal.aborted) return;
    const set = (ready: boolean): void => {
      this.#ready = ready;
      this.#deps.changed();
    };
    if (startupProbe && !readinessProbe) set(true);
    const ready = (ok: boolean, message: string): void => {
      if (!ok) this.#deps.event('Warning', 'Unhealthy', `Readiness probe failed: ${message}`);
      set(ok);
    };
    const live = (ok: boolean, message: string): void => {
      if (!ok) this.#restart(process, `Liveness probe failed: ${message}`);
    };
    await Promise.all([
      readinessProbe && watchProbe(readinessProbe, target, ready, signal),
      livenessProbe && watchProbe(livenessProbe, target, live, signal),
    ]);
  }

  async #untilStarted(
    probe: Probe,
    process: ContainerProcess,
    target: ProbeTarget,
    signal: AbortSignal,
  ): Promise<void> {
    const started = new AbortController();
    await watchProbe(
      probe,
      target,
      (ok, message) => {
        started.abort();
        this.#started = ok;
        if (!ok) this.#restart(process, `Startup probe failed: ${message}`);
        this.#deps.changed();
      },
      AbortSignal.any([signal, started.signal]),
    );
  }

  #restart(process: ContainerProcess, message: string): void {
    this.#deps.event('Warning', 'Unhealthy', message);
    const graceMs = (this.#pod().spec.terminationGracePeriodSeconds ?? 30) * 1000;
    void process.stop(graceMs);
  }

  async #preStop(graceMs: number): Promise<void> {
    const hook = this.container.lifecycle?.preStop;
    const process = this.#process;
    if (!hook || !process) return;
    const target: ProbeTarget = {
      container: this.container,
      address: this.#deps.place.address,
      execute: (command, timeoutMs) => process.execute(command, timeoutMs),
    };
    try {
      if (hook.sleep) await Promise.race([process.terminated, sleep(Math.min(hook.sleep.seconds * 1000, graceMs))]);
      else await ask(hook, target, graceMs);
    } catch (error) {
      this.#deps.event('Warning', 'FailedPreStopHook', error instanceof Error ? error.message : String(error));
    }
  }
}

/** The mounts, those that others lie in first, and what they would hide of the image. */
function withPaths(mounts: readonly ContainerMount[], paths: readonly string[]): readonly ContainerMount[] {
  const hidden = paths.filter((path) => mounts.some(({ target }) => `${path}/`.startsWith(`${target}/`)));
  const own = hidden.map((path) => ({ source: path, target: path, readOnly: true }));
  return [...mounts, ...own].sort((a, b) => a.target.length - b.target.length);
}

/** RFC 3339 in whole seconds, as metav1.Time. */
export const timestamp = (date: Date): string => date.toISOString().replace(/\.\d+Z$/, 'Z');

function terminatedState({
  exitCode,
  signal,
  startedAt,
  finishedAt,
}: Termination): NonNullable<ContainerState['terminated']> {
  return {
    exitCode,
    ...(signal === undefined ? {} : { signal }),
    reason: exitCode === 0 ? 'Completed' : 'Error',
    startedAt: timestamp(startedAt),
    finishedAt: timestamp(finishedAt),
  };
}

/** What is known of a run whose end nobody saw. */
const lostState = ({ state, lastState }: ContainerStatus): ContainerState =>
  state.terminated
    ? state
    : state.running
      ? {
          terminated: {
            exitCode: 137,
            reason: 'Unknown',
            startedAt: state.running.startedAt,
            finishedAt: timestamp(new Date()),
          },
        }
      : lastState;
