// The webhooks of a node: deliver events of the journal according to the settings.

import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { NO_CAMERA_THERE } from '../../base/networks.ts';
import type { Config, WebhookConfig } from '../config/schema.ts';
import { matchesType } from '../contract/event.ts';
import type { EventJournal } from '../events/journal.ts';
import { Webhook } from '../events/webhook.ts';
import { postEvent, webhookAgent } from '../events/webhook-post.ts';
import { inScope } from '../../base/camera-scope.ts';
import { CameraNetworks, type NetworkRules } from '../reach/networks.ts';

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
export const webhookRules = ({ cluster }: Config): NetworkRules => ({
  refused: cluster.mode === 'none' ? [] : [...NO_CAMERA_THERE, ...cluster.networks],
});

/** The webhooks of the current configuration. */
export class Webhooks {
  readonly #options: WebhooksDeps;
  readonly #networks = new CameraNetworks();
  #opened: readonly Opened[] = [];
  /** One change at a time. */
  #work: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(deps: WebhooksDeps) {
    this.#options = deps;
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
    this.#networks.configure(webhookRules(config));
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
      this.#options.log.info({ added: added.map(hostOf), removed: gone.map(hostOf) }, 'the webhooks were replaced');
    } else if (after.length === 0)
      this.#options.log.info({ file }, 'there are no webhooks: the file is missing or empty');
  }

  #open(target: WebhookConfig): Opened {
    const { journal, directory, clock, log } = this.#options;
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
