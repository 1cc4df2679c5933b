// The command `recorder prepare-node`: creates the directories `<volume>/<namespace>_<pool>` of one pool on its node, owned
// by the user of the recorder. It runs next to the recorder in its pod, which waits for the directories and may not change
// owners. Footage and state of the previous layout, which lay directly in the volumes, are moved there: renamed, never
// copied. It may be killed at any point; the next run continues.

import * as nodeFs from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Clock } from '../../base/clock.ts';
import { lockFile } from '../../base/file-lock.ts';
import type { Log } from '../../base/log.ts';
import { parseJson } from '../../base/parse-json.ts';
import { directoryOfPool } from '../../crds/names.ts';
import { formatPath, parseBaseName } from '../archive/disk/names.ts';
import type { CommandContext } from './command.ts';
import { waitUntilEnded } from './wait.ts';

export const usage = `Usage: recorder prepare-node --namespace NAME --pool NAME --user UID --group GID --archive DIRECTORY --state DIRECTORY

Makes <archive>/<namespace>_<pool> and <state>/<namespace>_<pool> for the user, and moves files into them that earlier versions
kept in <archive> and <state>. Needs the right to change owners.
`;

/** A problem that a person has to fix on the node. */
export class PrepareError extends Error {
  override readonly name = 'PrepareError';
}

export interface PrepareOptions {
  readonly namespace: string;
  readonly pool: string;
  /** Mount points of the volumes of the node. */
  readonly archive: string;
  readonly state: string;
  readonly user: number;
  readonly group: number;
  readonly say: (line: string) => void;
  readonly nowMs: () => number;
  readonly fs?: typeof nodeFs;
}

const PREPARED_LOOK_MS = 50;
const TELL_EVERY = 600;
const STATE = 'state';
const ARCHIVE_STATE = '.kube-nvr';
const YEAR = /^\d{4}$/;
/**
 * A recorder of an earlier version holds no lock. It is alive if its sign of life is newer than this; see
 * `archive/gaps/alive.ts`.
 */
const ALIVE_MS = 30_000;

export function run(args: readonly string[], { print, printError }: CommandContext): number {
  try {
    prepareBy(args, (line) => print(`${line}\n`));
    return 0;
  } catch (err) {
    if (!(err instanceof PrepareError)) throw err;
    printError(`recorder: ${err.message}\n`);
    return 1;
  }
}

function prepareBy(args: readonly string[], say: (line: string) => void): void {
  const text = { type: 'string' } as const;
  const options = { namespace: text, pool: text, user: text, group: text, archive: text, state: text } as const;
  const { values } = parseArgs({ args: [...args], options, strict: false }) as {
    values: Partial<Record<keyof typeof options, string>>;
  };
  const { namespace, pool, archive, state } = values;
  const [user, group] = [Number(values.user), Number(values.group)];
  if (!namespace || !pool || !archive || !state || !Number.isInteger(user) || !Number.isInteger(group)) {
    throw new PrepareError(`an option is missing\n\n${usage}`);
  }
  prepareNode({ namespace, pool, archive, state, user, group, say, nowMs: Date.now });
  wait(user, group);
}

/**
 * Waits until the pod ends, because a container that exits would be restarted. Runs as the user of the recorder, without
 * its privileges.
 */
function wait(user: number, group: number): void {
  process.setgroups?.([]);
  process.setgid?.(group);
  process.setuid?.(user);
  waitUntilEnded();
}

/**
 * Resolves when these directories belong to `owner` (`UID:GID`), which means that they are prepared. The kubelet creates
 * missing directories as root.
 */
export async function untilPrepared(
  directories: readonly string[],
  owner: string,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<void> {
  for (let waited = 0; ; waited++) {
    const missing = directories.find((directory) => {
      const facts = nodeFs.statSync(directory, { throwIfNoEntry: false });
      return `${facts?.uid}:${facts?.gid}` !== owner;
    });
    if (missing === undefined) return;
    if (waited % TELL_EVERY === 0) log.info({ directory: missing, owner }, 'waiting for a directory to be prepared');
    await clock.sleep(PREPARED_LOOK_MS);
  }
}

/** Throws PrepareError. */
export function prepareNode(options: PrepareOptions): void {
  const { archive, state, fs = nodeFs } = options;
  const name = directoryOfPool(options);
  const [ownArchive, ownState] = [join(archive, name), join(state, name)];
  try {
    makeDirectory(fs, ownState);
    makeDirectory(fs, ownArchive);
    takeEarlier(options, ownArchive, ownState);
    give(options, ownState, () => true);
    const open = openFiles(fs, ownArchive);
    // Closed footage is only read and removed, for which the owner of the directory matters; there may be a million files.
    give(options, ownArchive, (path) => path.startsWith(join(ownArchive, ARCHIVE_STATE)) || open.has(path));
  } catch (err) {
    if (err instanceof PrepareError) throw err;
    const { code, path, message } = err as NodeJS.ErrnoException;
    const hint = code === 'EPERM' ? `; give ${path} to user ${options.user} on the node, or set spec.runAsUser` : '';
    throw new PrepareError(`${message}${hint}`, { cause: err });
  }
}

/**
 * Moves the data of earlier versions. A recorder whose directories were prepared before does not wait for this and must not
 * be disturbed.
 */
function takeEarlier(options: PrepareOptions, ownArchive: string, ownState: string): void {
  const { archive, state, say, fs = nodeFs } = options;
  const old = [join(state, STATE), join(archive, ARCHIVE_STATE)].filter((path) => fs.existsSync(path));
  if (old.length === 0) return;
  const isPrepared = fs.existsSync(join(ownState, STATE));
  const lock = isPrepared ? lockFile(join(ownState, STATE, 'lock')) : undefined;
  if (isPrepared && !lock) return say(`${old.join(' and ')} will be moved at a start before the recorder's`);
  try {
    takeState(options, ownState);
    takeArchive(options, ownArchive, ownState);
  } finally {
    lock?.release();
  }
}

/** Moves the data of earlier versions from `<volume>/state`. */
function takeState({ namespace, state, say, fs = nodeFs }: PrepareOptions, own: string): void {
  const old = join(state, STATE);
  if (!fs.existsSync(old)) return;
  const other = namespacesIn(fs, old).find((one) => one !== namespace);
  if (other !== undefined) return say(`${old} belongs to the namespace ${other} and is not moved`);
  const target = freeName(fs, join(own, STATE));
  say(`moving ${old} to ${target}`);
  takeBack(fs, own);
  fs.renameSync(old, target);
  syncDirectories(fs, [own, state]);
}

/**
 * Moves the data of earlier versions from the volume itself. Its state is moved last: as long as it is there, the move is
 * not complete.
 */
function takeArchive(
  { namespace, pool, archive, state, say, nowMs, fs = nodeFs }: PrepareOptions,
  own: string,
  ownState: string,
): void {
  const old = join(archive, ARCHIVE_STATE);
  if (!fs.existsSync(old)) return;
  const marker = readJson(fs, join(old, 'archive.json')) as { id?: unknown; pool?: unknown } | undefined;
  const isOther = marker?.pool !== undefined && marker.pool !== `${namespace}/${pool}`;
  const left = join(state, STATE);
  if (isOther || (fs.existsSync(left) && knows(fs, left, marker?.id))) {
    return say(`${archive} holds the archive of another pool, which is not moved`);
  }
  if (!knows(fs, join(ownState, STATE), marker?.id) && isAlive(fs, old, nowMs())) {
    throw new PrepareError(
      `${archive} is in use by a recorder of an earlier version that does not belong to this pool`,
    );
  }
  takeBack(fs, own);
  for (const year of fs.readdirSync(archive).filter((entry) => YEAR.test(entry))) {
    say(`${join(archive, year)} is being moved to ${own}`);
    merge(fs, join(archive, year), join(own, year), say);
  }
  syncDirectories(fs, [own, archive]);
  fs.renameSync(old, freeName(fs, join(own, ARCHIVE_STATE)));
  syncDirectories(fs, [own, archive]);
  say(`${archive} is now in ${own}`);
}

/**
 * Makes the user the owner of a directory, its subdirectories, and the files that `isWanted` selects; the directory itself
 * comes last.
 */
function give(
  { user, group, say, fs = nodeFs }: PrepareOptions,
  root: string,
  isWanted: (path: string) => boolean,
): void {
  const { uid, gid } = fs.lstatSync(root);
  if (uid === user && gid === group) return;
  // Only for a directory that the kubelet created: only its owner may change the mode.
  if (uid === process.getuid?.()) fs.chmodSync(root, 0o750);
  let count = 0;
  const walk = (directory: string): void => {
    for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name);
      if (entry.isDirectory()) walk(path);
      else if (!isWanted(path)) continue;
      else fs.lchownSync(path, user, group);
      count++;
    }
    fs.lchownSync(directory, user, group);
  };
  walk(root);
  say(`${root} now belongs to user ${user}, with ${count} directories and files in it`);
}

/** Files that the last recorder had open: the next one completes them. */
function openFiles(fs: typeof nodeFs, archive: string): ReadonlySet<string> {
  const states = fs.readdirSync(archive).filter((entry) => entry.startsWith(ARCHIVE_STATE));
  const markers = states.flatMap((entry) => {
    const directory = join(archive, entry, 'open');
    return fs.existsSync(directory) ? fs.readdirSync(directory) : [];
  });
  return new Set(
    markers.flatMap((marker) => {
      const segment = parseBaseName(marker.replace(/^\d+_/, ''));
      return segment ? [join(archive, formatPath(segment))] : [];
    }),
  );
}

/**
 * Takes the ownership back before files of other users are moved in: the directory must not look prepared until they are
 * given to the user too.
 */
function takeBack(fs: typeof nodeFs, own: string): void {
  fs.lchownSync(own, process.getuid?.() ?? 0, process.getgid?.() ?? 0);
}

/** Moves a directory. If the target exists, only missing entries are moved; nothing is replaced. */
function merge(fs: typeof nodeFs, from: string, to: string, say: (line: string) => void): void {
  if (!fs.existsSync(to)) return fs.renameSync(from, to);
  if (!fs.statSync(from).isDirectory() || !fs.statSync(to).isDirectory())
    return say(`${from} is not moved: ${to} exists`);
  for (const entry of fs.readdirSync(from)) merge(fs, join(from, entry), join(to, entry), say);
  syncDirectories(fs, [to, from]);
  if (fs.readdirSync(from).length === 0) fs.rmdirSync(from);
}

/** A free name if the target exists: after a rollback, an earlier version has created new data in the old place. */
function freeName(fs: typeof nodeFs, path: string): string {
  for (let i = 0; ; i++) {
    const name = i === 0 ? path : `${path}.rolled-back-${i}`;
    if (!fs.existsSync(name)) return name;
  }
}

/** Namespaces whose assignments are stored in a state directory. */
function namespacesIn(fs: typeof nodeFs, state: string): string[] {
  const cluster = join(state, 'cluster');
  if (!fs.existsSync(cluster)) return [];
  return fs.readdirSync(cluster).flatMap((node) => {
    const kept = readJson(fs, join(cluster, node, 'assignments.json')) as { namespace?: unknown } | undefined;
    return typeof kept?.namespace === 'string' ? [kept.namespace] : [];
  });
}

/** Whether a state directory belongs to a node that records to this archive. */
function knows(fs: typeof nodeFs, state: string, id: unknown): boolean {
  const known = readJson(fs, join(state, 'archive-id'));
  return typeof known === 'object' && known !== null && Object.values(known).includes(id);
}

function isAlive(fs: typeof nodeFs, archiveState: string, nowMs: number): boolean {
  const sign = join(archiveState, 'gaps/alive');
  return fs.existsSync(sign) && Math.abs(nowMs - fs.statSync(sign).mtimeMs) < ALIVE_MS;
}

function readJson(fs: typeof nodeFs, path: string): unknown {
  try {
    return parseJson(fs.readFileSync(path, 'utf8'));
  } catch {
    // The file is written then.
    return undefined;
  }
}

function makeDirectory(fs: typeof nodeFs, path: string): void {
  if (!fs.existsSync(path)) fs.mkdirSync(path, 0o750);
}

function syncDirectories(fs: typeof nodeFs, paths: readonly string[]): void {
  for (const path of paths) {
    const file = fs.openSync(path, 'r');
    try {
      fs.fsyncSync(file);
    } finally {
      fs.closeSync(file);
    }
  }
}
