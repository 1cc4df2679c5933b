// Moves the files of a disk to the other disks, while recording goes on. A file on the disk asks for it, so that it goes on after a
// restart. The newest files are moved first: what does not fit is what retention removes next.

import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import { ignoreMissing } from '../../../base/file-calls.ts';
import type { Disk } from './disk-set.ts';
import type { FileSystem } from './file-system.ts';
import { formatPath, parsePath, type SegmentName } from './names.ts';
import type { SegmentStore } from './segment-store.ts';
import { headroomFor } from './space.ts';

/** The file that asks for it, relative to the disk. */
export const DRAIN_FILE = '.kube-nvr/drain';

interface DrainDeps {
  readonly store: SegmentStore;
  readonly clock: Clock;
  readonly log: Log;
  /** Paths of files that are not complete. */
  readonly busy: () => ReadonlySet<string>;
  /** Footage waits for a disk: moving waits, too. */
  readonly isBehind: () => boolean;
}

const LOOK_MS = 2_000;
/** Free space that is left on the other disks, as a multiple of what recording needs. */
const SPARE = 8;

export class Drain {
  readonly #deps: DrainDeps;
  #lookedMs = -Infinity;
  #look: Promise<void> | undefined;
  #isClosed = false;
  /** Disks of which it was told that they are empty, or that the others are full. */
  readonly #told = new Map<Disk, string>();

  constructor(deps: DrainDeps) {
    this.#deps = deps;
  }

  /** To be called a few times a second. */
  tick(): void {
    const { store, clock, log } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (!store.disks.hasOthers || this.#look || this.#isClosed || nowMs - this.#lookedMs < LOOK_MS) return;
    this.#lookedMs = nowMs;
    this.#look = this.#lookOnce()
      .catch((err: unknown) => log.warn({ err }, 'files of a disk could not be moved'))
      .finally(() => (this.#look = undefined));
  }

  async settled(): Promise<void> {
    await this.#look;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.settled();
  }

  async #lookOnce(): Promise<void> {
    const { store } = this.#deps;
    for (const disk of store.disks.all) {
      if (disk === store.disks.first || disk.refused || disk.hangs) continue;
      const asked = await disk.answers(store.fs.facts(`${disk.root}/${DRAIN_FILE}`)).catch(ignoreMissing);
      disk.isLeaving = asked !== undefined;
      if (disk.isLeaving) await this.#move(disk);
      else this.#told.delete(disk);
    }
  }

  async #move(from: Disk): Promise<void> {
    const { store, busy, isBehind } = this.#deps;
    const left = await segmentsOn(store.fs, from.root);
    if (left.length === 0) return this.#tell(from, 'the disk has no footage any more: it may be removed');
    for (const segment of left.reverse()) {
      if (this.#isClosed || isBehind()) return;
      const path = formatPath(segment);
      if (busy().has(path)) continue;
      const { sizeBytes } = (await store.fs.facts(`${from.root}/${path}`).catch(ignoreMissing)) ?? { sizeBytes: 0 };
      const to = await diskWithRoom(store, sizeBytes, from);
      if (!to) return this.#tell(from, 'the other disks have no space for the rest of the footage');
      await store.move(segment, from, to).catch(ignoreMissing);
    }
  }

  /** Once, until it is something else. */
  #tell(disk: Disk, message: string): void {
    if (this.#told.get(disk) === message) return;
    this.#told.set(disk, message);
    this.#deps.log.info({ path: disk.root }, message);
  }
}

/** The disk with the most free space, if the file fits. `except`: not this one. */
export async function diskWithRoom(
  { disks, fs }: SegmentStore,
  sizeBytes: number,
  except?: Disk,
): Promise<Disk | undefined> {
  let best: { readonly disk: Disk; readonly spareBytes: number } | undefined;
  for (const disk of disks.all) {
    if (disk === except || disk.isLeaving || disk.isRemoved || disk.refused || disk.fault) continue;
    const space = await fs.space(disk.root);
    const spareBytes = space.freeBytes - SPARE * headroomFor(0, space) - sizeBytes;
    if (spareBytes > 0 && spareBytes > (best?.spareBytes ?? 0)) best = { disk, spareBytes };
  }
  return best?.disk;
}

/** The segments on a disk, the oldest day first. */
export async function segmentsOn(fs: Pick<FileSystem, 'list'>, root: string): Promise<SegmentName[]> {
  const list = async (path: string): Promise<string[]> =>
    ((await fs.list(`${root}/${path}`).catch(ignoreMissing)) ?? []).sort();
  const found: SegmentName[] = [];
  for (const year of (await list('')).filter((name) => /^\d{4}$/.test(name))) {
    for (const month of (await list(year)).filter((name) => /^\d\d$/.test(name))) {
      for (const day of (await list(`${year}/${month}`)).filter((name) => /^\d\d$/.test(name))) {
        const directory = `${year}/${month}/${day}`;
        for (const name of await list(directory)) {
          const segment = parsePath(`${directory}/${name}`);
          if (segment) found.push(segment);
        }
      }
    }
  }
  return found;
}
