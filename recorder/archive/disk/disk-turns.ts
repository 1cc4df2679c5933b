// A file system that limits how many changes and syncs run at once. All of them run in the threads of one pool, first come
// first served. A sync takes as long as the disk needs, a write only as long as a copy in memory. Without limits, the syncs
// of hundreds of files would occupy every thread: writes of all cameras would wait behind them, and a disk that hangs would
// block reading and name lookups too.
//
// A sync of a directory covers everything that was created in it before. All files of a day lie in one directory, and all
// markers in another: callers that arrive while a sync is running share the next one.

import { Turns } from '../../../base/turns.ts';
import type { FileSystem, OpenFile } from './file-system.ts';

/**
 * The event loop hands each turn to the next caller: with only a few turns, a busy event loop would limit the throughput of
 * the disk.
 */
const CHANGES_AT_ONCE = 48;
interface DiskTurns {
  readonly changes: Turns;
  readonly syncs: Turns;
}

/** Which disks there are. */
interface Disks {
  count(): number;
  of(path: string): string;
}

/** File systems commit all waiting syncs together: fewer at once would reduce the throughput. */
const SYNCS_AT_ONCE = 48;

/** With several disks, each has its share of the turns: one that hangs keeps only its own. */
export function takingTurns(fs: FileSystem, disks: Disks = { count: () => 1, of: () => '' }): FileSystem {
  const turns = new Map<string, DiskTurns>();
  const of = (path: string): DiskTurns => {
    const disk = disks.of(path);
    let own = turns.get(disk);
    if (!own) {
      const share = (all: number): Turns => new Turns(Math.ceil(all / disks.count()));
      turns.set(disk, (own = { changes: share(CHANGES_AT_ONCE), syncs: share(SYNCS_AT_ONCE) }));
    }
    return own;
  };

  const underWay = new Map<string, Promise<void>>();
  const next = new Map<string, Promise<void>>();

  function syncDirectory(path: string): Promise<void> {
    const known = next.get(path);
    if (known) return known;
    const before = underWay.get(path) ?? Promise.resolve();
    const sync = before
      // Its callers get the error.
      .catch(() => {})
      .then(() =>
        of(path).syncs.take(() => {
          // From here on, the running sync may miss new entries: later callers need the next one.
          next.delete(path);
          underWay.set(path, sync);
          return fs.syncDirectory(path);
        }),
      )
      .finally(() => {
        if (underWay.get(path) === sync) underWay.delete(path);
      });
    next.set(path, sync);
    return sync;
  }

  const file = (inner: OpenFile, { changes, syncs }: DiskTurns): OpenFile => ({
    write: (buffers, position) => changes.take(() => inner.write(buffers, position)),
    read: (position, length) => inner.read(position, length),
    truncate: (sizeBytes) => changes.take(() => inner.truncate(sizeBytes)),
    syncData: () => syncs.take(() => inner.syncData()),
    sync: () => syncs.take(() => inner.sync()),
    facts: () => inner.facts(),
    close: () => inner.close(),
  });

  return {
    create: async (path, mode) => file(await of(path).changes.take(() => fs.create(path, mode)), of(path)),
    open: async (path, mode) => {
      const opened = await fs.open(path, mode);
      return mode === 'read' ? opened : file(opened, of(path));
    },
    makeDirectory: (path) => of(path).changes.take(() => fs.makeDirectory(path)),
    list: (path) => fs.list(path),
    facts: (path) => fs.facts(path),
    remove: (path) => of(path).changes.take(() => fs.remove(path)),
    removeDirectory: (path) => of(path).changes.take(() => fs.removeDirectory(path)),
    space: (path) => fs.space(path),
    rename: (from, to) => of(to).changes.take(() => fs.rename(from, to)),
    syncDirectory,
  };
}
