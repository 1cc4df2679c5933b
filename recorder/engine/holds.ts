// Notices that one piece of work kept everything else waiting for seconds, and names the camera whose bytes it was.

import { Counter, type Registry } from 'prom-client';
import type { Clock } from '../../base/clock.ts';
import { threadCpuMs } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Warning } from '../../base/reason.ts';
import { MINUTE_MS } from '../../base/units.ts';
import type { CameraStatus } from '../contract/camera-status.ts';

/** Cameras keep what they send for about so long. */
const HELD_MS = 2_000;
/** For so long it is a warning. */
const SHOWN_MS = 10 * MINUTE_MS;
/** Of the time for which nothing else ran: a process that was stopped, or had no processor, was not held by its own work. */
const OWN_SHARE = 0.5;

interface HoldsDeps {
  readonly cameras: { list(): readonly { readonly status: CameraStatus }[] };
  readonly registry: Registry;
  readonly clock: Pick<Clock, 'monotonicMs' | 'wallMs'>;
  readonly log: Log;
  /** Processor time of this thread. */
  readonly cpuMs?: () => number;
}

export class Holds {
  readonly #deps: HoldsDeps;
  readonly #cpuMs: () => number;
  readonly #seconds: Counter<'by'>;
  #last: { readonly atMs: number; readonly cpuMs: number } | undefined;
  #held: { readonly warning: Warning; readonly untilMs: number } | undefined;

  constructor(deps: HoldsDeps) {
    this.#deps = deps;
    this.#cpuMs = deps.cpuMs ?? threadCpuMs;
    this.#seconds = new Counter({
      name: 'kube_nvr_held_seconds_total',
      help: 'Time for which one piece of work kept everything else waiting for two seconds or more: a read from a camera, or other.',
      labelNames: ['by'],
      registers: [deps.registry],
    });
    for (const by of ['camera', 'other']) this.#seconds.inc({ by }, 0);
  }

  /** To be called a few times a second. */
  tick(): void {
    const now = { atMs: this.#deps.clock.monotonicMs(), cpuMs: this.#cpuMs() };
    const { atMs = now.atMs, cpuMs = now.cpuMs } = this.#last ?? {};
    this.#last = now;
    const heldMs = now.atMs - atMs;
    if (heldMs >= HELD_MS && now.cpuMs - cpuMs >= OWN_SHARE * heldMs) this.#report(heldMs, now.atMs);
  }

  /** That of the last ten minutes. */
  warnings(): readonly Warning[] {
    return this.#held && this.#deps.clock.monotonicMs() < this.#held.untilMs ? [this.#held.warning] : [];
  }

  #report(heldMs: number, nowMs: number): void {
    const { cameras, clock, log } = this.#deps;
    const culprit = cameras.list().find(({ status }) => status.counters.longestHoldMs >= OWN_SHARE * heldMs);
    const cameraId = culprit?.status.id;
    const seconds = (heldMs / 1000).toFixed(1);
    const what = cameraId === undefined ? 'a request, a job or a change of the configuration' : 'what the camera sent';
    const message = `${what} held the recorder for ${seconds} s until ${new Date(clock.wallMs()).toISOString()}`;
    log.warn({ camera: cameraId, seconds }, 'one piece of work kept everything else waiting');
    this.#seconds.inc({ by: cameraId === undefined ? 'other' : 'camera' }, heldMs / 1000);
    this.#held = { warning: { code: 'recorder-held', message, cameraId }, untilMs: nowMs + SHOWN_MS };
  }
}
