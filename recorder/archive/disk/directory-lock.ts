// Locks a directory for one recorder while it runs. The lock ends with the process. A file next to the lock names the
// holder, for the error message of a recorder that is refused.

import { hostname } from 'node:os';
import { lockFile, type FileLock } from '../../../base/file-lock.ts';
import type { Log } from '../../../base/log.ts';
import { parseJson } from '../../../base/parse-json.ts';
import type { FileSystem } from './file-system.ts';
import { readIfThere, replaceFile } from './state-file.ts';

/** The content of the file, for people. */
interface Holder {
  readonly node: string;
  /** `namespace/name`. */
  readonly pool?: string | undefined;
}

/** Another recorder uses the directory. */
export class DirectoryInUse extends Error {
  override readonly name = 'DirectoryInUse';
}

interface DirectoryLockOptions {
  readonly fs: FileSystem;
  readonly holder: Holder;
  readonly log: Log;
  readonly lock?: (path: string) => FileLock | undefined;
}

/**
 * Locks `directory`, which must exist. Throws DirectoryInUse. Where the file system has no locks, the directory is used
 * without one and a warning is logged: a file server without locks must not prevent recording.
 */
export async function takeDirectory(
  directory: string,
  { fs, holder, log, lock = lockFile }: DirectoryLockOptions,
): Promise<FileLock> {
  const path = `${directory}/lock`;
  const holderPath = `${directory}/lock-holder.json`;
  let taken: FileLock | undefined;
  try {
    taken = lock(path);
  } catch (err) {
    log.warn({ path, err }, 'a directory cannot be locked: a second recorder in it would not be noticed');
    return { release: () => {} };
  }
  if (!taken) {
    // Then the message does not name the other recorder.
    const text = await readIfThere(fs, holderPath).catch(() => undefined);
    throw new DirectoryInUse(`${directory} is used by another recorder${wordsOf(parseJson(text ?? ''))}`);
  }
  const now = { ...holder, host: hostname(), process: process.pid, since: new Date().toISOString() };
  await replaceFile(fs, holderPath, `${JSON.stringify(now)}\n`).catch((err: unknown) =>
    log.warn({ path: holderPath, err }, 'the name of the recorder that uses the directory cannot be written'),
  );
  return taken;
}

function wordsOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return '';
  const known = value as Readonly<Record<string, unknown>>;
  const words = ['pool', 'node', 'host', 'process', 'since'].flatMap((key) =>
    typeof known[key] === 'string' || typeof known[key] === 'number' ? [`${key} ${known[key]}`] : [],
  );
  return words.length === 0 ? '' : `: ${words.join(', ')}`;
}
