// Notices changes of files, whether they are written in place, replaced by an editor, switched by a symbolic link (as Kubernetes
// does with ConfigMaps and Secrets), or stored on a file system that reports no changes.

import { createHash } from 'node:crypto';
import { watch, type FSWatcher } from 'node:fs';
import { readFile, realpath } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemClock, type Clock, type Timer } from './clock.ts';

/** What to watch. The functions are called before every check, because the set of files may change. */
interface WatchedFile {
  /** Files whose content is compared. A file that cannot be read counts as empty. */
  readonly files: () => Promise<readonly string[]> | readonly string[];
  /** More directories in which files may appear, besides those of `files`. */
  readonly directories?: readonly string[];
}

export interface WatchOptions {
  readonly clock?: Clock;
  /** Editors write a file in several steps: the check waits until nothing has changed for this long. */
  readonly settleMs?: number;
  /** Network file systems report no changes and the kernel's watches can run out, so the files are also checked this often. */
  readonly pollMs?: number;
}

export class FileWatcher {
  readonly #watched: WatchedFile;
  readonly #onChange: () => void;
  readonly #clock: Clock;
  readonly #settleMs: number;
  readonly #pollMs: number;
  #watchers: FSWatcher[] = [];
  #settling: Timer | undefined;
  #polling: Timer | undefined;
  #digest: string | undefined;
  /** The last check; checks run one after another. */
  #work: Promise<void>;
  #triggered = false;
  #closed = false;

  /** Calls `onChange` when the content of the files has changed. */
  constructor(watched: WatchedFile, onChange: () => void, options: WatchOptions = {}) {
    this.#watched = watched;
    this.#onChange = onChange;
    this.#clock = options.clock ?? systemClock;
    this.#settleMs = options.settleMs ?? 300;
    this.#pollMs = options.pollMs ?? 30_000;
    this.#work = this.#look('begin');
    this.#schedulePoll();
  }

  /** Resolves when the watches are set up; from then on changes are noticed. */
  get ready(): Promise<void> {
    return this.#work;
  }

  /** Reports a change even if there is none. Used for SIGHUP. */
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
      this.#settling = undefined;
      this.#work = this.#work.then(() => this.#look('settled'));
    });
  }

  /** A change that only a poll notices may be in the middle of a write as well. */
  #schedulePoll(): void {
    this.#polling = this.#clock.after(this.#pollMs, () => {
      this.#work = this.#work.then(() => this.#look('poll'));
      this.#schedulePoll();
    });
  }

  /** Sets up the watches before reading, so that no change is lost in between. */
  async #look(when: 'begin' | 'poll' | 'settled'): Promise<void> {
    const files = await this.#watched.files();
    const directories = await directoriesOf(files, this.#watched.directories ?? []);
    if (this.#closed) return;
    this.#closeWatchers();
    for (const directory of directories) this.#watch(directory);
    const digest = await digestOf(await this.#watched.files());
    if (this.#isClosed() || (digest === this.#digest && !this.#triggered)) return;
    if (when === 'poll') {
      if (!this.#settling) this.#lookSoon(this.#settleMs);
      return;
    }
    this.#digest = digest;
    this.#triggered = false;
    if (when === 'settled') this.#onChange();
  }

  /** A function, because `close` may be called during the awaits of a check and TypeScript would narrow the field. */
  #isClosed(): boolean {
    return this.#closed;
  }

  #watch(directory: string): void {
    try {
      const watcher = watch(directory, { persistent: false }, () => this.#lookSoon(this.#settleMs));
      watcher.on('error', () => watcher.close());
      this.#watchers.push(watcher);
    } catch {
      // No such directory, or no watches left: polling will notice changes too, only later.
    }
  }

  #closeWatchers(): void {
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = [];
  }
}

/** The directories in which a change can become visible: those of the files and of the targets of symbolic links. */
async function directoriesOf(files: readonly string[], others: readonly string[]): Promise<Set<string>> {
  const directories = new Set(others);
  for (const path of files) {
    directories.add(dirname(path));
    // A file that does not exist yet has the path that it will have.
    const target = await realpath(path).catch(() => path);
    directories.add(dirname(target));
  }
  return directories;
}

async function digestOf(files: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  for (const path of files) {
    // A file that appears is a change as well.
    const content = await readFile(path).catch(() => undefined);
    hash.update(`${path}\n${content?.length ?? 'none'}\n`).update(content ?? '');
  }
  return hash.digest('hex');
}
