// Decides whether the record path is the archive of this node. The archive has an id in `.kube-nvr/archive.json`, and the
// node keeps the id in `<workDir>/archive-id`. Nothing is written to a directory without the known id, or with another: if
// a disk is not mounted, the disk below its mount point must not be filled. The same holds for an archive that another
// recorder uses now, or that belongs to another pool.

import { randomUUID } from 'node:crypto';
import type { FileLock } from '../../../base/file-lock.ts';
import type { Log } from '../../../base/log.ts';
import { parseJson } from '../../../base/parse-json.ts';
import { DirectoryInUse } from './directory-lock.ts';
import { WrongDiskError } from './faults.ts';
import type { FileFacts, FileSystem } from './file-system.ts';
import { makeDirectories, readIfThere, replaceFile } from './state-file.ts';

export interface IdentityOptions {
  /** The record path, absolute and without a trailing slash. */
  readonly root: string;
  /** The directory of the node's state; not in the record path. */
  readonly workDir: string;
  /** If set, the archive belongs to this node of a cluster, and all other nodes refuse it. */
  readonly node?: string | undefined;
  /** `namespace/name`. If set, the archive belongs to this pool, and all others refuse it. */
  readonly pool?: string | undefined;
  /** Locks a directory for this process before anything is written to it. Rejects with DirectoryInUse. */
  readonly take?: ((directory: string) => Promise<FileLock>) | undefined;
  /** For a further disk of an archive: the first one. */
  readonly first?: ArchiveIdentity | undefined;
  readonly fs: FileSystem;
  readonly log: Log;
}

/** The content of the marker. */
interface Marker {
  readonly id: string;
  readonly node: string | undefined;
  readonly pool: string | undefined;
  readonly created: string | undefined;
  /** The archive to which a further disk belongs. */
  readonly set: string | undefined;
}

/** The state of the marker when the id was last read. As long as it is the same, the id need not be read again. */
interface MarkerState {
  readonly root: FileFacts;
  readonly marker: FileFacts;
}

const STATE_DIRECTORY = '.kube-nvr';
/** Beside the record paths, in the file of known ids. */
const SET = 'set';
const STATE = 'state';
const ID = /^[0-9a-f-]{8,64}$/;

export class ArchiveIdentity {
  readonly #options: IdentityOptions;
  readonly #markerPath: string;
  readonly #knownPath: string;
  #seen: MarkerState | undefined;
  #id: string | undefined;
  /** The lock, and the file system that it is on: another file system under the same path needs its own lock. */
  #taken: { readonly device: number; readonly lock: Promise<FileLock> } | undefined;

  constructor(options: IdentityOptions) {
    this.#options = options;
    this.#markerPath = `${options.root}/${STATE_DIRECTORY}/archive.json`;
    this.#knownPath = `${options.workDir}/archive-id`;
  }

  get root(): string {
    return this.#options.root;
  }

  /** The id of the archive, once it was verified. */
  get id(): string | undefined {
    return this.#id;
  }

  /** The file system of the archive, once it was verified. */
  get device(): number | undefined {
    return this.#seen?.root.device;
  }

  /**
   * Whether the record path is the archive of this node. `new`: there is no archive yet, and the node knows none. Rejects
   * with WrongDiskError, or the error of the system.
   */
  async look(): Promise<'ours' | 'new'> {
    this.#seen = undefined;
    if ((await this.#compare()).marker === undefined) return 'new';
    await this.#take();
    // The previous holder of the lock may have changed the marker.
    const { marker, isKnown } = await this.#compare();
    if (marker === undefined) return 'new';
    // A node that knows no id (its state was lost, or the disk was moved here) accepts the archive that it finds.
    if (!isKnown) await this.#remember(marker.id);
    await this.#rememberSet();
    if (this.#options.pool !== undefined && marker.pool === undefined) {
      // The marker was written by a version without this field. If the disk is full, the field is added another time.
      await this.#mark(marker).catch((err: unknown) =>
        this.#options.log.warn({ path: this.#markerPath, err }, 'the owner of the archive cannot be written'),
      );
    }
    await this.#see();
    this.#id = marker.id;
    return 'ours';
  }

  /** The same for programs that only read: nothing is written, and an archive without an id is accepted. */
  async inspect(): Promise<void> {
    await this.#compare();
  }

  /** Whether the node has kept the state of its archive on this disk last. */
  async hadState(): Promise<boolean> {
    const [marker, last] = await Promise.all([this.#marker(), this.#known(STATE)]);
    return marker !== undefined && marker.id === last.id;
  }

  /** The node keeps the state of its archive on this disk from now on. That of an archive which never had others needs no name. */
  async keepState(hasOthers: boolean): Promise<void> {
    const { id: before } = await this.#known(STATE);
    if (this.#id !== undefined && before !== this.#id && (hasOthers || before !== undefined))
      await this.#remember(this.#id, STATE);
  }

  /** Like `look`, but needs only two file lookups while nothing has changed. Also rejects for a `new` archive. */
  async check(): Promise<void> {
    const { fs, root } = this.#options;
    const seen = this.#seen;
    if (seen) {
      const looks = [root, this.#markerPath].map((path) =>
        // If one of them cannot be read, `look` says why.
        fs.facts(path).catch(() => undefined),
      );
      const [now, marker] = await Promise.all(looks);
      if (now && marker && isSame(now, seen.root) && isSame(marker, seen.marker)) return;
    }
    if ((await this.look()) === 'ours') return;
    throw new WrongDiskError('archive-missing', `${root} has no archive yet`);
  }

  /** Makes the record path an archive of this node, and returns its id. `.kube-nvr` must exist. */
  async create(): Promise<string> {
    await this.#take();
    const { marker } = await this.#compare();
    if (marker) throw new WrongDiskError('archive-foreign', `${this.#options.root} now has the archive ${marker.id}`);
    return this.#create();
  }

  async #create(): Promise<string> {
    const id = randomUUID();
    // The disk is written first: a node with an id that never reached the disk would refuse its own archive.
    await this.#mark({ id });
    await this.#remember(id);
    await this.#rememberSet();
    this.#id = id;
    await this.#see();
    this.#options.log.info({ path: this.#options.root, archive: id }, 'a new archive was created');
    return id;
  }

  /** The user declares this disk to be the right one: accepts its id, or gives it one. Returns the id. */
  async adopt(): Promise<string> {
    const marker = await this.#marker();
    if (marker === undefined) {
      await makeDirectories(this.#options.fs, `${this.#options.root}/${STATE_DIRECTORY}`);
      return this.#create();
    }
    const { node, pool } = this.#options;
    if (marker.node !== node || marker.pool !== pool || marker.set !== (await this.#set())) await this.#mark(marker);
    await this.#remember(marker.id);
    await this.#see();
    this.#id = marker.id;
    return marker.id;
  }

  /** Releases the lock. After this, nothing may be written to the directory. */
  async release(): Promise<void> {
    const taken = this.#taken;
    this.#taken = undefined;
    // What could not be taken needs no release.
    await taken?.lock.then((lock) => lock.release()).catch(() => {});
  }

  /** Locks the directory for this process. Rejects with WrongDiskError when another process holds the lock. */
  async #take(): Promise<void> {
    const { root, take, fs } = this.#options;
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
    const { fs, node, pool } = this.#options;
    const set = await this.#set();
    await replaceFile(fs, this.#markerPath, `${JSON.stringify({ id, node, pool, created, set })}\n`);
  }

  /** Rejects with WrongDiskError when the id on the disk is not the known one. */
  async #compare(): Promise<{ readonly marker: Marker | undefined; readonly isKnown: boolean }> {
    const { root } = this.#options;
    const known = await this.#known();
    const marker = await this.#marker();
    for (const owner of ['node', 'pool'] as const) {
      const [found, own] = [marker?.[owner], this.#options[owner]];
      if (found === undefined || own === undefined || found === own) continue;
      throw new WrongDiskError(
        'archive-foreign',
        `${root} holds the archive of the ${owner} ${found}, but this is ${own}; if this disk is right, run ` +
          'recorder --adopt-archive',
      );
    }
    if (marker === undefined) {
      if (known.id === undefined && known.readable) return { marker, isKnown: false };
      throw new WrongDiskError(
        'archive-missing',
        `${root} is not the archive that was recorded to: its ${STATE_DIRECTORY}/archive.json is missing, for example because a ` +
          'disk is not mounted; if this directory is right, run recorder --adopt-archive',
      );
    }
    if (known.id !== undefined && known.id !== marker.id) {
      throw new WrongDiskError(
        'archive-foreign',
        `${root} holds the archive ${marker.id} instead of ${known.id}, to which this node records; if this disk is ` +
          'right, run recorder --adopt-archive',
      );
    }
    const set = await this.#set();
    if (set !== undefined && marker.set !== set && (marker.set !== undefined || known.id === undefined)) {
      throw new WrongDiskError(
        'archive-foreign',
        `${root} holds the disk ${marker.id} of another archive; if this disk is right, run recorder --adopt-archive`,
      );
    }
    return { marker, isKnown: known.id !== undefined };
  }

  /** The archive to which this further disk belongs. It stays the same when the first disk is replaced. */
  async #set(): Promise<string | undefined> {
    const { first } = this.#options;
    if (!first) return undefined;
    return (await first.#known(SET)).id ?? first.id ?? (await first.#known()).id;
  }

  async #rememberSet(): Promise<void> {
    const { first } = this.#options;
    const set = await this.#set();
    if (first && set !== undefined && (await first.#known(SET)).id !== set) await first.#remember(set, SET);
  }

  async #see(): Promise<void> {
    const { fs, root } = this.#options;
    const [rootFacts, marker] = await Promise.all([fs.facts(root), fs.facts(this.#markerPath)]);
    this.#seen = { root: rootFacts, marker };
  }

  async #marker(): Promise<Marker | undefined> {
    const text = await readIfThere(this.#options.fs, this.#markerPath);
    if (text === undefined) return undefined;
    const value = parseJson(text);
    const id = idIn(value, 'id');
    if (id !== undefined) {
      const [node, pool, created, set] = ['node', 'pool', 'created', 'set'].map((key) => wordIn(value, key));
      return { id, node, pool, created, set };
    }
    throw new WrongDiskError('archive-foreign', `${this.#markerPath} cannot be read: it does not name an archive`);
  }

  /** `readable` is false for a damaged file: then it is not known whether the node has an archive. */
  async #known(key = this.#options.root): Promise<{ readonly id: string | undefined; readonly readable: boolean }> {
    const text = await readIfThere(this.#options.fs, this.#knownPath);
    if (text === undefined) return { id: undefined, readable: true };
    const value = parseJson(text);
    return { id: idIn(value, key), readable: typeof value === 'object' && value !== null };
  }

  /** Ids are kept by record path: another path in the configuration is another archive. */
  async #remember(id: string, key = this.#options.root): Promise<void> {
    const { fs, workDir, log } = this.#options;
    try {
      await makeDirectories(fs, workDir);
      const before = parseJson((await readIfThere(fs, this.#knownPath)) ?? '{}');
      const known = typeof before === 'object' && before !== null && !Array.isArray(before) ? before : {};
      await replaceFile(fs, this.#knownPath, `${JSON.stringify({ ...known, [key]: id }, undefined, 2)}\n`);
    } catch (err) {
      // Without the file, the next start accepts the disk that it finds, as this start did.
      log.warn({ path: this.#knownPath, err }, 'the id of the archive cannot be stored');
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

/** Includes the time of the last change of the marker: a disk may be a copy of another. */
const isSame = (a: FileFacts, b: FileFacts): boolean =>
  a.device === b.device && a.inode === b.inode && (a.isDirectory || a.mtimeMs === b.mtimeMs);
