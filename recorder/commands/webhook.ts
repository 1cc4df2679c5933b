// `recorder webhook`: sends a test event to each webhook of the configuration, or makes a secret.

import type { Clock } from '../../base/clock.ts';
import type { Config } from '../config/schema.ts';
import { makeEvent } from '../events/event.ts';
import { newWebhookSecret } from '../events/signature.ts';
import { postEvent, webhookAgent } from '../events/webhook-post.ts';
import { CameraNetworks } from '../reach/networks.ts';
import { webhookRules } from '../run/webhooks.ts';
import { parsedArgs } from './options.ts';
import { UsageError } from './usage-error.ts';

export const WEBHOOK_USAGE = `Usage: recorder webhook test [--config FILE]
       recorder webhook secret

  test           send an event of the type webhook.test to each webhook of the configuration, and say what it answers
  secret         make a secret to sign with
  --config FILE  configuration (default /etc/recorder/config.yaml)
`;

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
  if (config.webhooks.length === 0) {
    const { webhooksFile: file } = config;
    deps.print(
      `the configuration has no webhooks${file === undefined ? '' : `, and ${file} has none or is missing`}\n`,
    );
  }
  const networks = new CameraNetworks(webhookRules(config));
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
  const { values, positionals } = parsedArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      config: { type: 'string', default: '/etc/recorder/config.yaml' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const [command] = positionals;
  if (values.help) return { command: 'help', file: '' };
  if ((command === 'test' || command === 'secret') && positionals.length === 1) return { command, file: values.config };
  throw new UsageError('expected "webhook test" or "webhook secret"');
}
