// The webhooks of a node. Their code is loaded when there is a webhook.

import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Config } from '../config/schema.ts';
import type { EventJournal } from '../events/journal.ts';
import type { Webhooks } from './webhooks.ts';

interface NodeWebhooksDeps {
  readonly workDir: string;
  readonly journal: EventJournal;
  readonly clock: Clock;
  readonly log: Log;
}

export class NodeWebhooks {
  readonly #options: NodeWebhooksDeps;
  #webhooks: Webhooks | undefined;

  constructor(deps: NodeWebhooksDeps) {
    this.#options = deps;
  }

  /** In the order of the configuration. */
  get list(): Webhooks['list'] {
    return this.#webhooks?.list ?? [];
  }

  /** Like `Webhooks.configure`. */
  async configure(config: Config, beginId: number): Promise<void> {
    if (!this.#webhooks) {
      if (config.webhooks.length === 0 && config.webhooksFile === undefined) return;
      const { workDir, journal, clock, log } = this.#options;
      const { Webhooks } = await import('./webhooks.ts');
      this.#webhooks = new Webhooks({ journal, directory: join(workDir, 'events'), clock, log });
    }
    await this.#webhooks.configure(config, beginId);
  }

  async close(): Promise<void> {
    await this.#webhooks?.close();
  }
}
