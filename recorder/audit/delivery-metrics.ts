// The metrics of what is sent to collectors. Separate from the code that sends, which is loaded when there is a collector.

import type { Registry } from 'prom-client';
import { scraped } from '../../base/scraped.ts';
import type { Delivery } from './delivery.ts';

type Figures = Pick<Delivery, 'to' | 'accepted' | 'refused' | 'behindMs'>;

export function registerDeliveryMetrics(registry: Registry, deliveries: () => readonly Figures[]): void {
  const { counter, gauge } = scraped(registry);
  counter(
    'audit_sent_lines_total',
    'Audit lines that were sent to a collector (syslog or otlp), by outcome: accepted, or refused for ever.',
    ['to', 'outcome'],
    () =>
      deliveries().flatMap(({ to, accepted, refused }) => [
        [{ to, outcome: 'accepted' }, accepted],
        [{ to, outcome: 'refused' }, refused],
      ]),
  );
  gauge(
    'audit_behind_seconds',
    'Age of the newest audit line that a collector has. A recorder writes one every five minutes.',
    ['to'],
    () => deliveries().map((delivery) => [{ to: delivery.to }, delivery.behindMs() / 1000]),
  );
}
