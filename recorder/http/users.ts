// Users who sign in with name and password. Checks of passwords are expensive on purpose, so those of strangers run one at a time:
// they must not take processor time from recording. Browsers that signed in before have a turn of their own.

import { hash } from 'node:crypto';
import { assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import { matchesPassword, parsePasswordHash } from '../../base/password-hash.ts';
import { Turns } from '../../base/turns.ts';
import type { UserConfig } from '../config/schema.ts';
import { callerFor, type Caller } from './caller.ts';

/** Further sign-ins are refused while this many wait or are checked. */
const MAX_AT_ONCE = 64;
/** Of one network or browser: one is checked, one waits. */
const MAX_OF_ONE = 2;

/** A sign-in that wants its turn. */
export interface Attempt {
  /** The network or the browser. */
  readonly key: string;
  /** It is a browser with which the user has signed in before. */
  readonly isKnown: boolean;
  /** Called when its turn comes; may throw. */
  readonly begin: () => void;
  /** Called for a wrong name or password, before the next turn. */
  readonly failed: () => void;
}

/** Sign-ins that are checked one after the other. */
class Lane {
  readonly turns = new Turns(1);
  /** How many of each key wait or are checked. */
  readonly counts = new Map<string, number>();
  size = 0;

  isFullFor(key: string): boolean {
    return this.size >= MAX_AT_ONCE || (this.counts.get(key) ?? 0) >= MAX_OF_ONE;
  }

  /** Returns the function that takes it out. */
  enter(key: string): () => void {
    this.size++;
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
    return () => {
      this.size--;
      const left = (this.counts.get(key) ?? 1) - 1;
      if (left > 0) this.counts.set(key, left);
      else this.counts.delete(key);
    };
  }
}

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
  readonly #strangers = new Lane();
  readonly #known = new Lane();
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

  /** Whether too many others wait for the same turn. */
  isBusyFor({ key, isKnown }: Attempt): boolean {
    return this.#laneOf(isKnown).isFullFor(key);
  }

  /** Resolves to the user with this name and password. Unknown names take as long as known ones. */
  signIn(name: string, password: string, attempt: Attempt): Promise<UserHolder | undefined> {
    const { key, isKnown, begin, failed } = attempt;
    const lane = this.#laneOf(isKnown);
    return new Promise((resolve, reject) => {
      const leave = lane.enter(key);
      lane.turns
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
        .finally(leave);
    });
  }

  #laneOf(isKnown: boolean): Lane {
    return isKnown ? this.#known : this.#strangers;
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
