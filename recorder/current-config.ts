// The configuration in effect: includes the changes that a reload applies, but not those that need a restart.

import type { Config } from './config/schema.ts';

export class CurrentConfig {
  #value: Config;

  constructor(config: Config) {
    this.#value = config;
  }

  get value(): Config {
    return this.#value;
  }

  /** Applies the settings that need no restart (`changedSettings` names the others). */
  takeUp(next: Config): void {
    const { log, archive, auth, metrics } = this.#value;
    const { syncIntervalMs, protectForMs } = archive;
    const { tokens, tokensFile, users, usersFile } = next.auth;
    this.#value = {
      ...this.#value,
      log: { ...log, level: next.log.level },
      archive: { ...next.archive, syncIntervalMs, protectForMs },
      cameras: next.cameras,
      auth: { ...auth, tokens, tokensFile, users, usersFile },
      metrics: { ...metrics, tokenSha256: next.metrics.tokenSha256 },
    };
  }
}
