// The metrics of webhooks: deliveries and backlog. Separate from the code that delivers, which is loaded when there is a
// webhook.

import type { Registry } from 'prom-client';
import { scraped } from '../../base/scraped.ts';
import type { Webhook } from '../events/webhook.ts';

type Figures = Pick<Webhook, 'delivered' | 'failed' | 'behindMs'>;

/** `webhooks`: in the order of the configuration. */
export function registerWebhookMetrics(registry: Registry, webhooks: () => readonly Figures[]): void {
  const { counter, gauge } = scraped(registry);
  // The label is the index in the configuration: the address may contain a secret.
  const labelsOf = (i: number) => ({ webhook: String(i + 1) });
  counter(
    'webhook_deliveries_total',
    'Events that were sent to a webhook, by outcome: delivered, or failed (sent again later).',
    ['webhook', 'outcome'],
    () =>
      webhooks().flatMap(({ delivered, failed }, i) => [
        [{ ...labelsOf(i), outcome: 'delivered' }, delivered],
        [{ ...labelsOf(i), outcome: 'failed' }, failed],
      ]),
  );
  gauge(
    'webhook_behind_seconds',
    'Age of the oldest event that a webhook has not accepted; 0 when it has accepted all.',
    ['webhook'],
    () => webhooks().map((webhook, i) => [labelsOf(i), webhook.behindMs() / 1000]),
  );
}
