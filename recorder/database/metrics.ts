// The metrics of the database for Prometheus.

import { Counter, type Registry } from 'prom-client';
import { scraped } from '../../base/scraped.ts';
import type { RowChange } from './row.ts';

interface MetricSources {
  readonly reachable: () => boolean;
  readonly waiting: () => number;
  readonly cameras: () => { readonly used: number; readonly refused: number };
}

export class DatabaseMetrics {
  readonly #rows: Counter<'change'>;
  readonly #rejected: Counter;

  constructor(registry: Registry, sources: MetricSources) {
    const registers = [registry];
    this.#rows = new Counter({
      name: 'kube_nvr_database_rows_total',
      help: 'Rows of recordings that the database accepted, by change.',
      labelNames: ['change'],
      registers,
    });
    this.#rejected = new Counter({
      name: 'kube_nvr_database_rows_rejected_total',
      help: 'Rows that were skipped because the database refuses them.',
      registers,
    });
    const { gauge } = scraped(registry);
    gauge('database_reachable', '1 while the database can be used.', [], () => (sources.reachable() ? 1 : 0));
    gauge('database_queue_rows', 'Changes of rows that wait to be sent to the database.', [], sources.waiting);
    gauge('database_cameras', 'Cameras of this node in the database, by whether they can be recorded.', ['state'], () =>
      Object.entries(sources.cameras()).map(([state, cameras]) => [{ state }, cameras]),
    );
  }

  applied(changes: readonly RowChange[]): void {
    for (const { kind } of changes) this.#rows.inc({ change: kind === 'add' ? 'added' : 'removed' });
  }

  rejected(): void {
    this.#rejected.inc();
  }
}
