// A recording objective: which part of the time that should be recorded must be recorded. The rest is a budget, which gaps use up.

import { inScope } from '../../base/camera-scope.ts';
import type { GapCause } from '../contract/gap-cause.ts';
import { sumOf, type Recorded } from './days.ts';

export interface Objective {
  readonly name: string;
  /** Ids, in which `*` stands for any characters; undefined: all cameras. */
  readonly cameras?: readonly string[] | undefined;
  /** Percent, with at most three decimals. */
  readonly target: number;
  readonly windowMs: number;
  /** Gaps with these causes do not count. */
  readonly excused: readonly GapCause[];
}

/** What an objective says of some time of its cameras. */
export interface Balance {
  readonly recordedMs: number;
  /** Without excused time. */
  readonly missingMs: number;
  readonly excusedMs: number;
  /** Percent, rounded down to four decimals; null if nothing should have been recorded. */
  readonly achieved: number | null;
  /** How much may be missing. */
  readonly budgetMs: number;
  /** Below zero: the objective is not met. */
  readonly budgetLeftMs: number;
}

export const covers = ({ cameras }: Pick<Objective, 'cameras'>, cameraId: string): boolean =>
  cameras === undefined || inScope(cameras, cameraId);

const THOUSANDTHS = 1_000;
const WORST = 5;

export function balanceOf(
  { target, excused }: Pick<Objective, 'target' | 'excused'>,
  all: readonly Recorded[],
): Balance {
  const { recordedMs, missingMs: goneMs, byCause } = sumOf(all);
  const excusedMs = excused.reduce((sum, cause) => sum + (byCause.get(cause) ?? 0), 0);
  const missingMs = goneMs - excusedMs;
  const wantedMs = recordedMs + missingMs;
  const budgetMs = share(wantedMs, Math.round((100 - target) * THOUSANDTHS), 100 * THOUSANDTHS);
  return {
    recordedMs,
    missingMs,
    excusedMs,
    achieved: wantedMs === 0 ? null : share(1_000_000, recordedMs, wantedMs) / 10_000,
    budgetMs,
    budgetLeftMs: budgetMs - missingMs,
  };
}

/** The cameras of an objective that miss most, the worst first: at most five, and none that misses nothing. */
export function worstOf(
  objective: Pick<Objective, 'target' | 'excused'>,
  cameras: readonly { readonly id: string; readonly parts: readonly Recorded[] }[],
): { readonly id: string; readonly balance: Balance }[] {
  return cameras
    .map(({ id, parts }) => ({ id, balance: balanceOf(objective, parts) }))
    .filter(({ balance }) => balance.missingMs > 0)
    .sort((a, b) => b.balance.missingMs - a.balance.missingMs || (a.id < b.id ? -1 : 1))
    .slice(0, WORST);
}

/** `a * b / c`, rounded down: months of a thousand cameras are more than a number can hold times a million. */
const share = (a: number, b: number, c: number): number => Number((BigInt(a) * BigInt(b)) / BigInt(c));
