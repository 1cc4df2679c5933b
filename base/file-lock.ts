// A file lock that the kernel holds for this process and releases when the process ends, in whatever way it ends. Node has no API
// for this, but its SQLite takes POSIX locks (fcntl(2), F_SETLK) on its database files. The file stays empty. The lock is valid
// across all containers of a machine, and on NFS across machines if the file server supports locks.

import { DatabaseSync } from 'node:sqlite';

export interface FileLock {
  release(): void;
}

/** https://sqlite.org/rescode.html#busy */
const SQLITE_BUSY = 5;

/**
 * Takes the lock and creates the file if it is missing. Nothing else in this process may open the file: closing it would release
 * the lock. Returns undefined if the lock is already held, perhaps by this process. Throws if the file cannot be created or its
 * file system does not support locks.
 */
export function lockFile(path: string): FileLock | undefined {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    // In memory, because a journal on disk would be a second file.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (err) {
    database.close();
    if ((err as { errcode?: number }).errcode === SQLITE_BUSY) return undefined;
    throw err;
  }
  return { release: () => database.close() };
}
