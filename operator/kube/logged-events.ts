// Events in the log, where no API server keeps them.

import type { Log } from '../../base/log.ts';
import type { EventText, Regarding } from './events.ts';

export class LoggedEvents {
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  record({ kind, metadata }: Regarding, { type, reason, note }: EventText): void {
    this.#log[type === 'Warning' ? 'warn' : 'info'](
      { kind, name: metadata.name, reason, note },
      'an event of the cluster',
    );
  }

  async close(): Promise<void> {}
}
