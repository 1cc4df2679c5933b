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
  #triggered = false;
  #closed = false;

  /** Calls `onChange` when the content of `file` or of `conf.d/*.yaml` beside it has become another one. */
  constructor(file: string, onChange: () => void, options: WatchOptions = {}) {
    this.#file = file;
    this.#onChange = onChange;
    this.#clock = options.clock ?? systemClock;
    this.#settleMs = options.settleMs ?? 300;
    this.#pollMs = options.pollMs ?? 30_000;
    this.#work = this.#look(false);
    this.#schedulePoll();
  }

  /** Resolves when the watches stand and changes from now on are noticed. */
  get ready(): Promise<void> {
    return this.#work;
  }

  /** Reports a change whether there is one or not: what SIGHUP asks for. */
  trigger(): void {
    if (this.#closed) return;
    this.#triggered = true;
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
      this.#work = this.#work.then(() => this.#look(true));
    });
  }

  #schedulePoll(): void {
    this.#polling = this.#clock.after(this.#pollMs, () => {
      this.#lookSoon(0);
      this.#schedulePoll();
    });
  }

  /** Watches first and reads then, so that no change falls between. */
  async #look(report: boolean): Promise<void> {
    const directories = await directoriesOf(this.#file);
    if (this.#closed) return;
    this.#closeWatchers();
    for (const directory of directories) this.#watch(directory);
    const digest = await digestOf(this.#file);
    if (this.#isClosed() || (digest === this.#digest && !this.#triggered)) return;
    this.#digest = digest;
    this.#triggered = false;
    if (report) this.#onChange();
  }

  /** Told apart from the field because a look may be overtaken by `close`. */
  #isClosed(): boolean {
    return this.#closed;
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

/** The directories in which a change may show: those of the files, and those that symbolic links lead to. */
async function directoriesOf(file: string): Promise<Set<string>> {
  const directories = new Set([dirname(file), join(dirname(file), 'conf.d')]);
  for (const path of await filesOf(file)) {
    const target = await realpath(path).catch(() => path);
    directories.add(dirname(target));
  }
  return directories;
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256');
  for (const path of await filesOf(file)) {
    const content = await readFile(path).catch(() => undefined);
    hash.update(`${path}\n${content?.length ?? 'none'}\n`).update(content ?? '');
  }
  return hash.digest('hex');
}

/** A directory that cannot be read counts as empty here; loading says what is wrong with it. */
const filesOf = (file: string): Promise<string[]> => configFiles(file).catch(() => [file]);
