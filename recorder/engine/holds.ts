// Notices that nothing ran for seconds: because of one piece of work, then it names the camera whose bytes it was, or because the machine
// did not let this process run.

import { Counter, type Registry } from 'prom-client';
import type { Clock } from '../../base/clock.ts';
import { threadCpuMs } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Warning } from '../../base/reason.ts';
import { scraped } from '../../base/scraped.ts';
import { MINUTE_MS } from '../../base/units.ts';
import { withheldTime, type WithheldTime } from '../../base/withheld-time.ts';
import type { CameraStatus } from '../contract/camera-status.ts';

/** Cameras keep what they send for about so long. */
const HELD_MS = 2_000;
/** A busy machine takes the processor away for a second or two now and then; nobody needs to be told. */
const FROZEN_MS = 5_000;
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
  readonly withheld?: () => WithheldTime;
}

/** Why nothing ran. */
type Frozen = 'throttled' | 'stolen' | 'other';

const WHY: Readonly<Record<Frozen, string>> = {
  throttled: 'its control group had used up its processor time',
  stolen: 'the hypervisor gave the processors to others',
  other: 'it was stopped, its machine was paused, or other programs had the processors',
};

export class Holds {
  readonly #deps: HoldsDeps;
  readonly #cpuMs: () => number;
  readonly #withheld: () => WithheldTime;
  readonly #seconds: Counter<'by'>;
  readonly #frozen: Counter<'by'>;
  #last: { readonly atMs: number; readonly cpuMs: number } | undefined;
  #lastWithheld: WithheldTime;
  #withheldAtMs: number;
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
    this.#frozen = new Counter({
      name: 'kube_nvr_machine_frozen_seconds_total',
      help: 'Time in which this process stood still for two seconds or more without work of its own, because its control group was throttled, its hypervisor had stolen the processors, or other.',
      labelNames: ['by'],
      registers: [deps.registry],
    });
    for (const by of Object.keys(WHY)) this.#frozen.inc({ by }, 0);
    this.#withheld = deps.withheld ?? withheldTime;
    this.#lastWithheld = this.#withheld();
    this.#withheldAtMs = deps.clock.monotonicMs();
    const { gauge } = scraped(deps.registry);
    gauge(
      'machine_stolen_seconds',
      'Time that the hypervisor took from all processors of this machine.',
      [],
      () => this.#withheld().stolenMs / 1000,
    );
    gauge(
      'machine_throttled_seconds',
      'Time for which the control group of this process had used up its processor time.',
      [],
      () => this.#withheld().throttledMs / 1000,
    );
  }

  /** To be called a few times a second. */
  tick(): void {
    const now = { atMs: this.#deps.clock.monotonicMs(), cpuMs: this.#cpuMs() };
    const { atMs = now.atMs, cpuMs = now.cpuMs } = this.#last ?? {};
    this.#last = now;
    const heldMs = now.atMs - atMs;
    if (heldMs < HELD_MS) {
      if (now.atMs - this.#withheldAtMs >= HELD_MS) this.#look(now.atMs);
    } else if (now.cpuMs - cpuMs >= OWN_SHARE * heldMs) this.#report(heldMs, now.atMs);
    else this.#reportFrozen(heldMs, now.atMs);
  }

  /** What was withheld since the last look. */
  #look(nowMs: number): WithheldTime {
    const before = this.#lastWithheld;
    this.#lastWithheld = this.#withheld();
    this.#withheldAtMs = nowMs;
    const { stolenMs, throttledMs } = this.#lastWithheld;
    return { stolenMs: stolenMs - before.stolenMs, throttledMs: throttledMs - before.throttledMs };
  }

  #reportFrozen(frozenMs: number, nowMs: number): void {
    const { clock, log } = this.#deps;
    const { stolenMs, throttledMs } = this.#look(nowMs);
    const least = OWN_SHARE * frozenMs;
    const by: Frozen = throttledMs >= least ? 'throttled' : stolenMs >= least ? 'stolen' : 'other';
    this.#frozen.inc({ by }, frozenMs / 1000);
    if (frozenMs < FROZEN_MS) return;
    const seconds = (frozenMs / 1000).toFixed(1);
    const message = `the recorder stood still for ${seconds} s until ${new Date(clock.wallMs()).toISOString()}: ${WHY[by]}`;
    log.warn({ seconds, by }, 'the machine did not let this process run');
    this.#held = { warning: { code: 'machine-frozen', message, cameraId: undefined }, untilMs: nowMs + SHOWN_MS };
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
