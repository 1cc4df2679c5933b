// The metrics of what is sent to collectors. Separate from the code that sends, which is loaded when there is a collector.

import { Counter, Gauge, type Registry } from 'prom-client';
import type { Delivery } from './delivery.ts';

type Figures = Pick<Delivery, 'to' | 'accepted' | 'refused' | 'behindMs'>;

export function registerDeliveryMetrics(registry: Registry, deliveries: () => readonly Figures[]): void {
  registry.registerMetric(
    new Counter({
      name: 'kube_nvr_audit_sent_lines_total',
      help: 'Audit lines that were sent to a collector (syslog or otlp), by outcome: accepted, or refused for ever.',
      labelNames: ['to', 'outcome'],
      registers: [],
      collect() {
        this.reset();
        for (const { to, accepted, refused } of deliveries()) {
          this.inc({ to, outcome: 'accepted' }, accepted);
          this.inc({ to, outcome: 'refused' }, refused);
        }
      },
    }),
  );
  registry.registerMetric(
    new Gauge({
      name: 'kube_nvr_audit_behind_seconds',
      help: 'Age of the newest audit line that a collector has. A recorder writes one every five minutes.',
      labelNames: ['to'],
      registers: [],
      collect() {
        this.reset();
        for (const delivery of deliveries()) this.set({ to: delivery.to }, delivery.behindMs() / 1000);
      },
    }),
  );
}
