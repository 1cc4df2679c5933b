// A lock that the kernel holds for this process and releases when the process ends, however it ends. Node itself has none;
// SQLite, which is part of it, takes POSIX locks (fcntl(2), F_SETLK) on its files. The file stays empty. Such a lock
// counts for all containers of a machine, and on NFS for all machines, where the file server keeps locks.

import { DatabaseSync } from 'node:sqlite';

export interface FileLock {
  release(): void;
}

/** https://sqlite.org/rescode.html#busy */
const SQLITE_BUSY = 5;

/**
 * Creates the file if it is missing. Nothing else in this process may open it, because closing it again would release the lock.
 * Undefined: it is held already, perhaps by this process. Throws if the file cannot be created, or its file system has no locks.
 */
export function lockFile(path: string): FileLock | undefined {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    // In memory, because a journal would be a second file.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (err) {
    database.close();
    if ((err as { errcode?: number }).errcode === SQLITE_BUSY) return undefined;
    throw err;
  }
  return { release: () => database.close() };
}
