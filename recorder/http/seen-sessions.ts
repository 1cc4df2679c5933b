// The sessions that this node has seen since it started. A session is with its browser, and no node has to remember it: so a list can only
// name those that a node began, or that a request showed.

import { hash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import type { Caller } from './caller.ts';
import type { Session } from './sessions.ts';

/** Whose sessions: those of a user or a token of the configuration, of a person of an issuer, or of a user of Kubernetes. */
export const ACCOUNT_KINDS = ['user', 'token', 'person', 'kubernetes'] as const;

export interface AccountName {
  readonly kind: (typeof ACCOUNT_KINDS)[number];
  readonly name: string;
}

interface SessionUse {
  readonly account: AccountName;
  readonly caller: Caller;
  readonly session: Session;
  readonly address: string;
  /** As the browser calls itself. */
  readonly browser: string | undefined;
}

export interface SeenSession extends SessionUse {
  /** Milliseconds since 1970. */
  readonly lastUsedMs: number;
}

/** Beyond this, those that were used longest ago are not listed. */
const MAX_SEEN = 1_000;

export class SeenSessions {
  readonly #clock: Pick<Clock, 'wallMs'>;
  /** By id, the one that was used longest ago first. */
  readonly #seen = new Map<string, SeenSession>();

  constructor(clock: Pick<Clock, 'wallMs'>) {
    this.#clock = clock;
  }

  note(shown: SessionUse): void {
    const { id } = shown.session;
    this.#seen.delete(id);
    this.#seen.set(id, { ...shown, lastUsedMs: this.#clock.wallMs() });
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > MAX_SEEN) this.#seen.delete(oldest as string);
  }

  /** Those that have not expired; the one that was used last first. */
  get list(): readonly SeenSession[] {
    const nowMs = this.#clock.wallMs();
    for (const [id, { session }] of this.#seen) if (session.expiresMs <= nowMs) this.#seen.delete(id);
    return [...this.#seen.values()].reverse();
  }
}

export const isSameAccount = (one: AccountName, other: AccountName | undefined): boolean =>
  one.kind === other?.kind && one.name === other.name;

/** What ends all sessions of an account, at every node. */
export const allOf = ({ kind, name }: AccountName): string => hash('sha256', JSON.stringify([kind, name]), 'base64url');
