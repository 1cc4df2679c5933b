// When users and tokens were used last, since the process began. It is kept in memory only.

import type { Clock } from '../../base/clock.ts';

type Kind = 'user' | 'token';

export class LastUse {
  readonly #clock: Clock;
  readonly #times: Readonly<Record<Kind, Map<string, number>>> = { user: new Map(), token: new Map() };
  /** Milliseconds since 1970; uses before that are not known. */
  readonly sinceMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.sinceMs = clock.wallMs();
  }

  /** By names of the configuration, so their number is bounded. */
  note(kind: Kind, name: string): void {
    this.#times[kind].set(name, this.#clock.wallMs());
  }

  /** Undefined if it was not used. */
  of(kind: Kind, name: string): number | undefined {
    return this.#times[kind].get(name);
  }
}
