// The report of a month: one row a camera and day, and what each objective says of the month. It has no clock of its own: the same
// accounts make the same report at every node.

import type { Interval } from '../../base/interval.ts';
import { GAP_CAUSES, type GapCause } from '../contract/gap-cause.ts';
import { recordedIn, sumOf, type Recorded, type RecordedTime } from './days.ts';
import { balanceOf, covers, worstOf, type Balance, type Objective } from './objective.ts';

export interface ReportedCamera {
  readonly id: string;
  readonly name: string;
  readonly account: RecordedTime;
}

interface ReportInput {
  readonly month: string;
  readonly timeZone: string;
  readonly site: string;
  readonly days: readonly (Interval & { readonly date: string })[];
  readonly cameras: readonly ReportedCamera[];
  readonly objectives: readonly Objective[];
  /** Nodes that did not answer. */
  readonly silent: readonly string[];
}

/** As `/api/reports/{month}` answers it. */
export type Report = ReturnType<typeof reportOf>;

export function reportOf({ month, timeZone, site, days, cameras, objectives, silent }: ReportInput) {
  const rows = cameras.map(({ id, name, account }) => ({ id, name, days: recordedIn(days, account) }));
  return {
    month,
    time_zone: timeZone,
    site,
    from_ms: days[0]?.fromMs ?? 0,
    to_ms: days.at(-1)?.toMs ?? 0,
    silent_nodes: [...silent],
    objectives: objectives.map((objective) => {
      const covered = rows.filter(({ id }) => covers(objective, id));
      const worst = worstOf(
        objective,
        covered.map(({ id, days: parts }) => ({ id, parts })),
      );
      return {
        name: objective.name,
        target_percent: objective.target,
        excused: [...objective.excused],
        cameras: covered.length,
        ...toBalance(
          balanceOf(
            objective,
            covered.flatMap((camera) => camera.days),
          ),
        ),
        worst_cameras: worst.map(({ id, balance }) => ({ camera_id: id, ...toBalance(balance) })),
      };
    }),
    cameras: rows.map((camera) => ({ camera_id: camera.id, name: camera.name, ...toSums(sumOf(camera.days)) })),
    rows: rows.flatMap((camera) =>
      camera.days.flatMap((day, i) =>
        day.recordedMs + day.missingMs === 0
          ? []
          : [{ date: days[i]?.date ?? '', camera_id: camera.id, ...toSums(day) }],
      ),
    ),
  };
}

const toBalance = (balance: Balance) => ({
  recorded_ms: balance.recordedMs,
  missing_ms: balance.missingMs,
  excused_ms: balance.excusedMs,
  achieved_percent: balance.achieved,
  budget_ms: balance.budgetMs,
  budget_left_ms: balance.budgetLeftMs,
  met: balance.budgetLeftMs >= 0,
});

const toSums = ({ recordedMs, missingMs, byCause }: Recorded) => ({
  recorded_ms: recordedMs,
  missing_ms: missingMs,
  causes: GAP_CAUSES.flatMap((cause): { cause: GapCause; missing_ms: number }[] => {
    const ms = byCause.get(cause) ?? 0;
    return ms > 0 ? [{ cause, missing_ms: ms }] : [];
  }),
});
