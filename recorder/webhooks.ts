// The webhooks of a node: deliver events of the journal according to the settings. Also the command `recorder webhook`,
// which sends a test event to each webhook or creates a secret.

import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { NO_CAMERA_THERE } from '../base/networks.ts';
import type { Config, WebhookConfig } from './config/schema.ts';
import { makeEvent, matchesType } from './events/event.ts';
import type { EventJournal } from './events/journal.ts';
import { newWebhookSecret } from './events/signature.ts';
import { Webhook } from './events/webhook.ts';
import { postEvent, webhookAgent } from './events/webhook-post.ts';
import { inScope } from './http/camera-scope.ts';
import { parsedArgs } from './options.ts';
import { CameraNetworks, type NetworkRules } from './reach/networks.ts';
import { UsageError } from './usage-error.ts';

interface WebhooksDeps {
  readonly journal: EventJournal;
  /** The directory of the stored positions in the journal. */
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Log;
}

interface Opened {
  readonly target: WebhookConfig;
  readonly webhook: Webhook;
  readonly agent: ReturnType<typeof webhookAgent>;
}

/**
 * In a cluster, the users that write pools do not own the network: nothing is sent to this machine, to metadata services of
 * clouds, or to the networks of the cluster.
 */
const rulesOf = ({ cluster }: Config): NetworkRules => ({
  refused: cluster.mode === 'none' ? [] : [...NO_CAMERA_THERE, ...cluster.networks],
});

/** The webhooks of the current configuration. */
export class Webhooks {
  readonly #o: WebhooksDeps;
  readonly #networks = new CameraNetworks();
  #opened: readonly Opened[] = [];
  /** One change at a time. */
  #work: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(deps: WebhooksDeps) {
    this.#o = deps;
  }

  /** In the order of the configuration. */
  get list(): readonly Webhook[] {
    return this.#opened.map(({ webhook }) => webhook);
  }

  /**
   * Opens new webhooks, which get the events after `beginId`, and closes removed ones. Unchanged webhooks continue,
   * including a running delivery. Never rejects.
   */
  configure(config: Config, beginId: number): Promise<void> {
    this.#work = this.#work.then(() => this.#apply(config, beginId));
    return this.#work;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#work;
    await Promise.all(this.#opened.map(closeOne));
  }

  async #apply(config: Config, beginId: number): Promise<void> {
    if (this.#isClosed) return;
    const { webhooks, webhooksFile: file } = config;
    const before = this.#opened;
    this.#networks.configure(rulesOf(config));
    const after = webhooks.map(
      (target) => before.find((one) => isDeepStrictEqual(one.target, target)) ?? this.#open(target),
    );
    const gone = before.filter((one) => !after.includes(one));
    const added = after.filter((one) => !before.includes(one));
    // Closed first: a webhook with a new secret continues at the position of the old one.
    await Promise.all(gone.map(closeOne));
    const placeOf = (url: string) => gone.find(({ target }) => target.url === url)?.webhook.position;
    await Promise.all(added.map(({ target, webhook }) => webhook.start(placeOf(target.url) ?? beginId)));
    this.#opened = after;
    if (added.length + gone.length > 0) {
      this.#o.log.info({ added: added.map(hostOf), removed: gone.map(hostOf) }, 'the webhooks were replaced');
    } else if (after.length === 0) this.#o.log.info({ file }, 'there are no webhooks: the file is missing or empty');
  }

  #open(target: WebhookConfig): Opened {
    const { journal, directory, clock, log } = this.#o;
    const networks = this.#networks;
    // One agent per webhook, so that a slow receiver does not delay others.
    const agent = webhookAgent(networks);
    const webhook = new Webhook({
      journal,
      directory,
      url: target.url,
      // An event about several cameras is sent only if the webhook covers all of them.
      wants: ({ type, cameraIds }) =>
        matchesType(target.events, type) && cameraIds.every((id) => !target.cameras || inScope(target.cameras, id)),
      post: (event, signal) => postEvent(target, event, { networks, agent, wallMs: clock.wallMs() }, signal),
      clock,
      log,
    });
    return { target, webhook, agent };
  }
}

async function closeOne({ webhook, agent }: Opened): Promise<void> {
  await webhook.close();
  await agent.destroy();
}

/** The address without its secret parts. */
const hostOf = ({ target }: Opened): string => new URL(target.url).host;

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
  const networks = new CameraNetworks(rulesOf(config));
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
