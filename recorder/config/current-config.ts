// The configuration in effect: includes the changes that a reload applies, but not those that need a restart.

import type { Warning } from '../../base/reason.ts';
import { reloadedSettings } from './changes.ts';
import type { Config } from './schema.ts';

export class CurrentConfig {
  #value: Config;
  #refusal: string | undefined;

  constructor(config: Config) {
    this.#value = config;
  }

  get value(): Config {
    return this.#value;
  }

  /** Applies the settings that need no restart. */
  takeUp(next: Config): void {
    this.#value = reloadedSettings(this.#value, next);
    this.#refusal = undefined;
  }

  /** The files are not applied, for this reason, until they are read without an error. */
  refuse(problem: string): void {
    this.#refusal = problem;
  }

  warnings(): Warning[] {
    if (this.#refusal === undefined) return [];
    const message = `the configuration files are not applied, the settings before stay in use: ${this.#refusal}`;
    return [{ code: 'configuration-refused', message, cameraId: undefined }];
  }
}
