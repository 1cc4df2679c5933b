// Sign-ins with a password or a token of the recorder itself where people sign in at an issuer: these logins are for the day on which
// no issuer answers (break-glass), so each use of one is told.

import { Counter, type Registry } from 'prom-client';
import type { Log } from '../../base/log.ts';
import type { Caller } from './caller.ts';

interface LocalSignInsOptions {
  readonly log: Log;
  readonly registry: Registry | undefined;
}

export class LocalSignIns {
  readonly #log: Log;
  readonly #counter: Counter;

  constructor({ log, registry }: LocalSignInsOptions) {
    this.#log = log;
    this.#counter = new Counter({
      name: 'kube_nvr_local_sign_ins_total',
      help: 'Sign-ins with a password or a token of the recorder while issuers are configured.',
      registers: registry ? [registry] : [],
    });
  }

  note({ name, role }: Caller, address: string): void {
    this.#counter.inc();
    this.#log.warn(
      { caller: name, role, address },
      'somebody signed in past the issuers, with a login of the recorder',
    );
  }
}
