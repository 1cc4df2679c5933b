// The metrics of the database for Prometheus.

import { Counter, Gauge, type Registry } from 'prom-client';
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
    const gauges = [
      new Gauge({
        name: 'kube_nvr_database_reachable',
        help: '1 while the database can be used.',
        registers: [],
        collect() {
          this.set(sources.reachable() ? 1 : 0);
        },
      }),
      new Gauge({
        name: 'kube_nvr_database_queue_rows',
        help: 'Changes of rows that wait to be sent to the database.',
        registers: [],
        collect() {
          this.set(sources.waiting());
        },
      }),
      new Gauge({
        name: 'kube_nvr_database_cameras',
        help: 'Cameras of this node in the database, by whether they can be recorded.',
        labelNames: ['state'],
        registers: [],
        collect() {
          const { used, refused } = sources.cameras();
          this.set({ state: 'used' }, used);
          this.set({ state: 'refused' }, refused);
        },
      }),
    ];
    for (const gauge of gauges) registry.registerMetric(gauge);
  }

  applied(changes: readonly RowChange[]): void {
    for (const { kind } of changes) this.#rows.inc({ change: kind === 'add' ? 'added' : 'removed' });
  }

  rejected(): void {
    this.#rejected.inc();
  }
}
