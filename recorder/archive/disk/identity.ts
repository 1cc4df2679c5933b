// Which disk is ours: the record path in, yes or a reason why not out. The archive has an id in
// `.kube-nvr/archive.json`, and the node knows it from `<workDir>/archive-id`. A directory without the id it had, or
// with another, is not written to: a disk that is not mounted must not fill the one beneath its mount point. Nor is one
// that another recorder uses now, or that is another pool's.

import { randomUUID } from 'node:crypto';
import type { FileLock } from '../../../base/file-lock.ts';
import type { Log } from '../../../base/log.ts';
import { DirectoryInUse } from './directory-lock.ts';
import { WrongDiskError } from './faults.ts';
import type { FileFacts, FileSystem } from './file-system.ts';
import { makeDirectories, parseJson, readIfThere, replaceFile } from './state-file.ts';

export interface IdentityOptions {
  /** The record path, absolute and without a slash at its end. */
  readonly root: string;
  /** The node's own state; not in the record path. */
  readonly workDir: string;
  /** With it, an archive is that of one node of a cluster, and refused on all others. */
  readonly node?: string | undefined;
  /** `namespace/name`: the archive is that of one pool, and refused to all others. */
  readonly pool?: string | undefined;
  /** Takes a directory for this process alone, before anything is written to it. Throws DirectoryInUse. */
  readonly take?: ((directory: string) => Promise<FileLock>) | undefined;
  readonly fs: FileSystem;
  readonly log: Log;
}

/** What the marker says. */
interface Marker {
  readonly id: string;
  readonly node: string | undefined;
  readonly pool: string | undefined;
  readonly created: string | undefined;
}

/** What was seen when the id was last read: as long as this is the same, it need not be read again. */
interface Seen {
  readonly root: FileFacts;
  readonly marker: FileFacts;
}

const STATE_DIRECTORY = '.kube-nvr';
const ID = /^[0-9a-f-]{8,64}$/;

export class ArchiveIdentity {
  readonly #o: IdentityOptions;
  readonly #markerPath: string;
  readonly #knownPath: string;
  #seen: Seen | undefined;
  #id: string | undefined;
  /** Of the file system that it was taken on: another one under the same path has to be taken itself. */
  #taken: { readonly device: number; readonly lock: Promise<FileLock> } | undefined;

  constructor(options: IdentityOptions) {
    this.#o = options;
    this.#markerPath = `${options.root}/${STATE_DIRECTORY}/archive.json`;
    this.#knownPath = `${options.workDir}/archive-id`;
  }

  /** Of the archive, once it was found to be ours. */
  get id(): string | undefined {
    return this.#id;
  }

  /** The file system of the archive, once it was found to be ours. */
  get device(): number | undefined {
    return this.#seen?.root.device;
  }

  /**
   * Whether the record path is our archive. `new`: this node has none there yet, nor has anyone else. Throws
   * WrongDiskError, or what the system says.
   */
  async look(): Promise<'ours' | 'new'> {
    this.#seen = undefined;
    if ((await this.#compare()).marker === undefined) return 'new';
    await this.#take();
    // Whoever had it until now may have changed it.
    const { marker, isKnown } = await this.#compare();
    if (marker === undefined) return 'new';
    // A node that knows none (its own state was lost, or the disk was moved here) takes the one it finds.
    if (!isKnown) await this.#remember(marker.id);
    if (this.#o.pool !== undefined && marker.pool === undefined) {
      // From a version that did not say so. On a full disk it is said another time.
      await this.#mark(marker).catch((err: unknown) =>
        this.#o.log.warn({ path: this.#markerPath, err }, 'the pool of the archive cannot be kept'),
      );
    }
    await this.#see();
    this.#id = marker.id;
    return 'ours';
  }

  /** The same for those who only read: nothing is written, and an archive without an id will do. */
  async inspect(): Promise<void> {
    await this.#compare();
  }

  /** The same at the cost of two looks while nothing has changed. Throws as `look` does, also for a `new` one. */
  async check(): Promise<void> {
    const { fs, root } = this.#o;
    const seen = this.#seen;
    if (seen) {
      const [now, marker] = await Promise.all([
        fs.facts(root).catch(() => undefined),
        fs.facts(this.#markerPath).catch(() => undefined),
      ]);
      if (now && marker && isSame(now, seen.root) && isSame(marker, seen.marker)) return;
    }
    if ((await this.look()) === 'ours') return;
    throw new WrongDiskError('archive-missing', `${root} has no archive yet`);
  }

  /** Makes the record path an archive of this node, and returns its id. `.kube-nvr` must be there. */
  async create(): Promise<string> {
    await this.#take();
    const { marker } = await this.#compare();
    if (marker)
      throw new WrongDiskError('archive-foreign', `${this.#o.root} has got the archive ${marker.id} meanwhile`);
    return this.#create();
  }

  async #create(): Promise<string> {
    const id = randomUUID();
    // The disk first: a node that knows an id whose disk never got it would refuse its own archive.
    await this.#mark({ id });
    await this.#remember(id);
    this.#id = id;
    await this.#see();
    this.#o.log.info({ path: this.#o.root, archive: id }, 'a new archive begins');
    return id;
  }

  /** The owner says that this disk is right: takes its id, or gives it one. Returns the id. */
  async adopt(): Promise<string> {
    const marker = await this.#marker();
    if (marker === undefined) {
      await makeDirectories(this.#o.fs, `${this.#o.root}/${STATE_DIRECTORY}`);
      return this.#create();
    }
    if (marker.node !== this.#o.node || marker.pool !== this.#o.pool) await this.#mark(marker);
    await this.#remember(marker.id);
    await this.#see();
    this.#id = marker.id;
    return marker.id;
  }

  /** Lets go of the directory. Nothing may be written to it any more. */
  async release(): Promise<void> {
    const taken = this.#taken;
    this.#taken = undefined;
    await taken?.lock.then((lock) => lock.release()).catch(() => {});
  }

  /** For this process alone. Throws WrongDiskError when another one has it. */
  async #take(): Promise<void> {
    const { root, take, fs } = this.#o;
    if (!take) return;
    const { device } = await fs.facts(root);
    if (this.#taken?.device !== device) {
      const before = this.release();
      const lock = before.then(() => take(`${root}/${STATE_DIRECTORY}`));
      this.#taken = { device, lock };
    }
    try {
      await this.#taken?.lock;
    } catch (err) {
      this.#taken = undefined;
      if (!(err instanceof DirectoryInUse)) throw err;
      throw new WrongDiskError('archive-in-use', err.message);
    }
  }

  async #mark({
    id,
    created = new Date().toISOString(),
  }: {
    readonly id: string;
    readonly created?: string | undefined;
  }): Promise<void> {
    const { fs, node, pool } = this.#o;
    await replaceFile(fs, this.#markerPath, `${JSON.stringify({ id, node, pool, created })}\n`);
  }

  /** Throws WrongDiskError when the id that is there is not the one that is known. */
  async #compare(): Promise<{ readonly marker: Marker | undefined; readonly isKnown: boolean }> {
    const { root } = this.#o;
    const known = await this.#known();
    const marker = await this.#marker();
    for (const owner of ['node', 'pool'] as const) {
      const [found, own] = [marker?.[owner], this.#o[owner]];
      if (found === undefined || own === undefined || found === own) continue;
      throw new WrongDiskError(
        'archive-foreign',
        `${root} holds the archive of the ${owner} ${found}, and this is ${own}; if this disk is right, run ` +
          'recorder --adopt-archive',
      );
    }
    if (marker === undefined) {
      if (known.id === undefined && known.readable) return { marker, isKnown: false };
      throw new WrongDiskError(
        'archive-missing',
        `${root} is not the archive that was recorded to: its ${STATE_DIRECTORY}/archive.json is missing, as where a ` +
          'disk is not mounted; if this directory is right, run recorder --adopt-archive',
      );
    }
    if (known.id !== undefined && known.id !== marker.id) {
      throw new WrongDiskError(
        'archive-foreign',
        `${root} holds the archive ${marker.id} and not ${known.id}, which this node records to; if this disk is ` +
          'right, run recorder --adopt-archive',
      );
    }
    return { marker, isKnown: known.id !== undefined };
  }

  async #see(): Promise<void> {
    const { fs, root } = this.#o;
    const [rootFacts, marker] = await Promise.all([fs.facts(root), fs.facts(this.#markerPath)]);
    this.#seen = { root: rootFacts, marker };
  }

  async #marker(): Promise<Marker | undefined> {
    const text = await readIfThere(this.#o.fs, this.#markerPath);
    if (text === undefined) return undefined;
    const value = parseJson(text);
    const id = idIn(value, 'id');
    if (id !== undefined) {
      return { id, node: wordIn(value, 'node'), pool: wordIn(value, 'pool'), created: wordIn(value, 'created') };
    }
    throw new WrongDiskError('archive-foreign', `${this.#markerPath} cannot be read: it does not name an archive`);
  }

  /** `readable` is false for a file that says nothing: whether there is an archive is then not known. */
  async #known(): Promise<{ readonly id: string | undefined; readonly readable: boolean }> {
    const text = await readIfThere(this.#o.fs, this.#knownPath);
    if (text === undefined) return { id: undefined, readable: true };
    const value = parseJson(text);
    return { id: idIn(value, this.#o.root), readable: typeof value === 'object' && value !== null };
  }

  /** By record path: another path in the configuration is another archive. */
  async #remember(id: string): Promise<void> {
    const { fs, root, workDir, log } = this.#o;
    try {
      await makeDirectories(fs, workDir);
      const before = parseJson((await readIfThere(fs, this.#knownPath)) ?? '{}');
      const known = typeof before === 'object' && before !== null && !Array.isArray(before) ? before : {};
      await replaceFile(fs, this.#knownPath, `${JSON.stringify({ ...known, [root]: id }, undefined, 2)}\n`);
    } catch (err) {
      // Without it the disk is taken as it is found at the next start, which is what happened now.
      log.warn({ path: this.#knownPath, err }, 'the id of the archive cannot be kept');
    }
  }
}

function wordIn(value: unknown, key: string): string | undefined {
  if (typeof value !== 'object' || value === null || !(key in value)) return undefined;
  const word = (value as Record<string, unknown>)[key];
  return typeof word === 'string' ? word : undefined;
}

function idIn(value: unknown, key: string): string | undefined {
  const id = wordIn(value, key);
  return id !== undefined && ID.test(id) ? id : undefined;
}

/** Also the time of the marker's last change: a disk may be a copy of another. */
const isSame = (a: FileFacts, b: FileFacts): boolean =>
  a.device === b.device && a.inode === b.inode && (a.isDirectory || a.mtimeMs === b.mtimeMs);
