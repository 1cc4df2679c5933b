// The configuration in effect: includes the changes that a reload applies, but not those that need a restart.

import { reloadedSettings } from './changes.ts';
import type { Config } from './schema.ts';

export class CurrentConfig {
  #value: Config;

  constructor(config: Config) {
    this.#value = config;
  }

  get value(): Config {
    return this.#value;
  }

  /** Applies the settings that need no restart. */
  takeUp(next: Config): void {
    this.#value = reloadedSettings(this.#value, next);
  }
}
