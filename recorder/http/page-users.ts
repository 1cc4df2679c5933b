// Users who were made on the page: a file in the state directory that only its owner can read. Those of the configuration take
// precedence.

import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import { readPrivate, writePrivate } from '../../base/private-file.ts';
import { Turns } from '../../base/turns.ts';
import { UserList, type UserConfig } from '../config/schema.ts';

export class PageUsers {
  readonly #workDir: string;
  readonly #turns = new Turns(1);
  #users: readonly UserConfig[];

  private constructor(workDir: string, users: readonly UserConfig[]) {
    this.#workDir = workDir;
    this.#users = users;
  }

  /** A file that cannot be used is left alone and reported: recording does not depend on it. */
  static async open(workDir: string, log: Log): Promise<PageUsers> {
    const file = fileIn(workDir);
    try {
      const text = await readPrivate(file, (problem) => new Error(`${file} ${problem}`));
      return new PageUsers(workDir, text === undefined ? [] : UserList.parse(JSON.parse(text)));
    } catch (err) {
      log.error({ problem: messageOf(err) }, 'the users that were made on the page cannot be read');
      return new PageUsers(workDir, []);
    }
  }

  get list(): readonly UserConfig[] {
    return this.#users;
  }

  /** Replaces the user of this name, or adds one. Rejects when it cannot be written. */
  put(user: UserConfig): Promise<void> {
    return this.#write((users) => [...users.filter(({ name }) => name !== user.name), user]);
  }

  /** Rejects when it cannot be written. */
  delete(userName: string): Promise<void> {
    return this.#write((users) => users.filter(({ name }) => name !== userName));
  }

  #write(change: (users: readonly UserConfig[]) => readonly UserConfig[]): Promise<void> {
    return this.#turns.take(async () => {
      const users = change(this.#users);
      await mkdir(this.#workDir, { recursive: true });
      await writePrivate(fileIn(this.#workDir), `${JSON.stringify(users, undefined, 2)}\n`);
      this.#users = users;
    });
  }

  /** Once a cluster has them. Rejects when the file cannot be removed. */
  remove(): Promise<void> {
    return this.#turns.take(async () => {
      await rm(fileIn(this.#workDir), { force: true });
      this.#users = [];
    });
  }
}

const fileIn = (workDir: string): string => join(workDir, 'users.json');
