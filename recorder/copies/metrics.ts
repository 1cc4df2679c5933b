// The metrics of copies. Separate from the code that copies, which is loaded when there is a target.

import { Counter, Gauge, type Registry } from 'prom-client';

/** Of one target. */
export interface CopyFigures {
  readonly name: string;
  readonly waitingFiles: number;
  lagMs(): number;
  readonly copiedFiles: number;
  readonly copiedBytes: number;
  readonly failures: number;
  readonly missedFiles: number;
}

export function registerCopyMetrics(registry: Registry, targets: () => readonly CopyFigures[]): void {
  const register = (
    Kind: typeof Counter | typeof Gauge,
    name: string,
    help: string,
    valueOf: (target: CopyFigures) => number,
  ): void => {
    const metric: Counter | Gauge = new Kind({
      name: `kube_nvr_copy_${name}`,
      help,
      labelNames: ['target'],
      registers: [],
      collect() {
        metric.reset();
        for (const target of targets()) metric.inc({ target: target.name }, valueOf(target));
      },
    });
    registry.registerMetric(metric);
  };
  register(
    Gauge,
    'lag_seconds',
    'How long the oldest file has waited to be copied; 0 if none waits.',
    (target) => target.lagMs() / 1000,
  );
  register(
    Gauge,
    'waiting_files',
    'Closed files that a target lacks and for which it is time within a day; of a long backlog, the newest.',
    ({ waitingFiles }) => waitingFiles,
  );
  register(Counter, 'copied_files_total', 'Files whose copy a target has confirmed.', ({ copiedFiles }) => copiedFiles);
  register(Counter, 'copied_bytes_total', 'Their size.', ({ copiedBytes }) => copiedBytes);
  register(Counter, 'failures_total', 'Attempts to copy that failed.', ({ failures }) => failures);
  register(
    Counter,
    'missed_files_total',
    'Files that retention removed before they were copied.',
    ({ missedFiles }) => missedFiles,
  );
}
