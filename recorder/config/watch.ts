// Notices that the configuration files changed, however they are changed: written in place, replaced by an editor,
// switched by a symbolic link as Kubernetes does with ConfigMaps, or on a file system that reports nothing.

import { createHash } from 'node:crypto';
import { watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { readFile, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { configFiles } from './load.ts';

export interface WatchOptions {
  readonly clock?: Clock;
  /** Editors write a file in several steps; this long after the last one it is looked at. */
  readonly settleMs?: number;
  /** Network file systems report nothing, and the kernel's watches can run out: look anyway, this often. */
  readonly pollMs?: number;
}

export class ConfigWatcher {
  readonly #file: string;
  readonly #onChange: () => void;
  readonly #clock: Clock;
  readonly #settleMs: number;
  readonly #pollMs: number;
  #watchers: FSWatcher[] = [];
  #settling: Timer | undefined;
  #polling: Timer | undefined;
  #digest: string | undefined;
  /** One look at a time. */
  #work: Promise<void>;
  #closed = false;

  /** Calls `onChange` when the content of `file` or of `conf.d/*.yaml` beside it has become another one. */
  constructor(file: string, onChange: () => void, options: WatchOptions = {}) {
    this.#file = file;
    this.#onChange = onChange;
    this.#clock = options.clock ?? systemClock;
    this.#settleMs = options.settleMs ?? 300;
    this.#pollMs = options.pollMs ?? 30_000;
    this.#work = this.#look();
    this.#schedulePoll();
  }

  /** Resolves when the watches stand and changes from now on are noticed. */
  get ready(): Promise<void> {
    return this.#work;
  }

  /** Reports a change whether there is one or not: what SIGHUP asks for. */
  trigger(): void {
    if (this.#closed) return;
    this.#digest = undefined;
    this.#lookSoon(0);
  }

  close(): void {
    this.#closed = true;
    this.#settling?.cancel();
    this.#polling?.cancel();
    this.#closeWatchers();
  }

  #lookSoon(delayMs: number): void {
    this.#settling?.cancel();
    this.#settling = this.#clock.after(delayMs, () => {
      this.#work = this.#work.then(() => this.#look());
    });
  }

  #schedulePoll(): void {
    this.#polling = this.#clock.after(this.#pollMs, () => {
      this.#lookSoon(0);
      this.#schedulePoll();
    });
  }

  /** Watches first and reads then, so that no change falls between. */
  async #look(): Promise<void> {
    const first = this.#watchers.length === 0 && this.#digest === undefined;
    const directories = await directoriesOf(this.#file);
    if (this.#closed) return;
    this.#closeWatchers();
    for (const directory of directories) this.#watch(directory);
    const digest = await digestOf(this.#file);
    if (this.#closed || digest === this.#digest) return;
    this.#digest = digest;
    if (!first || this.#isTriggered) this.#onChange();
  }
  get #isTriggered(): boolean {
    return false;
  }

  #watch(directory: string): void {
    try {
      const watcher = watch(directory, { persistent: false }, () => this.#lookSoon(this.#settleMs));
      watcher.on('error', () => watcher.close());
      this.#watchers.push(watcher);
    } catch {
      // No such directory, or no watches left: the poll notices as well, only later.
    }
  }

  #closeWatchers(): void {
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = [];
  }
}
