// Users who sign in with name and password. Checks of passwords are expensive on purpose, so they run one at a time: strangers
// must not take processor time from recording.

import { hash } from 'node:crypto';
import { assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import { matchesPassword, parsePasswordHash } from '../../base/password-hash.ts';
import { Turns } from '../../base/turns.ts';
import type { UserConfig } from '../config/schema.ts';
import { callerFor, type Caller } from './caller.ts';

/** Further sign-ins are refused while this many wait. */
const MAX_WAITING = 8;

export interface UserHolder extends Caller {
  /** Identifies the entry with all that is in it. */
  readonly mark: string;
  readonly passwordHash: string;
}

function holderOf({ password, ...user }: UserConfig): UserHolder {
  const { name, role, cameras, export: exports } = user;
  const mark = hash('sha256', JSON.stringify([name, role, cameras, exports, password]), 'base64url');
  return { ...callerFor(user), mark, passwordHash: password };
}

export class Users {
  readonly #clock: Clock;
  readonly #turns = new Turns(1);
  #waiting = 0;
  #users: readonly UserHolder[];

  constructor(users: readonly UserConfig[], clock: Clock) {
    this.#users = users.map(holderOf);
    this.#clock = clock;
  }

  replace(users: readonly UserConfig[]): void {
    this.#users = users.map(holderOf);
  }

  get list(): readonly UserHolder[] {
    return this.#users;
  }

  /** The user with this entry; undefined when the entry was changed or removed. */
  byMark(mark: string): UserHolder | undefined {
    return this.#users.find((user) => user.mark === mark);
  }

  /** One that exists. */
  named(name: string): UserHolder {
    const found = this.#users.find((user) => user.name === name);
    assert(found, 'it was made');
    return found;
  }

  get isBusy(): boolean {
    return this.#waiting >= MAX_WAITING;
  }

  /**
   * Resolves to the user with this name and password. Unknown names take as long as known ones. When its turn comes, `begin`
   * may throw; `failed` is called before the next turn.
   */
  signIn(
    name: string,
    password: string,
    { begin, failed }: { readonly begin: () => void; readonly failed: () => void },
  ): Promise<UserHolder | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting++;
      this.#turns
        .take(async () => {
          begin();
          const beganMs = this.#clock.monotonicMs();
          const user = await this.#check(name, password);
          if (!user) failed();
          resolve(user);
          const tookMs = this.#clock.monotonicMs() - beganMs;
          // However many strangers guess, half of a core is left to recording.
          if (!user && tookMs > 0) await this.#clock.sleep(tookMs);
        })
        .catch(reject)
        .finally(() => this.#waiting--);
    });
  }

  async #check(name: string, password: string): Promise<UserHolder | undefined> {
    const users = this.#users;
    const known = users.find((user) => user.name === name);
    // Costs may differ from user to user: those of unknown names are spread in the same way.
    const compared = known ?? users[hash('sha256', name, 'buffer').readUInt32BE() % Math.max(1, users.length)];
    if (!compared) return undefined;
    const passwordHash = parsePasswordHash(compared.passwordHash);
    assert(passwordHash, 'the configuration was checked');
    const isRight = await matchesPassword(password, passwordHash);
    return isRight ? known : undefined;
  }
}
