// The metrics of webhooks: deliveries and backlog. Separate from the code that delivers, which is loaded when there is a
// webhook.

import { Counter, Gauge, type Registry } from 'prom-client';
import type { Webhook } from '../events/webhook.ts';

type Figures = Pick<Webhook, 'delivered' | 'failed' | 'behindMs'>;

/** `webhooks`: in the order of the configuration. */
export function registerWebhookMetrics(registry: Registry, webhooks: () => readonly Figures[]): void {
  // The label is the index in the configuration: the address may contain a secret.
  const labelNames = ['webhook'];
  const each = (tell: (labels: { webhook: string }, webhook: Figures) => void): void =>
    webhooks().forEach((webhook, i) => tell({ webhook: String(i + 1) }, webhook));
  registry.registerMetric(
    new Counter({
      name: 'kube_nvr_webhook_deliveries_total',
      help: 'Events that were sent to a webhook, by outcome: delivered, or failed (sent again later).',
      labelNames: [...labelNames, 'outcome'],
      registers: [],
      collect() {
        this.reset();
        each((labels, { delivered, failed }) => {
          this.inc({ ...labels, outcome: 'delivered' }, delivered);
          this.inc({ ...labels, outcome: 'failed' }, failed);
        });
      },
    }),
  );
  registry.registerMetric(
    new Gauge({
      name: 'kube_nvr_webhook_behind_seconds',
      help: 'Age of the oldest event that a webhook has not accepted; 0 when it has accepted all.',
      labelNames,
      registers: [],
      collect() {
        this.reset();
        each((labels, webhook) => this.set(labels, webhook.behindMs() / 1000));
      },
    }),
  );
}
