// The real disk, with two additions: it can be told to stand still, and one can wait until it has nothing left to do
// (the tests' time does not pass meanwhile, so that no disk is too slow for it).

import { nodeFileSystem } from '../../recorder/archive/disk/file-system.ts';
import type { FileSystem, OpenFile } from '../../recorder/archive/disk/file-system.ts';

export class TestDisk {
  readonly fs: FileSystem;
  #gate: PromiseWithResolvers<void> | undefined;
  #pending = 0;

  constructor() {
    const node = nodeFileSystem;
    // Each of them: a moment in which only one that is not counted is under way would pass for rest.
    this.fs = {
      create: (path) => this.#do(async () => this.#file(await node.create(path))),
      open: (path, mode) => this.#do(async () => this.#file(await node.open(path, mode))),
      makeDirectory: (path) => this.#do(() => node.makeDirectory(path)),
      list: (path) => this.#do(() => node.list(path)),
      facts: (path) => this.#do(() => node.facts(path)),
      remove: (path) => this.#do(() => node.remove(path)),
      removeDirectory: (path) => this.#do(() => node.removeDirectory(path)),
      space: (path) => this.#do(() => node.space(path)),
      rename: (from, to) => this.#do(() => node.rename(from, to)),
      syncDirectory: (path) => this.#do(() => node.syncDirectory(path)),
    };
  }

  /** From now on nothing that was asked for happens. */
  stall(): void {
    this.#gate ??= Promise.withResolvers();
  }

  release(): void {
    this.#gate?.resolve();
    this.#gate = undefined;
  }

  /** Resolves when everything asked for has happened; at once while the disk stands still. */
  async idle(): Promise<void> {
    while (this.#pending > 0 && !this.#gate) await new Promise((resolve) => setImmediate(resolve));
  }

  async #do<T>(work: () => Promise<T>): Promise<T> {
    this.#pending++;
    try {
      await this.#gate?.promise;
      return await work();
    } finally {
      this.#pending--;
    }
  }

  #file(inner: OpenFile): OpenFile {
    return {
      write: (buffers, position) => this.#do(() => inner.write(buffers, position)),
      read: (position, length) => this.#do(() => inner.read(position, length)),
      truncate: (sizeBytes) => this.#do(() => inner.truncate(sizeBytes)),
      syncData: () => this.#do(() => inner.syncData()),
      sync: () => this.#do(() => inner.sync()),
      facts: () => this.#do(() => inner.facts()),
      close: () => this.#do(() => inner.close()),
    };
  }
}
