// Measures the objectives of a node, or at the leading node those of its cluster, over the time up to now: for metrics, alerts and the
// status of the cluster. The numbers are those of reports.

import { Gauge, type Registry } from 'prom-client';
import type { Clock } from '../../base/clock.ts';
import type { Interval } from '../../base/interval.ts';
import type { Log } from '../../base/log.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/units.ts';
import type { MeasuredObjective } from '../contract/measured-objective.ts';
import { recordedIn, type Recorded, type RecordedTime } from './days.ts';
import { balanceOf, covers, worstOf, type Balance, type Objective } from './objective.ts';

interface WatchOptions {
  readonly objectives: () => readonly Objective[];
  /** All cameras. Never rejects. */
  readonly cameraIds: () => Promise<readonly string[]>;
  /** In the order of the ids. */
  readonly accounts: (cameraIds: readonly string[], interval: Interval) => Promise<readonly RecordedTime[]>;
  /** False in a cluster that another node leads. */
  readonly isMine: () => boolean;
  /** Called with each measurement of whole windows; with an empty one when this node stops to measure. */
  readonly measured: (measured: readonly MeasuredObjective[]) => void;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly log: Log;
}

/** The windows of burn rates. Those up to `SHORT_MS` are measured each minute, the others every five minutes. */
const WINDOWS: readonly (readonly [name: string, ms: number])[] = [
  ['5m', 5 * MINUTE_MS],
  ['30m', 30 * MINUTE_MS],
  ['1h', HOUR_MS],
  ['6h', 6 * HOUR_MS],
  ['3d', 3 * DAY_MS],
];
const SHORT_MS = 6 * HOUR_MS;
const LONG_EVERY = 5;
const CAMERAS_AT_ONCE = 16;

export class ObjectiveWatch {
  readonly #options: WatchOptions;
  readonly #burnRate: Gauge<'objective' | 'window'>;
  readonly #left: Gauge<'objective'>;
  readonly #achieved: Gauge<'objective'>;
  /** What is measured now, as text. */
  #subject = '[]';
  #work: Promise<void> | undefined;
  #dueMs = -Infinity;
  #turn = 0;

  constructor(options: WatchOptions) {
    this.#options = options;
    const registers = [options.registry];
    this.#burnRate = new Gauge({
      name: 'kube_nvr_objective_burn_rate',
      help: 'How fast the budget of an objective is used up in a window up to now: 1 uses it up exactly.',
      labelNames: ['objective', 'window'],
      registers,
    });
    this.#left = new Gauge({
      name: 'kube_nvr_objective_budget_left_seconds',
      help: 'How much may still be missing in the window of an objective; below 0, it is not met.',
      labelNames: ['objective'],
      registers,
    });
    this.#achieved = new Gauge({
      name: 'kube_nvr_objective_achieved_ratio',
      help: 'How much of the time was recorded in the window of an objective.',
      labelNames: ['objective'],
      registers,
    });
  }

  /** To be called about once a second. */
  tick(): void {
    const { clock, log } = this.#options;
    if (this.#work || clock.monotonicMs() < this.#dueMs) return;
    this.#dueMs = clock.monotonicMs() + MINUTE_MS;
    this.#work = this.#measure()
      .catch((err: unknown) => log.warn({ err }, 'objectives cannot be measured'))
      .finally(() => (this.#work = undefined));
  }

  async close(): Promise<void> {
    await this.#work;
  }

  async #measure(): Promise<void> {
    const { objectives, cameraIds, isMine, measured, clock } = this.#options;
    const all = isMine() ? objectives() : [];
    const subject = JSON.stringify(all);
    if (subject !== this.#subject) {
      this.#subject = subject;
      this.#turn = 0;
      for (const gauge of [this.#burnRate, this.#left, this.#achieved]) gauge.reset();
      if (all.length === 0) measured([]);
    }
    if (all.length === 0) return;
    const isLong = this.#turn++ % LONG_EVERY === 0;
    const toMs = Math.floor(clock.wallMs());
    const longestMs = isLong
      ? Math.max(...all.map(({ windowMs }) => windowMs), ...WINDOWS.map(([, ms]) => ms))
      : SHORT_MS;
    const ids = (await cameraIds()).filter((id) => all.some((objective) => covers(objective, id)));
    const accounts = await this.#accountsOf(ids, { fromMs: toMs - longestMs, toMs });
    const recordedOf = (objective: Objective, ms: number): (readonly [string, Recorded])[] =>
      [...accounts].flatMap(([id, account]) =>
        covers(objective, id)
          ? recordedIn([{ fromMs: toMs - ms, toMs }], account).map((recorded) => [id, recorded] as const)
          : [],
      );
    const balance = (objective: Objective, ms: number): Balance =>
      balanceOf(
        objective,
        recordedOf(objective, ms).map(([, recorded]) => recorded),
      );
    for (const objective of all) {
      for (const [window, ms] of WINDOWS) {
        if (ms <= longestMs)
          this.#burnRate.set({ objective: objective.name, window }, burnRate(balance(objective, ms)));
      }
    }
    if (!isLong) return;
    const found = all.map((objective): MeasuredObjective => {
      const parts = recordedOf(objective, objective.windowMs);
      const worst = worstOf(
        objective,
        parts.map(([id, part]) => ({ id, parts: [part] })),
      );
      const { achieved, missingMs, budgetMs, budgetLeftMs } = balance(objective, objective.windowMs);
      return {
        name: objective.name,
        atMs: toMs,
        cameras: parts.length,
        achieved,
        missingMs,
        budgetMs,
        budgetLeftMs,
        worst: worst.map(({ id: cameraId, balance: { missingMs: ms } }) => ({ cameraId, missingMs: ms })),
      };
    });
    for (const { name: objective, budgetLeftMs, achieved } of found) {
      this.#left.set({ objective }, budgetLeftMs / 1_000);
      this.#achieved.set({ objective }, (achieved ?? 100) / 100);
    }
    measured(found);
  }

  async #accountsOf(ids: readonly string[], interval: Interval): Promise<ReadonlyMap<string, RecordedTime>> {
    const found = new Map<string, RecordedTime>();
    for (let i = 0; i < ids.length; i += CAMERAS_AT_ONCE) {
      const some = ids.slice(i, i + CAMERAS_AT_ONCE);
      const accounts = await this.#options.accounts(some, interval);
      for (const [at, id] of some.entries()) found.set(id, accounts[at] as RecordedTime);
    }
    return found;
  }
}

/** Infinity where nothing may be missing, and something is. */
const burnRate = ({ recordedMs, missingMs, budgetMs }: Balance): number =>
  missingMs === 0 || recordedMs + missingMs === 0 ? 0 : missingMs / budgetMs;
