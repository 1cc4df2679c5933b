// Notices that files changed, however they are changed: written in place, replaced by an editor, switched by a symbolic
// link as Kubernetes does with ConfigMaps and Secrets, or on a file system that reports nothing.

import { createHash } from 'node:crypto';
import { watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { readFile, realpath } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemClock } from './clock.ts';
import type { Clock, Timer } from './clock.ts';

/** What to look at; asked for at each look, for it may change with what is there. */
export interface Watched {
  /** Those whose content counts. One that cannot be read counts as empty. */
  readonly files: () => Promise<readonly string[]> | readonly string[];
  /** Directories in which files may appear, beside those of `files`. */
  readonly directories?: readonly string[];
}

export interface WatchOptions {
  readonly clock?: Clock;
  /** Editors write a file in several steps; this long after the last one it is looked at. */
  readonly settleMs?: number;
  /** Network file systems report nothing, and the kernel's watches can run out: look anyway, this often. */
  readonly pollMs?: number;
}

export class FileWatcher {
  readonly #watched: Watched;
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

  /** Calls `onChange` when the content of the files has become another one. */
  constructor(watched: Watched, onChange: () => void, options: WatchOptions = {}) {
    this.#watched = watched;
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
    const files = await this.#watched.files();
    const directories = await directoriesOf(files, this.#watched.directories ?? []);
    if (this.#closed) return;
    this.#closeWatchers();
    for (const directory of directories) this.#watch(directory);
    const digest = await digestOf(await this.#watched.files());
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
async function directoriesOf(files: readonly string[], others: readonly string[]): Promise<Set<string>> {
  const directories = new Set(others);
  for (const path of files) {
    directories.add(dirname(path));
    const target = await realpath(path).catch(() => path);
    directories.add(dirname(target));
  }
  return directories;
}

async function digestOf(files: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  for (const path of files) {
    const content = await readFile(path).catch(() => undefined);
    hash.update(`${path}\n${content?.length ?? 'none'}\n`).update(content ?? '');
  }
  return hash.digest('hex');
}
