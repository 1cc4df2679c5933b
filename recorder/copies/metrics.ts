// The metrics of copies. Separate from the code that copies, which is loaded when there is a target.

import type { Registry } from 'prom-client';
import { scraped } from '../../base/scraped.ts';

/** Of one target. */
export interface CopyFigures {
  readonly name: string;
  readonly waitingFiles: number;
  lagMs(): number;
  readonly copiedFiles: number;
  readonly copiedBytes: number;
  readonly failures: number;
  readonly missedFiles: number;
  readonly fetchedFiles: number;
}

export function registerCopyMetrics(registry: Registry, targets: () => readonly CopyFigures[]): void {
  const { counter, gauge } = scraped(registry);
  const each = (valueOf: (target: CopyFigures) => number) => () =>
    targets().map((target) => [{ target: target.name }, valueOf(target)] as const);
  const target = ['target'];
  gauge(
    'copy_lag_seconds',
    'How long the oldest file has waited to be copied; 0 if none waits.',
    target,
    each((target) => target.lagMs() / 1000),
  );
  gauge(
    'copy_waiting_files',
    'Closed files that a target lacks and for which it is time within a day; of a long backlog, the newest.',
    target,
    each(({ waitingFiles }) => waitingFiles),
  );
  counter(
    'copy_copied_files_total',
    'Files whose copy a target has confirmed.',
    target,
    each(({ copiedFiles }) => copiedFiles),
  );
  counter(
    'copy_copied_bytes_total',
    'Their size.',
    target,
    each(({ copiedBytes }) => copiedBytes),
  );
  counter(
    'copy_failures_total',
    'Attempts to copy that failed.',
    target,
    each(({ failures }) => failures),
  );
  counter(
    'copy_missed_files_total',
    'Files that retention removed before they were copied.',
    target,
    each(({ missedFiles }) => missedFiles),
  );
  counter(
    'copy_fetched_files_total',
    'Files of a lost archive of this node that were fetched back.',
    target,
    each(({ fetchedFiles }) => fetchedFiles),
  );
}
