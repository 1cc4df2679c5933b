// The command `recorder --reindex`: rebuilds the table of recordings from the files of the archive, and prints its
// progress.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { withoutTrailingSlash } from '../../base/paths.ts';
import { ArchiveError, WrongDiskError } from '../archive/disk/faults.ts';
import { nodeFileSystem as fs } from '../archive/disk/file-system.ts';
import { ArchiveIdentity } from '../archive/disk/identity.ts';
import { Catalogue } from '../archive/catalogue/catalogue.ts';
import { Disk } from '../archive/disk/disk-set.ts';
import { SegmentStore } from '../archive/disk/segment-store.ts';
import type { Config } from '../config/schema.ts';
import { Connection } from '../database/connection.ts';
import { DatabaseError } from '../database/error.ts';
import { migrate } from '../database/migrations.ts';
import { reindex, type ReindexReport } from '../database/reindex.ts';

/**
 * Rejects with DatabaseError, also for a directory that is not the archive of this node: if the disk is not mounted, its
 * rows must not be removed. A recorder may be running; it indexes new files itself.
 */
export async function reindexArchive(
  config: Config,
  { clock, log, say }: { readonly clock: Clock; readonly log: Log; readonly say: (line: string) => void },
  signal: AbortSignal,
): Promise<ReindexReport> {
  const { nodeName, workDir, database } = config;
  const root = withoutTrailingSlash(config.recordPath);
  if (!database) throw new DatabaseError('REJECTED', 'database.url is not set: there is no database to write to');
  const connection = new Connection({ url: database.url, nodeName, log });
  // Nothing is recovered or written on the disk: only names and files are read.
  const identity = new ArchiveIdentity({ root, workDir, fs, log });
  const store = new SegmentStore(root, fs, { check: () => identity.inspect(), device: undefined });
  for (const { path } of config.archive.disks) {
    const disk = withoutTrailingSlash(path);
    const further = new ArchiveIdentity({ root: disk, workDir, first: identity, fs, log });
    store.disks.add(new Disk(disk, { check: () => further.inspect(), device: undefined }));
  }
  const catalogue = new Catalogue(store, clock);
  try {
    await store.disks.checkAll();
    await migrate(connection);
    say(`indexing ${root} as node ${nodeName} into ${connection.location}`);
    return await reindex({ connection, nodeName, catalogue, clock, say }, signal);
  } catch (err) {
    if (err instanceof WrongDiskError) throw new DatabaseError('REJECTED', `record_path ${err.message}`);
    if (!(err instanceof ArchiveError)) throw err;
    throw new DatabaseError('REJECTED', `record_path ${root} cannot be read: is the disk mounted?`);
  } finally {
    await connection.close();
  }
}
