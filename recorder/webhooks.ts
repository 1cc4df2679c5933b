// The webhooks of a node, joined from their room: settings and journal in, deliveries and their metrics out. And
// `recorder webhook`: a test event to each of them, or a new secret.

import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { NO_CAMERA_THERE } from '../base/networks.ts';
import type { Config } from './config/schema.ts';
import { makeEvent, matchesType } from './events/event.ts';
import type { EventJournal } from './events/journal.ts';
import { newWebhookSecret } from './events/signature.ts';
import { Webhook } from './events/webhook.ts';
import { postEvent, webhookAgent } from './events/webhook-post.ts';
import { inScope } from './http/camera-scope.ts';
import { CameraNetworks } from './reach/networks.ts';

export interface Webhooks {
  close(): Promise<void>;
}

export interface WebhooksDeps {
  readonly journal: EventJournal;
  /** A new webhook gets what is behind this event. */
  readonly beginId: number;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * In a cluster those who write pools are not those who own the network: nothing is sent to this machine, to what clouds tell
 * their machines, or to the cluster's own networks.
 */
const networksFor = ({ cluster }: Config): CameraNetworks =>
  new CameraNetworks({ refused: cluster.mode === 'none' ? [] : [...NO_CAMERA_THERE, ...cluster.networks] });

export async function openWebhooks(config: Config, deps: WebhooksDeps): Promise<Webhooks> {
  const { journal, beginId, registry, clock, log } = deps;
  const networks = networksFor(config);
  const opened = config.webhooks.map((target) => {
    // One each: who is slow has connections of its own.
    const agent = webhookAgent(networks);
    const webhook = new Webhook({
      journal,
      directory: join(config.workDir, 'events'),
      url: target.url,
      // Of what concerns several cameras, all must be its own.
      wants: ({ type, cameraIds }) =>
        matchesType(target.events, type) && cameraIds.every((id) => !target.cameras || inScope(target.cameras, id)),
      post: (event, signal) => postEvent(target, event, { networks, agent, wallMs: clock.wallMs() }, signal),
      clock,
      log,
    });
    return { webhook, agent };
  });
  registerWebhookMetrics(registry, opened);
  await Promise.all(opened.map(({ webhook }) => webhook.start(beginId)));
  return {
    async close() {
      await Promise.all(
        opened.map(async ({ webhook, agent }) => {
          await webhook.close();
          await agent.destroy();
        }),
      );
    },
  };
}

type Figures = Pick<Webhook, 'delivered' | 'failed' | 'behindMs'>;

export function registerWebhookMetrics(registry: Registry, webhooks: readonly { readonly webhook: Figures }[]): void {
  // Its place in the configuration: the address may hold what is secret.
  const labelNames = ['webhook'];
  const each = (tell: (labels: { webhook: string }, webhook: Figures) => void): void =>
    webhooks.forEach(({ webhook }, i) => tell({ webhook: String(i + 1) }, webhook));
  registry.registerMetric(
    new Counter({
      name: 'kube_nvr_webhook_deliveries_total',
      help: 'Events that were sent to a webhook, by outcome: delivered, or failed and to be sent again.',
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
      help: 'Age of the oldest event that a webhook has not taken; 0 when it has all.',
      labelNames,
      registers: [],
      collect() {
        this.reset();
        each((labels, webhook) => this.set(labels, webhook.behindMs() / 1000));
      },
    }),
  );
}

export const WEBHOOK_USAGE = `Usage: recorder webhook test [--config FILE]
       recorder webhook secret

  test           send an event of the type webhook.test to each webhook of the configuration, and say what it answers
  secret         make a secret to sign with
  --config FILE  configuration (default /etc/recorder/config.yaml)
`;

/** Arguments that make no sense; the message is for people. */
export class UsageError extends Error {}

/** Resolves to the exit code. Throws `UsageError`, and what `load` throws. */
export async function runWebhook(
  args: readonly string[],
  deps: {
    readonly load: (file: string) => Promise<Config>;
    readonly print: (text: string) => void;
    readonly clock: Clock;
  },
): Promise<number> {
  const { command, file } = parse(args);
  if (command === 'help') deps.print(WEBHOOK_USAGE);
  if (command === 'secret') deps.print(`${newWebhookSecret()}\n`);
  if (command !== 'test') return 0;
  const config = await deps.load(file);
  if (config.webhooks.length === 0) deps.print('the configuration has no webhooks\n');
  const networks = networksFor(config);
  const agent = webhookAgent(networks);
  let code = 0;
  for (const target of config.webhooks) {
    const wallMs = deps.clock.wallMs();
    const told = { type: 'webhook.test', data: { message: 'this is a test' } } as const;
    const event = makeEvent(Math.floor(wallMs * 1000), told, wallMs, config.nodeName);
    const delivery = await postEvent(target, event, { networks, agent, wallMs }, new AbortController().signal);
    if (!delivery.taken) code = 1;
    deps.print(`${new URL(target.url).host}: ${delivery.taken ? 'ok' : delivery.problem}\n`);
  }
  await agent.destroy();
  return code;
}

function parse(args: readonly string[]): { command: 'test' | 'secret' | 'help'; file: string } {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        config: { type: 'string', default: '/etc/recorder/config.yaml' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    const [command] = positionals;
    if (values.help) return { command: 'help', file: '' };
    if ((command === 'test' || command === 'secret') && positionals.length === 1)
      return { command, file: values.config };
  } catch (err) {
    throw new UsageError((err as Error).message, { cause: err });
  }
  throw new UsageError('expected "webhook test" or "webhook secret"');
}
