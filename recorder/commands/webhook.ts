// `recorder webhook`: sends a test event to each webhook of the configuration, or makes a secret.

import { makeEvent } from '../contract/event.ts';
import { newWebhookSecret } from '../events/signature.ts';
import { postEvent, webhookAgent } from '../events/webhook-post.ts';
import { CameraNetworks } from '../reach/networks.ts';
import { webhookRules } from '../front/webhooks.ts';
import { CONFIG_OPTION, parsedArgs, UsageError, type CommandContext } from './command.ts';

export const usage = `Usage: recorder webhook test [--config FILE]
       recorder webhook secret

  test           send an event of the type webhook.test to each webhook of the configuration, and say what it answers
  secret         make a secret to sign with
  --config FILE  configuration (default /etc/recorder/config.yaml)
`;

export async function run(
  args: readonly string[],
  { load, print, clock }: Pick<CommandContext, 'load' | 'print' | 'clock'>,
): Promise<number> {
  const { values, positionals } = parsedArgs(args, { options: CONFIG_OPTION, allowPositionals: true });
  const [command, ...more] = positionals;
  if ((command !== 'test' && command !== 'secret') || more.length > 0) {
    throw new UsageError('expected "webhook test" or "webhook secret"');
  }
  if (command === 'secret') return (print(`${newWebhookSecret()}\n`), 0);
  const config = await load(values.config);
  if (config.webhooks.length === 0) {
    const { webhooksFile: file } = config;
    print(`the configuration has no webhooks${file === undefined ? '' : `, and ${file} has none or is missing`}\n`);
  }
  const networks = new CameraNetworks(webhookRules(config));
  const agent = webhookAgent(networks);
  let code = 0;
  for (const target of config.webhooks) {
    const wallMs = clock.wallMs();
    const told = { type: 'webhook.test', data: { message: 'this is a test' } } as const;
    const event = makeEvent(Math.floor(wallMs * 1000), told, wallMs, config.nodeName);
    const delivery = await postEvent(target, event, { networks, agent, wallMs }, new AbortController().signal);
    if (!delivery.taken) code = 1;
    print(`${new URL(target.url).host}: ${delivery.taken ? 'ok' : delivery.problem}\n`);
  }
  await agent.destroy();
  return code;
}
