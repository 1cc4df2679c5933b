// `recorder --reindex`: the table of recordings made anew from the files of the archive, with progress. Configuration
// in, lines out.

import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { Archive } from './archive/archive.ts';
import { ArchiveError } from './archive/faults.ts';
import type { Config } from './config/schema.ts';
import { Connection } from './database/connection.ts';
import { DatabaseError } from './database/error.ts';
import { migrate } from './database/migrations.ts';
import { reindex, type ReindexReport } from './database/reindex.ts';

export interface ReindexCommandDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly say: (line: string) => void;
}

/** Throws DatabaseError. A recorder may be running: what it writes meanwhile it indexes itself. */
export async function reindexArchive(
  config: Config,
  { clock, log, say }: ReindexCommandDeps,
  signal: AbortSignal,
): Promise<ReindexReport> {
  const { nodeName, recordPath, database } = config;
  if (!database) throw new DatabaseError('REJECTED', 'database.url: is not set, there is nothing to index into');
  const connection = new Connection({ url: database.url, nodeName, log });
  // Nothing is recovered or written: only its names and files are read.
  const archive = new Archive({ root: recordPath, clock, log, syncIntervalMs: config.archive.syncIntervalMs });
  try {
    await migrate(connection);
    say(`indexing ${recordPath} as node ${nodeName} into ${connection.location}`);
    return await reindex({ connection, nodeName, inventory: archive.inventory, clock, say }, signal);
  } catch (err) {
    if (!(err instanceof ArchiveError)) throw err;
    throw new DatabaseError('REJECTED', `record_path ${recordPath} cannot be read: is the disk mounted?`);
  } finally {
    await archive.close();
    await connection.close();
  }
}
