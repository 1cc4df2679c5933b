// The issuers of the configuration. Their library is loaded when somebody signs in there for the first time.

import { isDeepStrictEqual } from 'node:util';
import type { IssuerConfig } from '../config/schema.ts';
import type { Issuer, IssuerDeps } from './issuer.ts';

interface ConfiguredIssuer {
  readonly config: IssuerConfig;
  issuer?: Promise<Issuer>;
}

export class Issuers {
  readonly #deps: IssuerDeps;
  #known: readonly ConfiguredIssuer[] = [];

  constructor(configs: readonly IssuerConfig[], deps: IssuerDeps) {
    this.#deps = deps;
    this.replace(configs);
  }

  /** In the order of the configuration. */
  get list(): readonly IssuerConfig[] {
    return this.#known.map(({ config }) => config);
  }

  /** Those that are the same continue. */
  replace(configs: readonly IssuerConfig[]): void {
    const before = this.#known;
    this.#known = configs.map((config) => before.find((one) => isDeepStrictEqual(one.config, config)) ?? { config });
    for (const one of before) if (!this.#known.includes(one)) void closed(one);
  }

  /** Undefined for a name that the configuration does not have. */
  find(name: string): { readonly config: IssuerConfig; readonly issuer: () => Promise<Issuer> } | undefined {
    const known = this.#known.find(({ config }) => config.name === name);
    return known && { config: known.config, issuer: () => this.#opened(known) };
  }

  async close(): Promise<void> {
    await Promise.all(this.#known.map(closed));
  }

  #opened(known: ConfiguredIssuer): Promise<Issuer> {
    known.issuer ??= import('./issuer.ts').then(({ Issuer }) => new Issuer(known.config, this.#deps));
    return known.issuer;
  }
}

const closed = async ({ issuer }: ConfiguredIssuer): Promise<void> => (await issuer)?.close();
