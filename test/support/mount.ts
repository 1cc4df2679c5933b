// Real small file systems for tests: created, filled, removed. Only root can mount, and not on every machine.

import { execFileSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  statfsSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

export type MountKind = 'tmpfs' | 'ext4';

const quiet = { stdio: 'pipe' } as const;

/** A separate file system. */
export class Mount {
  readonly path: string;
  readonly #kind: MountKind;
  #image: string;
  #isAborted = false;
  readonly #bytes: number;

  private constructor(directory: string, kind: MountKind, bytes: number) {
    this.path = join(directory, 'disk');
    this.#image = join(directory, 'image');
    this.#kind = kind;
    this.#bytes = bytes;
  }

  /** Undefined, with the test skipped, if mounting is not allowed. `inodes`: of ext4, about so many. */
  static make(t: TestContext, kind: MountKind, bytes: number, inodes?: number): Mount | undefined {
    const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-mount-'));
    const mount = new Mount(directory, kind, bytes);
    // In this order, because a mounted directory cannot be removed.
    t.after(() => {
      mount.detach();
      rmSync(directory, { recursive: true, force: true });
    });
    mkdirSync(mount.path);
    try {
      if (kind === 'ext4') {
        closeSync(openSync(mount.#image, 'w'));
        truncateSync(mount.#image, bytes);
        // On a tiny disk the journal would take most of the space.
        const journal = bytes < 8 * 1024 * 1024 ? ['-O', '^has_journal'] : [];
        const count = inodes === undefined ? [] : ['-N', String(inodes)];
        execFileSync('mkfs.ext4', ['-q', '-m', '0', ...journal, ...count, mount.#image], quiet);
      }
      mount.attach();
    } catch (err) {
      t.skip(
        `a file system cannot be mounted here: ${err instanceof Error ? (err.message.split('\n')[1] ?? err.message) : ''}`,
      );
      return undefined;
    }
    return mount;
  }

  attach(): void {
    if (this.#isAborted) this.#repair();
    const source =
      this.#kind === 'tmpfs' ? ['-t', 'tmpfs', '-o', `size=${this.#bytes}`, 'tmpfs'] : ['-o', 'loop', this.#image];
    execFileSync('mount', [...source, this.path], quiet);
  }

  /** As if the disk were pulled: open files stay usable, the directory shows what is beneath. */
  detach(): void {
    try {
      execFileSync('umount', ['-l', this.path], quiet);
    } catch {
      // It is detached already.
    }
  }

  /** Writes block until `thaw`. ext4 only. */
  freeze(): void {
    execFileSync('fsfreeze', ['-f', this.path], quiet);
  }

  thaw(): void {
    execFileSync('fsfreeze', ['-u', this.path], quiet);
  }

  /** As after a disk error: the kernel refuses all further writes. ext4 only. */
  abort(): void {
    execFileSync('mount', ['-o', 'remount,abort', this.path], quiet);
    this.#isAborted = true;
  }

  /**
   * Mounts a copy of the disk. An aborted file system stays aborted as long as anything uses it: an open file, or a mount
   * namespace created meanwhile, such as those of other tests' nodes.
   */
  #repair(): void {
    copyFileSync(this.#image, `${this.#image}-repaired`);
    this.#image += '-repaired';
    this.#isAborted = false;
  }

  get freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.path);
    return bavail * bsize;
  }
}

/** Another program that writes to the same disk. */
export class Stranger {
  readonly #path: string;
  readonly #mount: Mount;
  #bytes = 0;
  #files = 0;

  constructor(mount: Mount) {
    this.#mount = mount;
    this.#path = join(mount.path, 'stranger');
  }

  /** Writes until only `leftBytes` are free, or the disk is full. */
  fillTo(leftBytes: number): void {
    const fd = openSync(this.#path, 'a');
    const block = Buffer.alloc(4096, 1);
    try {
      while (this.#mount.freeBytes > leftBytes) this.#bytes += writeSync(fd, block);
    } catch {
      // The disk is full.
    } finally {
      closeSync(fd);
    }
  }

  /** Makes files without contents until there are no inodes. */
  takeInodes(): void {
    try {
      for (;;) closeSync(openSync(`${this.#path}-${this.#files++}`, 'w'));
    } catch {
      // There is none left.
    }
  }

  get bytes(): number {
    return this.#bytes;
  }

  leave(): void {
    rmSync(this.#path, { force: true });
  }
}
