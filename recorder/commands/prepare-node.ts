// The command `recorder prepare-node`: creates the directories `<volume>/<namespace>_<pool>` of one pool on its node, owned
// by the user of the recorder. It runs next to the recorder in its pod, which waits for the directories and may not change
// owners. It may be killed at any point; the next run continues.

import * as nodeFs from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { directoryOfPool } from '../../crds/names.ts';
import { formatPath, parseBaseName } from '../archive/disk/names.ts';
import type { CommandContext } from './command.ts';
import { waitUntilEnded } from './wait.ts';

export const usage = `Usage: recorder prepare-node --namespace NAME --pool NAME --user UID --group GID --archive DIRECTORY --state DIRECTORY [--disk DIRECTORY]...

Makes <archive>/<namespace>_<pool>, <state>/<namespace>_<pool> and <disk>/<namespace>_<pool> for the user. Needs the right to change owners.
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
  /** Further disks of the archive. */
  readonly disks?: readonly string[];
  readonly user: number;
  readonly group: number;
  readonly say: (line: string) => void;
  readonly fs?: typeof nodeFs;
}

const PREPARED_LOOK_MS = 50;
const TELL_EVERY = 600;
const ARCHIVE_STATE = '.kube-nvr';

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
  const disk = { type: 'string', multiple: true } as const;
  const { values } = parseArgs({ args: [...args], options: { ...options, disk }, strict: false }) as {
    values: Partial<Record<keyof typeof options, string>> & { readonly disk?: readonly string[] };
  };
  const { namespace, pool, archive, state, disk: disks = [] } = values;
  const [user, group] = [Number(values.user), Number(values.group)];
  if (!namespace || !pool || !archive || !state || !Number.isInteger(user) || !Number.isInteger(group)) {
    throw new PrepareError(`an option is missing\n\n${usage}`);
  }
  prepareNode({ namespace, pool, archive, state, disks, user, group, say });
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
  const { archive, state, disks = [], say, fs = nodeFs } = options;
  const name = directoryOfPool(options);
  const ownState = join(state, name);
  try {
    makeDirectory(fs, ownState);
    give(options, ownState, () => true);
    prepareDisk(options, join(archive, name));
  } catch (err) {
    throw problemOf(err, options);
  }
  for (const disk of disks) {
    try {
      prepareDisk(options, join(disk, name));
    } catch (err) {
      // The recorder names it, and records to the others.
      say(problemOf(err, options).message);
    }
  }
}

function prepareDisk(options: PrepareOptions, own: string): void {
  const { fs = nodeFs } = options;
  makeDirectory(fs, own);
  const open = openFiles(fs, own);
  // Closed footage is only read and removed, for which the owner of the directory matters; there may be a million files.
  give(options, own, (path) => path.startsWith(join(own, ARCHIVE_STATE)) || open.has(path));
}

function problemOf(err: unknown, { user }: PrepareOptions): PrepareError {
  const { code, path, message } = err as NodeJS.ErrnoException;
  const hint = code === 'EPERM' ? `; give ${path} to user ${user} on the node, or set spec.runAsUser` : '';
  return new PrepareError(`${message}${hint}`, { cause: err });
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

function makeDirectory(fs: typeof nodeFs, path: string): void {
  if (!fs.existsSync(path)) fs.mkdirSync(path, 0o750);
}
