// The metrics of gaps that are filled from the memories of cameras.

import { Counter, Registry } from 'prom-client';
import { scraped } from '../../../base/scraped.ts';
import type { NotFilledReason } from '../../contract/gap-fill.ts';

export class EdgeMetrics {
  readonly #ended: Counter<'result'>;

  /** `running`: gaps that are being filled now. */
  constructor(registry: Registry = new Registry(), running: () => number = () => 0) {
    this.#ended = new Counter({
      name: 'kube_nvr_edge_fills_total',
      help: 'Gaps that were to be filled from the memory of a camera, by result: filled, or why not all of it was.',
      labelNames: ['result'],
      registers: [registry],
    });
    this.#ended.inc({ result: 'filled' }, 0);
    scraped(registry).gauge(
      'edge_replays',
      'Gaps that are being filled from the memories of cameras now.',
      [],
      running,
    );
  }

  ended(result: 'filled' | NotFilledReason): void {
    this.#ended.inc({ result });
  }
}
